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
	v       *planner.View
	classes []capacityProfile
}

// NewConservative begins with nothing that runs.
func NewConservative(v *planner.View) *Conservative {
	c := &Conservative{v: v}
	total := newClassUsage(v).total
	for class := range total {
		c.classes = append(c.classes, capacityProfile{at: []float64{v.Now}, free: []float64{total[class]}})
	}
	return c
}

// BookArrival books a task that arrives now, and tells when it would end, seconds; +Inf where
// no class suits it.
func (c *Conservative) BookArrival(task int) float64 {
	best, start, pair := noPair, math.Inf(1), pair{}
	t := &c.v.Problem.Tasks[task]
	for class := range c.classes {
		if !c.v.CanRunOn(task, class) {
			continue
		}
		o := &t.Options[c.v.Option(task, class)]
		p := planner.Prediction{Time: o.Response.Default().Time, GPUs: float64(o.GPUs) * t.Share}
		booked := &c.classes[class]
		booked.dropBefore(c.v.Now)
		if at := booked.earliest(p.GPUs, p.Time); at >= 0 && booked.at[at] < start {
			best, start, pair.Prediction = class, booked.at[at], p
		}
	}
	if best == noPair {
		return math.Inf(1)
	}
	pair.Time += c.wakeDelay(best, start, pair.GPUs)
	booked := &c.classes[best]
	booked.book(booked.split(start), pair.GPUs, pair.Time)
	return start + pair.Time
}

// wakeDelay is how long a start waits for a node to be switched on: nodes are filled one by
// one, and those without a task are off.
func (c *Conservative) wakeDelay(class int, start, gpus float64) (delay float64) {
	k, booked := &c.v.Problem.Cluster.Classes[class], &c.classes[class]
	if start > c.v.Now {
		return 0 // somebody ended there
	}
	left := math.Mod(booked.free[0], float64(k.GPUs)) // of the node that is filled now
	if k.Count == 0 || left+planner.ShareSlack < gpus {
		return k.TurnOnDelay
	}
	return 0
}

// BookRunning books a task that runs already.
func (c *Conservative) BookRunning(class int, gpus, end float64) {
	booked := &c.classes[class]
	booked.dropBefore(c.v.Now)
	if end > c.v.Now {
		booked.book(0, gpus, end-c.v.Now)
	}
}
