package jobs

import (
	"context"
	"time"

	"github.com/epplan/epplan/slurm"
)

// Overheard is a source whose lists of jobs the controller takes note of, too: one
// list of a long queue serves both, and [tracker.Sync] leaves Slurm alone for as
// long as after one of its own. An error is whoever asked's alone.
func (t *Tracker) Overheard(source Lister) Lister { return overheard{source, t} }

type overheard struct {
	Lister
	t *Tracker
}

// EachJob implements Source.
func (o overheard) EachJob(ctx context.Context, each func(*slurm.Job) error) error {
	s := &o.t.jobs
	end := s.overhear()
	defer end()
	begin, at := time.Now(), o.t.options.Clock()
	if err := o.t.syncJobs(ctx, told{o.Lister, each}); err != nil {
		return err
	}
	s.report(nil)
	s.postpone(s.note(at, nil, syncEvery, time.Since(begin)))
	return nil
}

// told is a source that tells somebody else first.
type told struct {
	Lister
	first func(*slurm.Job) error
}

// EachJob implements Source.
func (t told) EachJob(ctx context.Context, each func(*slurm.Job) error) error {
	return t.Lister.EachJob(ctx, func(j *slurm.Job) error { //nolint:wrapcheck // the source's own
		if err := t.first(j); err != nil {
			return err
		}
		return each(j)
	})
}

// overhear notes that somebody else asks, until what it returns is called.
func (s *syncing) overhear() (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.others++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.others--
	}
}

// postpone has the next sync be due after a pause.
func (s *syncing) postpone(pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = time.Now().Add(pause)
}

// overhearWait is how long a sync waits for somebody else's list at a time.
const overhearWait = time.Second

// early is how long a sync is still to wait, as somebody else asked, or asks now.
func (s *syncing) early() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.others > 0 {
		return overhearWait
	}
	return time.Until(s.due)
}
