package control

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// agentRun is a run as its agent knows it: what it asked, what it was told, what it
// sends.
type agentRun struct {
	request  *epdapi.DecideRequest
	decision live.Decision
	parts    lotParts
	settings *Settings
	lost     bool            // the decision may not be in the records
	joined   bool            // it was there when the outcome came
	outcome  *record.Outcome // nil: the run lasts
	kept     *record.Outcome // as it was recorded; nil: it isn't
	removed  int             // in which round its details were removed; 0: they are there
	second   *agentRun       // of the same job on another node; nil: there is none
}

// lotParts are the parts of the jobs that the lot has in arms other than the treated one.
type lotParts struct {
	holdOut  live.Number
	constant live.Number // unknown: there is no such arm
}

// lotPartsOn returns the parts on GPUs of a model.
func lotPartsOn(s *Settings, gpuModel string) lotParts {
	p := lotParts{holdOut: live.Known(s.Live.HoldOut)}
	if _, stated := s.Live.ConstantClocks[s.ModelName(gpuModel)]; stated && s.Live.ConstantArm > 0 {
		p.constant = live.Known(s.Live.ConstantArm)
	}
	return p
}

// lot returns what a job draws on cluster alpha with seed 7: the rule once more, as drawn jobs
// stay in their arms over all versions.
func lot(job slurm.JobID) float64 {
	key := sha256.Sum256(append([]byte("hold-out alpha\x00"), binary.LittleEndian.AppendUint64(nil, 7)...))
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64(key[:], uint64(job)))
	return float64(binary.LittleEndian.Uint64(sum[:])) / math.Exp2(64)
}

// machine is a controller, the Slurm and the agents around it, and what should have
// come of it all.
type machine struct {
	*Controller
	t      testing.TB
	path   string
	clock  *hand
	text   string // of the settings in force
	store  *store.Store
	faulty *faulty

	jobs      map[slurm.JobID]*slurm.Job // as Slurm has them
	most      map[slurm.JobID]live.Limit
	suspended map[slurm.JobID]bool // at some time
	away      bool                 // slurmctld doesn't answer
	next      int
	runs      []*agentRun
	kept      map[string]*agentRun // recorded ones, by run

	rounds int // of removing old records

	// What came since the controller's start.
	submissions, taken int64
}

// faulty is a store that fails while it is told to.
type faulty struct {
	broken
	after atomic.Bool // what is written is there all the same: the answer got lost
}

// WriteProblem implements Records.
func (f *faulty) WriteProblem() error { return errors.Join(f.err(), f.everything.WriteProblem()) }

// PutOutcome implements Records.
func (f *faulty) PutOutcome(ctx context.Context, o *record.Outcome) (store.Receipt, error) {
	receipt, err := f.broken.PutOutcome(ctx, o)
	if f.after.Swap(false) && err == nil {
		return 0, store.ErrClosed
	}
	return receipt, err
}

// Configurations between which the machine is switched.
var machineTexts = []string{
	enforceAll,
	"[live]\nmode = \"enforce\"\nhold_out = 0.4\nexplore = 0\n",
	"[live]\nmode = \"enforce\"\nhold_out = 0.4\nexplore = 0.5\nmin_core = 0.75\n",
	"[live]\nmode = \"enforce\"\nhold_out = 0.3\nconstant_arm = 0.3\nconstant_clocks = {V100 = 1237}\n",
	"[live]\nmode = \"advise\"\nhold_out = 0.4\n",
	"[live]\nmode = \"observe\"\n",
	"[live]\nmode = \"enforce\"\nhold_out = 1\n[records]\nkeep_days = 3\n",
	"[live]\nmode = \"enforce\"\nhold_out = 0.4\nmax_core = 0.9\nmax_slowdown = 1.05\n" +
		"[records]\nkeep_days = 3\ndetail_days = 1\n",
}

// open opens the controller, as after a restart.
func (m *machine) open() {
	m.t.Helper()
	s, err := store.Open(context.Background(), m.path, &store.Options{Now: m.clock.read})
	if err != nil {
		m.t.Fatal(err)
	}
	m.submissions, m.taken = 0, 0
	before := m.faulty
	m.store, m.faulty = s, &faulty{broken: broken{everything: everythingIn{s, s.Learning}}}
	if before != nil {
		m.faulty.why.Store(before.why.Load())
	}
	m.Controller, err = New(context.Background(), Options{
		Records: recordsIn(m.faulty), Cluster: "alpha", Settings: settings(m.t, m.text),
		Clock: m.clock.read, Seed: 7, StoreWait: 10 * time.Second, Resolve: m.resolve,
		ResolveTimeout: time.Minute, // of a machine that is busy
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) close() {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if errors.Is(m.faulty.err(), store.ErrFull) { // nobody waits for room
		m.stop()
		m.running.Wait()
	} else if err := m.Close(ctx); err != nil {
		m.t.Error(err)
	}
	if err := m.store.Close(); err != nil {
		m.t.Error(err)
	}
}

// resolve returns a question to slurmctld.
func (m *machine) resolve(_ context.Context, id slurm.JobID) (slurm.Job, error) {
	switch {
	case m.away:
		return slurm.Job{}, errors.New("slurmctld doesn't answer")
	case m.jobs[id] == nil:
		return slurm.Job{}, fmt.Errorf("job %s: %w", id, slurm.ErrNotFound)
	}
	return *m.jobs[id], nil
}

// EachJob implements [jobs.Lister].
func (m *machine) EachJob(_ context.Context, each func(*slurm.Job) error) (slurm.Unread, error) {
	if m.away {
		return slurm.Unread{}, errors.New("slurmctld doesn't answer")
	}
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		if err := each(m.jobs[id]); err != nil {
			return slurm.Unread{}, err
		}
	}
	return slurm.Unread{}, nil
}

// Nodes implements [jobs.Lister].
func (*machine) Nodes(context.Context) ([]slurm.Node, slurm.Unread, error) {
	return nil, slurm.Unread{}, nil
}

// hear has the controller ask Slurm for all jobs.
func (m *machine) hear() {
	if takeList(context.Background(), m.Controller, m) == nil {
		for id, j := range m.jobs {
			m.most[id] = j.TimeLimit
		}
	}
}
