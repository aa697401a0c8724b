package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store"
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

// rows are records of jobs.
type rows struct {
	none
	jobs []store.ListedJob
}

func (r rows) JobRows(context.Context, *store.JobFilter, int64, int) (store.ListedPage, error) {
	return store.ListedPage{Jobs: r.jobs}, nil
}

// Nobody decided about the run, and its job was queued anew since: where its submission before that isn't
// recorded, a node could say that it lasted as long as it likes.
func TestARunBeforeARequeueCountsIfItIsKnownSinceWhenItCanHaveRun(t *testing.T) {
	queuedAnew := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		recorded, decided, unmatched bool
	}{
		"its submission isn't recorded":          {false, false, true},
		"its submission is recorded":             {true, false, false},
		"it was decided, before Slurm was asked": {false, true, false},
	} {
		tracker := newTracker(func(o *Options) {
			o.Clock = func() time.Time { return queuedAnew.Add(time.Minute) }
			o.Resolve = func(_ context.Context, id slurm.JobID) (slurm.Job, error) {
				return slurm.Job{
					ID: id, State: slurm.JobState{Base: slurm.Pending}, Submit: queuedAnew, Restarts: 1,
				}, nil
			}
			known := rows{}
			if c.recorded {
				before := record.Job{ID: 7, Submitted: queuedAnew.Add(-time.Minute)}
				known.jobs = []store.ListedJob{{Job: before}}
			}
			o.Records = known
		})
		o := record.Outcome{
			JobID: 7, Node: "n1", RunID: "r", Started: queuedAnew.Add(-time.Hour), Ended: queuedAnew,
		}
		run := Run{}
		if c.decided {
			run, o.DecisionID = Run{Decided: true, Began: o.Started}, 3
		}
		settled, err := tracker.Settle(t.Context(), 7, &o, run)
		if err != nil || o.ExitState != string(slurm.Requeued) || o.Unmatched != c.unmatched {
			t.Errorf("%s: %v, %s, unmatched %v", name, err, o.ExitState, o.Unmatched)
		}
		if most := (time.Minute + runSlack + killSlack).Seconds(); c.recorded && settled.Bounds.Lasted > most {
			t.Errorf("%s: it lasted %v s at most, want %v", name, settled.Bounds.Lasted, most)
		}
	}
}
