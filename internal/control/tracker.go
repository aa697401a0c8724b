package control

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// trackerRecords are what a tracker needs of the store.
type trackerRecords interface {
	// DecisionByToken is the record of the submission that a token was given for;
	// [store.ErrNotFound]: there is none.
	DecisionByToken(ctx context.Context, cluster, token string) (record.Decision, error)
	// JobRows are records of jobs, the latest first, from before a page's Next on.
	JobRows(ctx context.Context, filter *store.JobFilter, before int64, limit int) (store.ListedPage, error)
}

// trackerOptions are what a tracker works with. Only Resolve and Account may be nil.
type trackerOptions struct {
	Records trackerRecords
	Cluster string
	// Resolve asks Slurm for a job that isn't known, or not lately; nil: nobody can.
	// It is bounded by ResolveTimeout.
	Resolve        func(ctx context.Context, id slurm.JobID) (slurm.Job, error)
	ResolveTimeout time.Duration
	// Account asks Slurm's accounting how jobs ended that Slurm itself doesn't
	// know any more; nil: there is none.
	Account Accounting
	// Fresh is for how long what Slurm said of a job is believed.
	Fresh time.Duration
	// StoreWait is how long a look-up may take that a job's start waits for.
	StoreWait time.Duration
	Clock     func() time.Time
	// Speed is how much faster than Slurm's clock the GPUs' time goes by. 0: 1.
	Speed float64
	Log   *slog.Logger
	// SeeUser is told whose a job is that is new or changed; it must be quick.
	SeeUser func(uid uint32, user, account, partition string)
	// Reports reports whether a node's agent reports: its jobs' ends come from there.
	Reports func(node string) bool
	// Write has a job recorded soon.
	Write func(*record.Job)
	// LittleGarbage keeps garbage small until what it returns is called: a long list
	// is garbage soon.
	LittleGarbage func() (end func())
}

// tracker knows what Slurm says of jobs and nodes. Its methods may be called by several
// goroutines.
type tracker struct {
	options trackerOptions
	started time.Time
	table   jobTable
	jobs    syncing
	nodes   syncing

	nodesMu  sync.Mutex
	nodeList []slurm.Node

	countsMu sync.Mutex
	counts   epdapi.QueueCounts // as of one of Slurm's lists

	accounts accounts
	waiting  waiting // outcomes
	missed   missed
	asking   chan struct{} // questions to Slurm about one job

	mu    sync.Mutex
	calls map[slurm.JobID]*call // questions to Slurm under way
}

// newTracker makes a tracker that knows of no job yet.
func newTracker(options *trackerOptions) *tracker {
	t := &tracker{
		options: *options, started: options.Clock(), asking: make(chan struct{}, maxAsking), calls: make(map[slurm.JobID]*call),
	}
	t.table.init()
	t.accounts.turn = make(chan struct{}, 1)
	t.jobs.what, t.nodes.what = "jobs", "nodes"
	return t
}

// Get is what is known of a job, nil: nothing.
func (t *tracker) Get(id slurm.JobID) *knownJob { return t.table.get(id) }

// Len is how many jobs are known, and how many submissions without a job yet.
func (t *tracker) Len() (known, tokens int) { return t.table.len() }

// Nodes are those of Slurm's last answer. The caller doesn't change them.
func (t *tracker) Nodes() []slurm.Node {
	t.nodesMu.Lock()
	defer t.nodesMu.Unlock()
	return t.nodeList
}

// Status is how keeping up with Slurm's jobs and nodes goes.
func (t *tracker) Status() (jobs, nodes epdapi.SyncStatus) { return t.jobs.status(), t.nodes.status() }

// ArrayTask is the number of an array's task: its own, or that of the tasks that
// haven't been split off yet.
func (t *tracker) ArrayTask(array slurm.JobID, task int) (id slurm.JobID, ok bool) {
	return t.table.arrayTask(array, task)
}

// Submitted keeps what a submission said until its job is known: Slurm tells the token
// with it.
func (t *tracker) Submitted(token string, from source, ownFreq bool, at time.Time) {
	t.table.putToken(token, submitted{source: from, ownFreq: ownFreq, at: at.Unix()})
}
