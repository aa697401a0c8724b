package control

import (
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// Where a minute of a simulated GPU is a second of Slurm's clock, so is a minute
// of a limit.
func TestLimitsAreInTheTimeOfTheGPUs(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Speed = 60 })
	r.job(1, func(j *slurm.Job) { j.TimeLimit.Duration = time.Hour })
	if d := r.decide(ask(1)); d.LimitS != record.Known(60) {
		t.Errorf("an hour is %v s", d.LimitS)
	}
	r.job(2, func(j *slurm.Job) { j.TimeLimit.Unlimited = true })
	if d := r.decide(ask(2)); d.LimitS != (record.Number{}) {
		t.Errorf("no limit is %v s", d.LimitS)
	}
	r.job(3, func(j *slurm.Job) { j.TimeLimit.Duration = 10 * time.Second })
	if d := r.decide(ask(3)); d.LimitS != record.Known(1) {
		t.Errorf("a limit below a second is %v s", d.LimitS)
	}
}
