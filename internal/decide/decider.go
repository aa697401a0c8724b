package decide

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/internal/liveplan"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// Records are what deciding needs of the store.
type Records interface {
	// WriteProblem is why records can't be written or read, nil if they can.
	WriteProblem() error
	// PutJob stores what is known of a job.
	PutJob(ctx context.Context, j *record.Job) error
	// PutDecision stores a decision, or a submission, and returns its number.
	PutDecision(ctx context.Context, d *record.Decision) (int64, error)
	// DecisionsOfJob are the decisions of a job's number, the oldest first: numbers come
	// again.
	DecisionsOfJob(ctx context.Context, cluster string, jobID int64) ([]record.Decision, error)
}

// Options are what a decider works with. None may be left out.
type Options struct {
	Records Records
	Cluster string
	// Settings are those in force.
	Settings func() *Settings
	Jobs     *jobs.Tracker
	Models   *learn.Learner
	Plan     *liveplan.InForce
	// Backlog is how many GPUs jobs wait for, other than one, that could have those of a node, by GPU
	// that they could have; it must be quick. It is asked where waiting has a price.
	Backlog func(job slurm.JobID, node string) float64
	// StoreWait is how long records may wait to be written before jobs are left
	// at default clocks, and how long a look-up may take.
	StoreWait time.Duration
	Clock     func() time.Time
	Seed      uint64 // of the lot; keep it over restarts, and to yourself
	Log       *slog.Logger
	// Unwritten is told of each record that waits to be written, and when it doesn't any
	// more.
	Unwritten interface {
		Add()
		Done()
	}
}

// Decider decides. Its methods may be called by several goroutines.
type Decider struct {
	GPUs SeenGPUs // what agents said of theirs

	options    *Options
	started    time.Time
	armKey     [sha256.Size]byte // key of the lot of those held out
	exploreKey [sha256.Size]byte // and of those that explore
	tables     tableCache
	writer     *writer
	evicted    atomic.Bool  // decisions of open runs may be in the store only
	forgotten  atomic.Int64 // those of jobs submitted until then, Unix seconds, may be, too

	mu      sync.Mutex
	decided map[jobOnNode]*Decided
	leads   map[leadKey]*Decided // which the other nodes of a run follow
}

type jobOnNode struct {
	job  slurm.JobID
	node string
}

const maxDecided = 200_000

// New makes a decider that has decided nothing yet. What it decides is written once
// [Decider.Run] runs.
func New(options *Options) *Decider {
	var seed [8]byte
	binary.LittleEndian.PutUint64(seed[:], options.Seed)
	return &Decider{
		options: options, started: options.Clock(),
		armKey:     sha256.Sum256(append([]byte("hold-out "+options.Cluster+"\x00"), seed[:]...)),
		exploreKey: sha256.Sum256(append([]byte("explore "+options.Cluster+"\x00"), seed[:]...)),
		tables:     tableCache{seed: maphash.MakeSeed(), byKey: make(map[tableKey]*ClockTable)},
		writer:     newWriter(options),
		decided:    make(map[jobOnNode]*Decided), leads: make(map[leadKey]*Decided),
	}
}

// Run writes jobs and decisions until the context ends.
func (dr *Decider) Run(ctx context.Context) { dr.writer.run(ctx) }

// WriteJob has a job recorded soon.
func (dr *Decider) WriteJob(j *record.Job) { dr.writer.put(writeTask{job: j}) }

// WriteSubmission has a submission recorded soon.
func (dr *Decider) WriteSubmission(d *record.Decision) { dr.writer.put(writeTask{decision: d}) }

// Unwritten returns how many records wait to be written, and how many never were.
func (dr *Decider) Unwritten() (waiting, lost int64) {
	return dr.writer.waiting.Load(), dr.writer.lost.Load()
}

// Trouble is why records aren't being written, nil: they are. Until it passes, runs are
// left at default clocks.
func (dr *Decider) Trouble() error { return dr.writer.trouble(dr.options.StoreWait) }
