package jobs

import (
	"context"
	"time"

	"github.com/epplan/epplan/slurm"
)

// Tee returns a source of lists of jobs that the tracker takes note of, too: one list of a
// long queue serves both, and [Tracker.Sync] leaves Slurm alone for as long as after one
// of its own. An error is the caller's alone.
func (t *Tracker) Tee(source Lister) Lister { return tee{source, t} }

type tee struct {
	Lister
	t *Tracker
}

// EachJob implements [Lister].
func (o tee) EachJob(ctx context.Context, each func(*slurm.Job) error) (slurm.Unread, error) {
	s := &o.t.jobs
	end := s.beginOther()
	defer end()
	begin, at := time.Now(), o.t.options.Clock()
	both := observedLister{o.Lister, each, new(slurm.Unread)}
	if err := o.t.syncJobs(ctx, both); err != nil {
		return slurm.Unread{}, err
	}
	s.report(nil)
	s.postpone(s.note(at, nil, syncEvery, time.Since(begin)))
	return *both.unread, nil
}

// observedLister is a source whose jobs somebody else reads first.
type observedLister struct {
	Lister
	observer func(*slurm.Job) error
	unread   *slurm.Unread
}

// EachJob implements [Lister].
func (t observedLister) EachJob(ctx context.Context, each func(*slurm.Job) error) (slurm.Unread, error) {
	var err error
	*t.unread, err = t.Lister.EachJob(ctx, func(j *slurm.Job) error {
		if err := t.observer(j); err != nil {
			return err
		}
		return each(j)
	})
	return *t.unread, err //nolint:wrapcheck // the source's own
}

// beginOther notes that somebody else asks, until what it returns is called.
func (s *syncing) beginOther() (end func()) {
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

// otherWait is how long a sync waits for somebody else's list at a time.
const otherWait = time.Second

// wait returns how long a sync is still to wait, as somebody else asked, or asks now.
func (s *syncing) wait() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.others > 0 {
		return otherWait
	}
	return time.Until(s.due)
}
