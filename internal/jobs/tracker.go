package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// Records are what a tracker needs of the store.
type Records interface {
	// DecisionByToken is the record of the submission that a token was given for;
	// [store.ErrNotFound]: there is none.
	DecisionByToken(ctx context.Context, cluster, token string) (record.Decision, error)
	// JobRows are records of jobs, the latest first, from before a page's Next on.
	JobRows(ctx context.Context, filter *store.JobFilter, before int64, limit int) (store.ListedPage, error)
}

// Options are what a tracker works with. Only Resolve, Script and Account may be nil.
type Options struct {
	Records Records
	Cluster string
	// Resolve asks Slurm for a job that isn't known, or not lately; nil: nobody can.
	// It is bounded by ResolveTimeout.
	Resolve        func(ctx context.Context, id slurm.JobID) (slurm.Job, error)
	ResolveTimeout time.Duration
	// Script asks Slurm for a job's script, up to a length; nil: nobody can.
	Script func(ctx context.Context, id slurm.JobID, most int) (string, error)
	// Account asks Slurm's accounting how jobs ended that Slurm itself doesn't
	// know any more; nil: there is none.
	Account Accounting
	// Fresh is for how long what Slurm said of a job is believed.
	Fresh time.Duration
	// StoreTimeout is how long a look-up may take that a job's start waits for.
	StoreTimeout time.Duration
	Clock        func() time.Time
	// Speed is how much faster than Slurm's clock the GPUs' time goes by. 0: 1.
	Speed float64
	Log   *slog.Logger
	// SeeUser is told whose a job is that is new or changed; it must be quick.
	SeeUser func(uid uint32, user, account, partition string)
	// Reports reports whether a node's agent reports: its jobs' ends come from there.
	Reports func(node string) bool
	// Write has a job recorded soon.
	Write func(*record.Job)
	// LowerGCPercent keeps garbage small until what it returns is called: a long list
	// is garbage soon.
	LowerGCPercent func() (end func())
}

// Tracker knows what Slurm says of jobs and nodes. Its methods may be called by several
// goroutines.
type Tracker struct {
	options *Options
	table   table
	jobs    syncing
	nodes   syncing

	nodesMu  sync.Mutex
	nodeList []slurm.Node

	countsMu sync.Mutex
	counts   epdapi.QueueCounts // as of one of Slurm's lists

	accounts accounts
	waiting  waitingOutcomes // outcomes
	unknown  logLimiter      // nodes whose jobs ended nobody knows how
	missed   missed
	Hooks    *HookWatch
	scripts  scripts
	asking   chan struct{} // questions to Slurm about one job

	mu    sync.Mutex
	calls map[slurm.JobID]*call // questions to Slurm under way
}

// New makes a tracker that knows of no job yet.
func New(options *Options) *Tracker {
	t := &Tracker{
		options: options, asking: make(chan struct{}, maxAsking), calls: make(map[slurm.JobID]*call),
	}
	t.table.init(options.Clock, options.Fresh)
	t.accounts.decided, t.accounts.undecided = make(chan struct{}, 1), make(chan struct{}, 1)
	t.accounts.log = options.Log
	t.jobs = syncing{what: "jobs", clock: options.Clock, log: options.Log}
	t.nodes = syncing{what: "nodes", clock: options.Clock, log: options.Log}
	t.Hooks = newHookWatch(options.Clock)
	t.scripts = scripts{options, &t.table, t.Hooks}
	t.missed = missed{options: options, withSubmission: t.WithSubmission}
	return t
}

// Get returns what is known of a job, nil: nothing.
func (t *Tracker) Get(id slurm.JobID) *Job { return t.table.get(id) }

// Len returns how many jobs are known, and how many submissions without a job yet.
func (t *Tracker) Len() (known, tokens int) { return t.table.len() }

// Nodes returns those of Slurm's last answer. The caller doesn't change them.
func (t *Tracker) Nodes() []slurm.Node {
	t.nodesMu.Lock()
	defer t.nodesMu.Unlock()
	return t.nodeList
}

// Status returns how keeping up with Slurm's jobs and nodes goes.
func (t *Tracker) Status() (jobs, nodes epdapi.SyncStatus) { return t.jobs.status(), t.nodes.status() }

// Number returns the number of a job as commands and pages name it: a number, or a task of an array, such
// as 4_3, that Slurm lists or that is in the records. The error is [epdapi.ErrRequest], or
// [store.ErrNotFound] for a task that isn't known.
func (t *Tracker) Number(ctx context.Context, text string) (slurm.JobID, error) {
	ref, err := slurm.ParseJobRef(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w: %w", epdapi.ErrRequest, err)
	case ref.Step != "" || ref.Het || ref.Array && ref.Task < 0:
		return 0, fmt.Errorf("%w: %q is no job, want a number, or a task of an array such as 4_3",
			epdapi.ErrRequest, text)
	case !ref.Array:
		return ref.Job, nil
	}
	if id, ok := t.table.arrayTask(ref.Job, ref.Task); ok {
		return id, nil
	}
	id, err := t.options.recordedTask(ctx, ref.Job, ref.Task)
	if err == nil && id == 0 {
		err = fmt.Errorf("task %s of an array: %w", text, store.ErrNotFound)
	}
	return id, err
}

// Submitted keeps what a submission said until its job is known: Slurm tells the token
// with it.
func (t *Tracker) Submitted(token string, from Source, ownFreq bool, at time.Time) {
	t.table.putToken(token, submitted{source: from, ownFreq: ownFreq, at: at.Unix()})
	t.Hooks.noteSubmission()
}
