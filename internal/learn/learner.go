// Package learn learns from the runs of workloads how they respond to clocks, for
// those who decide at which clocks the next run is.
//
// A [Learner] owns the model in use of each workload on each GPU model, what
// workloads on a GPU model have in common, the settings that are worth exploring, and
// what workloads do to the GPUs that they share. Each run that ends is held against
// the model in use, and has the workload's last runs fitted anew in the background.
// Decisions ask for the model of the moment: a value that nobody changes, which waits
// for no fit and no record. A model that misses too often goes out of use; one that
// an administrator chose is replaced by no fit.
package learn

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
)

// Records are what learning needs of the store.
type Records interface {
	// WriteProblem is why records can't be written or read, nil if they can.
	WriteProblem() error
	// OutcomesOf are runs of a workload on a GPU model, the newest first; before is 0
	// or the Next of the page before.
	OutcomesOf(
		ctx context.Context, key record.WorkloadKey, before int64, limit int,
	) (store.OutcomePage, error)
	// Profiles are those of the last completed runs of a workload that had their GPUs
	// alone.
	Profiles(ctx context.Context, key record.WorkloadKey, most int) ([]record.RunProfile, error)
	// PutModel stores a version of a workload's model and returns its number.
	PutModel(ctx context.Context, m *record.Model) (int64, error)
	// UseModel puts a version in use, with why; version 0: none.
	UseModel(ctx context.Context, key record.WorkloadKey, version int64, note string) error
	// Models are all versions of a workload's model, the newest first.
	Models(ctx context.Context, key record.WorkloadKey) ([]record.Model, error)
	// ModelsInUse are the versions in use of all workloads of a cluster.
	ModelsInUse(ctx context.Context, cluster string) ([]record.Model, error)
	// RetiredModels are its workloads whose model was taken out of use.
	RetiredModels(ctx context.Context, cluster string) ([]record.RetiredModel, error)
}

// Settings are the part of a configuration that learning goes by.
type Settings struct {
	TimeMargin float64 // by which part bounds of run times are above and below predictions, at least
	Explore    bool    // some of the runs explore
	Caps       bool    // power limits are chosen somewhere
	// MaxSlowdown is how many times as long as at default clocks a run may take, wherever that is most.
	MaxSlowdown float64
	Sharing     colocate.Rules
}

// GPU is what is known of a GPU model, whatever runs on it.
type GPU struct {
	Base    dvfsmodel.Setting   // default clocks of the device that was seen last; zero: none was
	Allowed []dvfsmodel.Setting // that may be set on it
	Default dvfsmodel.Setting   // clocks of its profile; 0: it doesn't say
	HostW   dvfsmodel.Watt      // of the rest of the node for each GPU
	Limit   epdapi.PowerLimit   // of the device that was seen last; zero: it has none that can be set
	// SiteLimited tells that the site holds some of them at clocks of its own, which may have been others
	// before: a run by default is one at the clock that ran.
	SiteLimited bool
}

// Options are what a learner works with. Only UserOf and Pending may be nil.
type Options struct {
	Records Records
	Cluster string
	// Settings are those in force.
	Settings func() Settings
	GPU      func(gpuModel string) GPU
	Clock    func() time.Time
	Log      *slog.Logger
	// UserOf is whose jobs a workload's are, "" if that isn't known; nil: each is of a user of its own.
	UserOf func(ctx context.Context, workload string) string
	// Pending is told that a refit is due; what it returns is called when that is done.
	Pending func() (done func())
}

// Learner knows the models of workloads. Its methods may be called by several
// goroutines.
type Learner struct {
	options  Options
	models   models
	priors   priors
	owners   owners
	profiles profileCache
	refits   chan refit
	fitted   atomic.Int64 // versions made
	retired  atomic.Int64 // models taken out of use

	mu     sync.Mutex
	queued map[record.WorkloadKey]bool // refits
}

// refit is a workload whose model is due to be fitted anew.
type refit struct {
	key  record.WorkloadKey
	done func()
}

// refitQueue is how many workloads wait for a refit. The next outcome of one beyond
// tries again.
const refitQueue = 1024

// New makes a learner that knows no models: [Learner.Load] reads them.
func New(options Options) *Learner {
	if options.Pending == nil {
		options.Pending = func() func() { return func() {} }
	}
	return &Learner{
		options: options, owners: owners{ask: options.UserOf}, refits: make(chan refit, refitQueue),
		queued:   make(map[record.WorkloadKey]bool),
		models:   models{byKey: make(map[record.WorkloadKey]*standing)},
		profiles: profileCache{byKey: make(map[record.WorkloadKey]*colocate.UseProfile)},
	}
}

// Run fits what is due until the context ends.
func (l *Learner) Run(ctx context.Context) {
	l.learnFromStore(ctx)
	for {
		select {
		case due := <-l.refits:
			key := due.key
			l.mu.Lock()
			delete(l.queued, key)
			l.mu.Unlock()
			if err := l.refit(ctx, key); err != nil {
				l.options.Log.Info("no new model",
					"workload", key.Workload, "gpu_model", key.GPUModel, "reason", err)
			}
			due.done()
		case <-ctx.Done():
			for {
				select {
				case due := <-l.refits:
					due.done()
				default:
					return
				}
			}
		}
	}
}
