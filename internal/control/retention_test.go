package control

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// What was decided for a job that Slurm didn't tell of goes from memory after a day. Its
// run is told the same still.
func TestADecisionThatMemoryForgotIsToldAgain(t *testing.T) {
	away := true
	r := newRig(t, func(o *Options) {
		o.Resolve = func(_ context.Context, id slurm.JobID) (slurm.Job, error) {
			if away {
				return slurm.Job{}, errors.New("slurmctld doesn't answer")
			}
			return slurm.Job{
				ID: id, Name: "train", User: "ada", UID: 1000, Submit: start.Add(time.Minute), NodeCount: 1,
				TimeLimit: live.LimitOf(48 * time.Hour), Comment: "epplan:fixed=1087",
				State: slurm.JobState{Base: slurm.Running}, Allocated: slurm.TRES{"gres/gpu": 1},
			}, nil
		}
	})
	r.clock.move(2 * time.Minute)
	first := r.decide(ask(7))
	r.flush()
	r.clock.move(25 * time.Hour)
	r.decider.ForgetStale()
	away = false
	if again := r.decide(ask(7)); first.Apply || again.Apply || again.Reason != first.Reason {
		t.Errorf("told %+v, and a day later %+v", first, again)
	}
	r.clock.move(time.Minute)
	request := ask(7)
	request.RunID = "another"
	if d := r.decide(request); !d.Apply {
		t.Errorf("another run: %+v", d)
	}
}
