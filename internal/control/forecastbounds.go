package control

import (
	"math"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/predict"
)

// killing is how long after its time limit a job has been killed by Slurm: it looks
// once in a while, and a job is given half a minute (KillWait) to end by itself.
const killing = time.Minute

// possible keeps intervals to what can be: a job runs no longer than Slurm lets it, and
// its GPUs use neither less than idle ones nor more than busy ones can. An expected
// time beyond the limit remains, as it says what the job would need; a power that
// itself lies outside tells that the profile isn't that of the boards. Then the bound
// isn't used.
func (c *Controller) possible(f *predict.Forecast, a *asked) {
	t, e, p := &f[predict.Time], &f[predict.Energy], &f[predict.Power]
	longest := a.limit.Seconds() + killing.Seconds()
	if t.Value <= longest {
		*t = t.Within(0, longest)
	} else {
		longest = math.Inf(1)
	}
	idle, busy := c.powerOfGPUs()
	if idle, busy := float64(idle), float64(busy); idle <= p.Value && p.Value <= busy {
		*p = p.Within(idle, busy)
		*e = e.Within(0, longest*busy*float64(a.gpus)/dvfsmodel.JoulesPerKWh)
	}
}

// powerOfGPUs is the least and the most that one of the GPUs uses that a job may get, by
// their profiles: 0 and infinite where a profile doesn't say.
func (c *Controller) powerOfGPUs() (idle, busy dvfsmodel.Watt) {
	names := c.gpuModels()
	if len(names) == 0 {
		return 0, dvfsmodel.Watt(math.Inf(1))
	}
	idle = dvfsmodel.Watt(math.Inf(1))
	s := c.settings.Load()
	for _, name := range names {
		p, err := s.Profiles.Lookup(name)
		if err != nil {
			return 0, dvfsmodel.Watt(math.Inf(1))
		}
		idle = min(idle, p.IdleW)
		if busy = max(busy, p.BusyW); p.BusyW == 0 {
			busy = dvfsmodel.Watt(math.Inf(1))
		}
	}
	return idle, busy
}
