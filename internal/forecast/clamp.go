package forecast

import (
	"math"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/predict"
)

// killing is how long after its time limit a job has been killed by Slurm: it looks
// once in a while, and a job is given half a minute (KillWait) to end by itself.
const killing = time.Minute

// clampForecast keeps intervals to what can be: a job runs no longer than Slurm lets it, and
// its GPUs use neither less than idle ones nor more than busy ones can. An expected
// time beyond the limit remains, as it says what the job would need; a power that
// itself lies outside tells that the profile isn't that of the boards. Then the bound
// isn't used.
func clampForecast(f *predict.Forecast, j *Job, idle, busy dvfsmodel.Watt) {
	t, e, p := &f[predict.Time], &f[predict.Energy], &f[predict.Power]
	longest := j.Limit.Seconds() + killing.Seconds()
	if t.Value <= longest {
		*t = t.ClampedTo(0, longest)
	} else {
		longest = math.Inf(1)
	}
	if idle, busy := float64(idle), float64(busy); idle <= p.Value && p.Value <= busy {
		*p = p.ClampedTo(idle, busy)
		*e = e.ClampedTo(0, longest*busy*float64(j.GPUs)/dvfsmodel.JoulesPerKWh)
	}
}
