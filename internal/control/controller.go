package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/begins"
	"github.com/epplan/epplan/internal/decide"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/forecast"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/internal/liveplan"
	"github.com/epplan/epplan/internal/nodes"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// Records are what a controller keeps, by who keeps it. They may be one thing.
type Records struct {
	Runs      RunRecords
	Jobs      jobs.Records
	Decisions decide.Records
	Models    learn.Records
	Forecasts forecast.Records
	Queries   query.Records
}

// RunRecords are runs that ended, for as long as they are kept.
type RunRecords interface {
	PutOutcome(ctx context.Context, o *record.Outcome) (store.Receipt, error)
	// HasAnotherOfRun reports whether another outcome counts of the same start of the same job on the same
	// node; of a run that is stored, what it was then.
	HasAnotherOfRun(ctx context.Context, o *record.Outcome) (bool, error)
	Prune(ctx context.Context, before time.Time) (store.PruneResult, error)
	Oldest(ctx context.Context) (time.Time, error)
	Compact(ctx context.Context, before time.Time) (int64, error)
	OldestInDetail(ctx context.Context) (time.Time, error)
	Shrink(ctx context.Context) (int64, error)
}

// RecordsIn returns those of a store.
func RecordsIn(s *store.Store) Records {
	return Records{
		Runs: s, Jobs: s, Decisions: s, Models: s.Learning, Forecasts: s.Learning,
		Queries: query.Records{Jobs: s, Sums: s, Runs: s, History: s.Learning, Ended: s.Learning},
	}
}

// Options are what a controller works with. Only Records and Cluster are needed.
type Options struct {
	Records Records
	Cluster string
	// Settings are those to begin with; nil: [DefaultSettings].
	Settings *Settings
	// Resolve asks Slurm for a job that isn't known, or not lately; nil: what
	// the request says must do. It is bounded by ResolveTimeout.
	Resolve        func(ctx context.Context, id slurm.JobID) (slurm.Job, error)
	ResolveTimeout time.Duration // default [epdapi.JobWait]
	// Script asks Slurm for the script of a job whose submission wasn't heard of; nil: nobody can.
	Script func(ctx context.Context, id slurm.JobID, most int) (string, error)
	// Account asks Slurm's accounting how jobs ended that Slurm itself doesn't
	// know any more; nil: there is none.
	Account jobs.Accounting
	// Fresh is for how long what Slurm said of a job is believed, before it is
	// asked again at the job's start (default 1 min).
	Fresh time.Duration
	// StoreWait is how long records may wait to be written before jobs are left
	// at default clocks, and how long a look-up may take (default 250 ms).
	StoreWait time.Duration
	Clock     func() time.Time // nil: time.Now
	// NiceAtSubmit is the nice of a job that a user submits to a partition, behind those that are in order
	// already; 0: none. It must be quick. Nil: there is no order.
	NiceAtSubmit func(partition string, uid uint32, deadline bool) int64
	// HourAtSubmit is when a job that is being submitted and can wait had better begin; false: at once. It must
	// be quick. Nil: no job waits for hours.
	HourAtSubmit func(*begins.Ask) (begins.Hour, bool)
	// BudgetEvents is the file of events of power budgets; "": they are lost at the end.
	BudgetEvents string
	// Load reads the configuration again; nil: it can't be.
	Load func() (*Settings, error)
	// Speed is how much faster than Slurm's clock the GPUs' time goes by:
	// simulated ones'. Limits are shorter by it. 0: 1.
	Speed float64
	Seed  uint64       // of the lot for the hold-out; keep it over restarts, and to yourself
	Log   *slog.Logger // nil: nothing is logged
	// UserName is a user's name, "" if there is none; it may take its time. Nil: names
	// are known from jobs alone.
	UserName func(uid uint32) string
	// OnDecide is told of each decision, for measurements; it must be quick, and
	// may be called by several goroutines. Nil: nobody is.
	OnDecide func(Observed)
	// OnOutcome is told of each outcome that is stored for the first time, and of
	// the partition of its job, "" if that isn't known any more; as OnDecide.
	OnOutcome func(o *record.Outcome, partition string)
	// EnergiesForeign counts jobs without an energy in Slurm's accounting, as their AdminComment belongs to
	// another tool; nil: nobody writes there.
	EnergiesForeign func() int64
	// OnStrange is told of what the agent of a node says of jobs and can't be; as OnDecide, and from
	// [Controller.Record]. Nil: it is logged.
	OnStrange func(*ImplausibleReport)
}

// ImplausibleReport is what the agent of a node says and can't be: nothing comes of it, and it is kept apart. Job and
// Run are what it says it of. What is the same for all of a kind.
type ImplausibleReport struct {
	Kind, Node, What, Detail string
	Job                      int64
	Run                      string
}

// Attrs returns what a log says of it.
func (s *ImplausibleReport) Attrs() []any {
	attrs := []any{"node", s.Node, "job", s.Job, "run", s.Run}
	if s.Detail != "" {
		attrs = append(attrs, "detail", s.Detail)
	}
	return attrs
}

// Kinds of what is strange: as decisions and the status count it, but for [StrangeAgain], which nobody else
// counts.
const (
	StrangeDecision = "elsewhere"         // a decision for a job that Slurm doesn't have there
	StrangeOutcome  = "outcome-elsewhere" // an outcome of one
	StrangeValue    = "outcome-implausible"
	StrangeAgain    = "outcome-again" // one more outcome of a run
)

// Controller decides. Its methods may be called by several goroutines.
type Controller struct {
	// Jobs is what knows of Slurm's jobs and nodes: whoever can ask Slurm has it keep up.
	Jobs *jobs.Tracker
	// Queries is what answers pages and commands.
	Queries   *query.Service
	Foresight *Foresight
	// Plan is the plan in force of what waits, if whoever plans puts one there.
	Plan *liveplan.InForce
	// Budget is what keeps the nodes within power budgets.
	Budget *PowerBudget

	options   Options
	settings  atomic.Pointer[Settings]
	reloading sync.Mutex
	started   time.Time
	decider   *decide.Decider
	learner   *learn.Learner
	forecasts *forecast.Forecaster
	reports   *nodes.Reports
	gcPercent gcPercent
	waiting   queuedGPUs
	counters  counters
	recording [64]sync.Mutex // of the outcomes of some jobs
	stop      context.CancelFunc
	running   sync.WaitGroup
	unwritten gauge // jobs and decisions
	pending   gauge // outcomes that a refit is due for, and what forecasts learn from
}

const (
	defaultFresh     = time.Minute
	defaultStoreWait = 250 * time.Millisecond
)

// ErrRequest tells that a request can't be answered as it is; trying again
// doesn't help.
var ErrRequest = epdapi.ErrRequest

// New makes a controller with the models in use. The context bounds that;
// [Controller.Close] ends the controller.
func New(ctx context.Context, options Options) (*Controller, error) {
	if options.Records.Runs == nil || options.Cluster == "" {
		return nil, errors.New("a controller needs a store and a cluster")
	}
	c := assemble(options)
	if err := c.learner.Load(ctx); err != nil {
		return nil, fmt.Errorf("start the controller: %w", err)
	}
	c.Budget.Damage = c.Budget.read()
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	c.running.Go(func() { c.learner.Run(background) })
	c.running.Go(func() { c.pruneDaily(background) })
	c.running.Go(func() { c.trackWaiting(background) })
	c.running.Go(func() { reloadSeries(background, &c.settings, c.options.Log) })
	c.running.Go(func() { c.decider.Run(background) })
	c.running.Go(func() { c.forecasts.Run(background) })
	return c, nil
}

// assemble makes a controller whose parts know each other: nothing runs beside, and no models are in use.
func assemble(options Options) *Controller {
	setDefaults(&options)
	c := &Controller{
		options: options, started: options.Clock(), reports: nodes.New(), Plan: new(liveplan.InForce),
	}
	if options.Speed > 0 { // jobs are shorter by as much
		c.Plan.Tolerance = time.Duration(float64(liveplan.UsualTolerance) / options.Speed)
	}
	c.settings.Store(options.Settings)
	c.Budget = &PowerBudget{controller: c, file: options.BudgetEvents}
	c.learner = learn.New(learn.Options{
		Records: options.Records.Models, Cluster: options.Cluster,
		Settings: func() learn.Settings { return c.settings.Load().learning() },
		GPU:      c.gpu, UserOf: c.userOfWorkload, Clock: options.Clock, Log: options.Log, Pending: c.pending.begin,
	})
	c.forecasts = forecast.New(forecast.Options{
		Records: options.Records.Forecasts, Cluster: options.Cluster,
		Settings: func() *config.Predict { return &c.settings.Load().Predict },
		GPUPower: func() (idle, busy dvfsmodel.Watt) { return c.Foresight.powerOfGPUs() },
		UserName: options.UserName, Clock: options.Clock, Log: options.Log,
		Pending:        c.pending.begin,
		LowerGCPercent: c.gcPercent.lower,
	})
	c.Jobs = jobs.New(&jobs.Options{
		Records: options.Records.Jobs, Cluster: options.Cluster, Resolve: options.Resolve,
		ResolveTimeout: options.ResolveTimeout, Script: options.Script,
		Account: options.Account, Fresh: options.Fresh, StoreTimeout: options.StoreWait,
		Clock: options.Clock,
		Speed: options.Speed, Log: options.Log,
		SeeUser: c.forecasts.SeeUser, Reports: func(node string) bool { return c.reports.Of(node) != nil },
		Write:          func(j *record.Job) { c.decider.WriteJob(j) },
		LowerGCPercent: c.gcPercent.lower,
	})
	c.decider = decide.New(&decide.Options{
		Records: options.Records.Decisions, Cluster: options.Cluster,
		Settings: func() *decide.Settings { return &c.settings.Load().Settings },
		Jobs:     c.Jobs, Models: c.learner, Plan: c.Plan, Backlog: c.waiting.Backlog,
		StoreWait: options.StoreWait, Clock: options.Clock,
		Seed: options.Seed, Log: options.Log, Unwritten: &c.unwritten,
	})
	c.Foresight = &Foresight{
		options: &c.options, settings: c.settings.Load, jobs: c.Jobs, learner: c.learner, decider: c.decider,
		reports: c.reports,
	}
	c.Queries = c.newQuery()
	return c
}

func setDefaults(o *Options) {
	if o.Settings == nil {
		o.Settings = DefaultSettings()
	}
	if o.ResolveTimeout <= 0 {
		o.ResolveTimeout = epdapi.JobWait
	}
	if o.Fresh <= 0 {
		o.Fresh = defaultFresh
	}
	if o.StoreWait <= 0 {
		o.StoreWait = defaultStoreWait
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.OnDecide == nil {
		o.OnDecide = func(Observed) {}
	}
	if o.OnOutcome == nil {
		o.OnOutcome = func(*record.Outcome, string) {}
	}
	if o.EnergiesForeign == nil {
		o.EnergiesForeign = func() int64 { return 0 }
	}
	if o.OnStrange == nil {
		log := o.Log
		o.OnStrange = func(s *ImplausibleReport) { log.Warn(s.What, s.Attrs()...) }
	}
}

// Close waits for what is to be written until the context ends, and then stops
// the controller. The store stays open.
func (c *Controller) Close(ctx context.Context) error {
	err := c.Flush(ctx)
	c.stop()
	c.running.Wait()
	return err
}

// Flush waits until all decisions are in the store and models take account of
// all outcomes recorded so far.
func (c *Controller) Flush(ctx context.Context) error {
	if err := c.unwritten.wait(ctx); err != nil {
		return err
	}
	return c.pending.wait(ctx)
}

// Settings returns those in force.
func (c *Controller) Settings() *Settings { return c.settings.Load() }

// Reload puts other settings in force, if they can be loaded; else nothing
// changes and the error says why. Decisions under way keep theirs.
func (c *Controller) Reload(load func() (*Settings, error)) error {
	c.reloading.Lock() // the one that read last wins
	defer c.reloading.Unlock()
	s, err := load()
	if err != nil {
		return fmt.Errorf("the settings in force stay: %w", err)
	}
	if s == nil || s.Profiles == nil {
		return errors.New("the settings in force stay: there are no others")
	}
	c.settings.Store(s)
	return nil
}

// gpu returns what is known of a GPU model, for learning.
func (c *Controller) gpu(gpuModel string) learn.GPU {
	s := c.settings.Load()
	gpu := learn.GPU{HostW: s.HostPower(gpuModel), Limit: c.decider.GPUs.PowerLimit(gpuModel)}
	if seen := c.decider.GPUs.Clocks(gpuModel); seen != nil {
		gpu.Base, gpu.Allowed = seen.Base, seen.Allowed
	}
	gpu.SiteLimited = s.Live.SiteClocks.Name(s.ModelName(gpuModel))
	if p := s.Profiles.Find(gpuModel); p != nil {
		site, _ := s.Live.SiteClocksOf(p.Name, "", "")
		gpu.Default = p.Default.AtMost(site)
	}
	return gpu
}

// userOfWorkload returns whose jobs a workload's are, by the records; "": they don't tell.
func (c *Controller) userOfWorkload(ctx context.Context, workload string) string {
	page, err := c.options.Records.Jobs.JobRows(ctx, &store.JobFilter{
		Cluster: c.options.Cluster, Workload: workload,
	}, 0, 1)
	if err != nil || len(page.Jobs) == 0 {
		return ""
	}
	return page.Jobs[0].User
}
