package place

import (
	"math"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// nodeCosts are what a node of the cluster costs. Times are seconds, costs joules.
type nodeCosts struct {
	v            *planner.View
	gpus         float64 // of a node
	idle, turnOn float64 // an idle second, and switching on, by GPU
	delay        float64 // of switching on
	price        dvfsmodel.Objective
}

// deferredTask is a task that waits, with what another run time would cost. Times are
// seconds, costs joules.
type deferredTask struct {
	on         *nodeCosts
	task       int
	due, limit float64
	latest     float64      // when it must be started at the latest to run as it wants
	want, cost float64      // its own run time, and what the run costs then
	min, max   float64      // run times that it can have
	down, up   stretchCurve // what running shorter or longer costs more
	option     int32
	stretch    bool // can be made to take any time between min and max exactly
}

// timeBudget returns the longest that the task may run from a start on, seconds.
func (j *deferredTask) timeBudget(start float64) float64 { return min(j.due-start, j.limit) }

// stretchCurve is the added cost, joules, of a relative change r of the run time in one
// direction: slope·r + square·r².
type stretchCurve struct{ slope, square float64 }

// at returns the added cost of a relative change.
func (c stretchCurve) at(r float64) float64 { return (c.slope + c.square*r) * r }

// The relative changes of the run time through which the curves are laid.
const (
	shortNear, shortFar = 0.04, 0.16
	longNear, longFar   = 0.04, 0.2
)

// newDeferred weighs a task that arrived and can be done in time.
func newDeferred(h *nodeCosts, task int) deferredTask {
	t := &h.v.Problem.Tasks[task]
	want, option, _ := h.v.Want(task, 0)
	j := deferredTask{on: h, task: task, due: t.Due, limit: t.Limit, option: int32(option)}
	start := h.v.StartFor(task, h.v.Now)
	longest, exact := dvfsmodel.MaxTime(t.Options[j.option].Response)
	set := want.Clocks == planner.ClocksFree || want.Clocks == planner.ClocksDeadline
	j.stretch = exact && set
	pt := j.roundedToSlots(want.Point, j.timeBudget(start))
	j.want, j.cost = pt.Time, h.price.Cost(pt)
	j.min, j.max = j.want, j.want
	if set {
		j.min = min(j.min, t.Options[j.option].Response.MinTime())
		j.down = j.newCurve(-shortNear, -shortFar)
	}
	if j.stretch {
		j.max = max(j.max, longest)
		j.up = j.newCurve(longNear, longFar)
	}
	latest := t.Due - j.want
	if math.IsInf(t.Due, 1) {
		latest = start + j.want // nothing presses, but it shall not wait for ever
	}
	j.latest = h.wholeSlots(h.wholeSlots(latest) - h.delay) // there is time to switch a node on for it
	return j
}

// wholeSlots rounds down to whole slots where starts are bound to them.
func (h *nodeCosts) wholeSlots(t float64) float64 {
	if h.v.Problem.Start != planner.StartSlot {
		return t
	}
	const slack = 1e-9 // of a slot: a whole one may be less by rounding
	s := h.v.Problem.Cluster.Slot
	return math.Floor(t/s+slack) * s
}

// newCurve lays a curve through two relative changes of the run time.
func (j *deferredTask) newCurve(near, far float64) stretchCurve {
	rise := func(change float64) (r, cost float64) {
		t := min(max(j.want*(1+change), j.min), j.max)
		pt := j.point(t, j.timeBudget(j.on.v.Now))
		return math.Abs(t/j.want - 1), max(0, j.on.price.Cost(pt)-j.cost)
	}
	r1, cost1 := rise(near)
	r2, cost2 := rise(far)
	const apart = 1e-9 // smaller changes are rounding: the run time can't be changed so far
	switch {
	case r1 < apart:
		return stretchCurve{}
	case r2 < r1*(1+apart):
		return stretchCurve{slope: cost1 / r1}
	}
	square := max(0, (cost2/r2-cost1/r1)/(r2-r1))
	return stretchCurve{slope: max(0, cost1/r1-square*r1), square: square}
}

// stretchCost estimates what running for t costs more than running as the task wants.
func (j *deferredTask) stretchCost(t float64) float64 {
	r := t/j.want - 1
	switch {
	case t < j.min || t > j.max:
		return math.Inf(1)
	case r < 0:
		return j.down.at(-r)
	default:
		return j.up.at(r)
	}
}

// pacedRunTime returns the run time below which shortening doesn't pay when each second saved
// is worth price, joules.
func (j *deferredTask) pacedRunTime(price float64) float64 {
	gain := price*j.want - j.down.slope
	switch {
	case gain <= 0:
		return j.want
	case j.down.square == 0:
		return j.min
	}
	return max(j.min, j.want*(1-gain/(2*j.down.square)))
}

// point returns the cheapest point that takes t seconds; where only some times can
// be had, at most t. If none can it is what ends in the room, or the fastest.
func (j *deferredTask) point(t, room float64) dvfsmodel.Point {
	v := j.on.v
	if j.stretch {
		if pt, ok := dvfsmodel.ForTime(v.Problem.Tasks[j.task].Options[j.option].Response, t); ok {
			return pt
		}
	}
	for _, limit := range [...]float64{t, room} {
		if q, ok := v.Tuner.Want(j.task, int(j.option), 0, limit); ok {
			return q.Point
		}
	}
	return v.Tuner.Fastest(j.task, int(j.option), 0).Point
}

// roundedToSlots returns a point near the given one with a run time of whole slots, if
// that costs less than idling to the end of the last slot.
func (j *deferredTask) roundedToSlots(pt dvfsmodel.Point, room float64) dvfsmodel.Point {
	h := j.on
	if !j.stretch || h.v.Problem.Start != planner.StartSlot {
		return pt
	}
	response := h.v.Problem.Tasks[j.task].Options[j.option].Response
	s := h.v.Problem.Cluster.Slot
	down := math.Floor(pt.Time/s) * s
	cost := h.price.Cost(pt) + h.idle*(math.Ceil(pt.Time/s)*s-pt.Time)
	for _, t := range [...]float64{down, down + s} {
		if whole, ok := dvfsmodel.ForTime(response, t); ok && t <= room && h.price.Cost(whole) < cost {
			pt, cost = whole, h.price.Cost(whole)
		}
	}
	return pt
}

// placementAt returns a start of a task that runs for t seconds.
func (j *deferredTask) placementAt(
	node, gpu int, start, t float64, why planner.PlaceReason,
) planner.Placement {
	want, _, _ := j.on.v.Want(j.task, 0)
	room := j.timeBudget(start)
	pt := j.point(min(t, room), room)
	if t >= room {
		pt = j.roundedToSlots(pt, room)
	}
	q := planner.Quote{Point: pt, Clocks: want.Clocks, Want: want.Want}
	const same = 1e-12 // relative: a smaller difference is rounding
	switch {
	case pt.Time > want.Point.Time*(1+same):
		q.Clocks, room = planner.ClocksStretched, pt.Time
	case pt.Time < want.Point.Time*(1-same) && room < want.Want:
		q.Clocks = planner.ClocksDeadline
	case pt.Time < want.Point.Time*(1-same):
		q.Clocks, room = planner.ClocksShrunk, pt.Time
	}
	return newPlacement(node, 0, int(j.option), planner.GPUSet(1)<<uint(gpu), start, &q, room, why)
}
