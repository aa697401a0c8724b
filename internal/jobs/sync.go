package jobs

import (
	"cmp"
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/pause"
	"github.com/epplan/epplan/slurm"
)

// Lister lists all of a cluster's jobs and nodes; [slurm.Client] is one.
type Lister interface {
	// EachJob gives all jobs, one after the other, or says that some are missing.
	EachJob(ctx context.Context, each func(*slurm.Job) error) error
	Nodes(ctx context.Context) ([]slurm.Node, error)
}

// How often Slurm is asked for everything.
const (
	syncEvery  = 10 * time.Second
	nodesEvery = time.Minute
	// syncRest is how long Slurm is left alone at least, in times of what it
	// took to answer: a big queue is asked for less often.
	syncRest = 9
	// syncPause is the longest pause after failures.
	syncPause  = time.Minute
	maxTrouble = 400             // bytes of what goes wrong that are shown
	syncBound  = epdapi.ListWait // of one question
	// manyJobs is the length of a list from which on the memory that reading it
	// took is given back at once.
	manyJobs = 10_000
)

// syncing is how a sync fares.
type syncing struct {
	what  string
	clock func() time.Time
	log   *slog.Logger

	mu       sync.Mutex
	at       time.Time // of the last answer
	failures int       // since then
	err      error
	due      time.Time // of the next question, after somebody else's answer
	others   int       // that ask at present, whose answers count, too
}

// Sync keeps up with Slurm until the context ends: it asks for all jobs again
// and again (0: every 10 s), and for the nodes every minute. When Slurm doesn't
// answer it is asked less often, and what is known stays.
func (t *Tracker) Sync(ctx context.Context, source Lister, every time.Duration) {
	every = cmp.Or(max(0, every), syncEvery)
	var both sync.WaitGroup
	both.Go(func() {
		t.jobs.again(ctx, every, func(ctx context.Context) error { return t.syncJobs(ctx, source) })
	})
	both.Go(func() {
		t.nodes.again(ctx, max(every, nodesEvery), func(ctx context.Context) error {
			return t.syncNodes(ctx, source)
		})
	})
	both.Wait()
}

// again asks until the context ends.
func (s *syncing) again(ctx context.Context, every time.Duration, ask func(context.Context) error) {
	for rest := time.Duration(0); pause.For(ctx, rest) == nil; {
		if rest = s.wait(); rest > 0 {
			continue
		}
		begin := time.Now()
		at := s.clock()
		bound, cancel := context.WithTimeout(ctx, syncBound)
		err := ask(bound)
		cancel()
		if ctx.Err() != nil {
			return
		}
		s.report(err)
		rest = s.note(at, err, every, time.Since(begin))
	}
}

// report logs what changed.
func (s *syncing) report(err error) {
	s.mu.Lock()
	failures := s.failures
	s.mu.Unlock()
	switch {
	case err != nil && failures == 0:
		s.log.Warn("Slurm doesn't say what there is; what is known stays", "of", s.what, "error", err)
	case err == nil && failures > 0:
		s.log.Info("Slurm answers again", "of", s.what, "failures", failures)
	}
}

// note keeps how a question went, and returns the pause until the next one.
func (s *syncing) note(at time.Time, err error, every, took time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		if at.After(s.at) {
			s.at = at
		}
		s.failures, s.err = 0, nil
		return max(every, syncRest*took)
	}
	s.failures++
	s.err = err
	const doublings = 10
	return max(every, min(every<<min(s.failures, doublings), syncPause), syncRest*took)
}

// status is how the sync fares, for showing.
func (s *syncing) status() epdapi.SyncStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := epdapi.SyncStatus{At: s.at, Failures: s.failures}
	if s.err != nil {
		status.Trouble = slurm.Printable(s.err.Error(), maxTrouble)
	}
	return status
}

// syncJobs asks for all jobs. Those that Slurm doesn't name any more are
// forgotten, unless they were asked for later than all.
func (t *Tracker) syncJobs(ctx context.Context, source Lister) error {
	end := t.options.LowerGCPercent()
	n, err := t.takeJobs(ctx, source)
	end()
	if n >= manyJobs {
		debug.FreeOSMemory() // the list is garbage by now
	}
	return err
}

// listed is a job as Slurm's list has it, until the whole list is there.
type listed struct {
	job      *Job
	id       slurm.JobID
	priority uint32
	ended    bool
}

// takeJobs asks for all jobs and returns how many there are. A list that breaks
// off changes nothing. Jobs as they were before are kept once.
func (t *Tracker) takeJobs(ctx context.Context, source Lister) (int, error) {
	asked := t.table.question()
	known, _ := t.table.len()
	list := make([]listed, 0, known+known/8)
	err := source.EachJob(ctx, func(j *slurm.Job) error {
		list = append(list, listed{t.jobFrom(j), j.ID, j.Priority, j.State.Ended()})
		return nil
	})
	if err != nil {
		return len(list), err
	}
	ended := make(map[slurm.JobID]knownJob)
	now := t.options.Clock()
	for _, l := range list {
		t.keep(l, asked)
		if l.job.Scripted {
			t.table.settleToken(l.job.Token, now)
		}
		if l.ended && len(ended) < maxEnded {
			ended[l.id] = knownJob{l.job, asked, 0}
		}
	}
	t.table.prune(asked, ended)
	t.missed.note(ctx, ended)
	return len(list), nil
}

func (t *Tracker) syncNodes(ctx context.Context, source Lister) error {
	nodes, err := source.Nodes(ctx)
	if err != nil {
		return err
	}
	t.nodesMu.Lock()
	defer t.nodesMu.Unlock()
	t.nodeList = nodes
	return nil
}
