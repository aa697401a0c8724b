package control

import (
	"testing"
	"time"

	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// Where a minute of a simulated GPU is a second of Slurm's clock, so is a minute
// of a limit.
func TestLimitsAreInTheTimeOfTheGPUs(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Speed = 60 })
	r.job(1, func(j *slurm.Job) { j.TimeLimit = live.LimitOf(time.Hour) })
	if d := r.decide(ask(1)); d.Limit != live.LimitOf(time.Minute) {
		t.Errorf("an hour is %v", d.Limit)
	}
	r.job(2, func(j *slurm.Job) { j.TimeLimit = live.Unlimited() })
	if d := r.decide(ask(2)); !d.Limit.IsUnlimited() {
		t.Errorf("no limit is %v", d.Limit)
	}
	r.job(3, func(j *slurm.Job) { j.TimeLimit = live.LimitOf(10 * time.Second) })
	if d := r.decide(ask(3)); d.Limit != live.LimitOf(time.Second) {
		t.Errorf("a limit below a second is %v", d.Limit)
	}
}
