package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

func TestAnOutcomeThatIsSettledWaitsNoMore(t *testing.T) {
	began := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	now, away := began.Add(time.Hour), true
	tracker := newTracker(func(o *Options) {
		o.Clock = func() time.Time { return now }
		o.Resolve = func(_ context.Context, id slurm.JobID) (slurm.Job, error) {
			if away {
				return slurm.Job{}, slurm.ErrUnreachable
			}
			return slurm.Job{
				ID: id, State: slurm.JobState{Base: slurm.Completed}, Submit: began.Add(-time.Minute),
				Start: began,
			}, nil
		}
	})
	o := record.Outcome{JobID: 7, Node: "n1", RunID: "r", Ended: now}
	run := Run{Began: began}
	if _, err := tracker.Settle(t.Context(), 7, &o, run); !errors.Is(err, slurm.ErrUnreachable) ||
		len(tracker.waiting.since) != 1 {
		t.Errorf("while Slurm is away: %v, %d wait", err, len(tracker.waiting.since))
	}
	now, away = now.Add(patience-time.Second), false
	settled, err := tracker.Settle(t.Context(), 7, &o, run)
	if err != nil || settled.Submitted != began.Add(-time.Minute).Unix() || settled.Job == nil ||
		o.ExitState != record.Completed || len(tracker.waiting.since) != 0 {
		t.Errorf("%v: %+v, %q, %d wait still", err, settled, o.ExitState,
			len(tracker.waiting.since))
	}
}

// A job is kept with any state that Slurm may say.
func TestEveryEndStateIsKept(t *testing.T) {
	for _, s := range []slurm.State{slurm.Completed, slurm.BootFail, slurm.LaunchFailed, slurm.Revoked} {
		if got := codeOf(s).state(); got != s {
			t.Errorf("%s is kept as %s", s, got)
		}
	}
}
