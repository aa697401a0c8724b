package pick

import (
	"math"

	"github.com/epplan/epplan/planner"
)

// Conservative is conservative backfilling at default clocks, played beside the real
// run: each task gets the first place that leaves all who came before it alone, on the
// first of the node classes where it can start then. Where run times are as predicted
// it ends tasks about when EASY backfilling does, and what arrives later changes
// nothing about a task, so that each costs one look at what is booked.
type Conservative struct {
	// Belief is how many times as long as predicted tasks take, as far as is known.
	Belief float64

	v      *planner.View
	booked classSchedule
}

// NewConservative begins with nothing that runs.
func NewConservative(v *planner.View) *Conservative {
	c := &Conservative{v: v, Belief: 1}
	c.booked.begin(v.Now, newClassUsage(v).total)
	return c
}

// BookArrival books a task that arrives now, and tells when it would end if it took as long as predicted,
// seconds; +Inf where no class suits it.
func (c *Conservative) BookArrival(task int) float64 {
	var pairs []pair
	t := &c.v.Problem.Tasks[task]
	for class := range c.booked.curves {
		if c.v.CanRunOn(task, class) {
			o := &t.Options[c.v.Option(task, class)]
			pairs = append(pairs, pair{class: class, Prediction: planner.Prediction{
				Time: c.Belief * o.Response.Default().Time, GPUs: float64(o.GPUs) * t.Share,
			}})
		}
	}
	c.booked.advance(c.v.Now)
	best, step := c.booked.firstToStart(pairs)
	if best == noPair {
		return math.Inf(1)
	}
	p := &pairs[best]
	start := c.booked.curves[p.class].at[step]
	predicted := p.Time / c.Belief
	delay := c.wakeDelay(p, start)
	p.Time += delay
	c.booked.book(p, start, 1)
	return start + predicted + delay
}

// wakeDelay returns how long a start waits for a node to be switched on: nodes are filled one by
// one, and those without a task are off.
func (c *Conservative) wakeDelay(p *pair, start float64) (delay float64) {
	k := &c.v.Problem.Cluster.Classes[p.class]
	if start > c.v.Now {
		return 0 // somebody ended there
	}
	left := math.Mod(c.booked.curves[p.class].free[0], float64(k.GPUs)) // of the node that is filled now
	if k.Count == 0 || left+planner.ShareSlack < p.GPUs {
		return k.TurnOnDelay
	}
	return 0
}

// BookRunning books a task that runs already.
func (c *Conservative) BookRunning(class int, gpus, end float64) {
	c.booked.advance(c.v.Now)
	if end > c.v.Now {
		c.booked.curves[class].book(0, gpus, end-c.v.Now)
	}
}
