package place

import (
	"math"

	"github.com/epplan/epplan/planner"
)

// onFreshNode places a task on a node that is off, of the class where that costs
// least. ok is false when no more nodes can be switched on, or no clocks would
// meet the due time there.
func onFreshNode(v *planner.View, task int) (pl planner.Placement, ok bool) {
	p := v.Problem
	if len(p.Cluster.Classes) == 1 {
		return onFreshNodeOfClass(v, task, 0)
	}
	best := math.Inf(1)
	for class := range p.Cluster.Classes {
		there, fits := onFreshNodeOfClass(v, task, class)
		if !fits {
			continue
		}
		gpus := float64(there.GPUs.Len())
		cost := p.ClassObjective(class).Cost(there.Point)*(gpus*p.Tasks[task].Share) +
			turnOnCost(v, class)*gpus
		if cost < best {
			best, pl, ok = cost, there, true
		}
	}
	return pl, ok
}

func onFreshNodeOfClass(v *planner.View, task, class int) (pl planner.Placement, ok bool) {
	want, option, known := v.Want(task, class)
	if option < 0 || !v.CanOpen(task, option, class) {
		return pl, false
	}
	t, count := &v.Problem.Tasks[task], 1
	if !v.OnlyWholeGPUs {
		count = t.Options[option].GPUs
	}
	gpus, start := planner.FirstGPUs(count), v.StartOnNew(task, class)
	room := t.TimeBudgetFrom(start)
	if known && want.Point.Time <= room {
		return newPlacement(-1, class, option, gpus, start, want, room, planner.PlaceOpened), true
	}
	if q, fits := v.Tuner.Want(task, option, class, room); fits {
		return newPlacement(-1, class, option, gpus, start, &q, room, planner.PlaceOpened), true
	}
	return pl, false
}

// askQuote asks Tune for clocks that meet the due time from a start on, by force
// if the room is shorter than the task wants.
func askQuote(
	v *planner.View,
	task, option, class int,
	start float64,
) (q planner.Quote, room float64, ok bool) {
	room = v.Problem.Tasks[task].TimeBudgetFrom(start)
	if want, _, known := v.Want(task, class); known && want.Point.Time <= room {
		return *want, room, true
	}
	q, ok = v.Tuner.Want(task, option, class, room)
	return q, room, ok
}

// quoteOrFastest is quote for a start that is not up for choice: where the due time
// is lost there, it answers with the fastest clocks, and for the reason that it is late.
func quoteOrFastest(
	v *planner.View, task, option, class int, start float64, inTime planner.PlaceReason,
) (q planner.Quote, room float64, why planner.PlaceReason) {
	q, room, ok := askQuote(v, task, option, class, start)
	if !ok {
		return v.Tuner.Fastest(task, option, class), room, planner.PlaceLate
	}
	return q, room, inTime
}

// earliestStartOn returns the earliest start of a task on a node that has room now, or, with -1, on one of
// the class that is off.
func earliestStartOn(v *planner.View, task, class, node int) float64 {
	if node < 0 || !v.Node(node).On {
		return v.StartOnNew(task, class)
	}
	return v.StartFor(task, v.Node(node).Ready)
}

// taskCost returns what a task's run costs by the objective and the class's host power,
// for all its GPUs; joules where the objective is energy alone.
func taskCost(p *planner.Problem, task, option, class int, q *planner.Quote) float64 {
	weight := float64(p.Tasks[task].Options[option].GPUs) * p.Tasks[task].Share
	return p.ClassObjective(class).Cost(q.Point) * weight
}

// idleCost returns what an idle GPU's second costs by the objective, host included.
func idleCost(v *planner.View, class int) float64 {
	k := &v.Problem.Cluster.Classes[class]
	return jouleWeight(v) * float64(k.IdleW+k.HostW)
}

// turnOnCost returns what switching on a node costs by the objective, by GPU.
func turnOnCost(v *planner.View, class int) float64 {
	return jouleWeight(v) * float64(v.Problem.Cluster.Classes[class].TurnOn)
}

// jouleWeight returns the weight of a joule in the objective; 1 where only time has one, so that
// nothing idles or is switched on for a few seconds.
func jouleWeight(v *planner.View) float64 {
	if w := v.Problem.Objective.EnergyWeight; w > 0 {
		return w
	}
	return 1
}

// The expected idle energy that [Marginal] and gangs count before it is spent: of the
// GPUs beside the task on a node that is switched on, and of a whole node that
// is made to end later. Most of that time other tasks will use.
const (
	freshIdleWeight = 0.05
	laterIdleWeight = 0.01
)

// waitCost returns what it costs by the objective that a task starts then.
func waitCost(v *planner.View, task, option int, start float64) float64 {
	t := &v.Problem.Tasks[task]
	return v.Problem.WaitWeight * float64(t.Options[option].GPUs) * t.Share * (start - t.Arrival)
}

// newPlacement returns a place with the clocks of a quote, and why both were chosen; room is
// the time that there was for the run, seconds.
func newPlacement(
	node, class, option int, gpus planner.GPUSet, start float64, q *planner.Quote, room float64,
	why planner.PlaceReason,
) planner.Placement {
	return planner.Placement{
		Node: node, Class: class, Option: option, GPUs: gpus, Start: start, Point: q.Point,
		Reason: planner.Reason{Clocks: q.Clocks, Place: why, Want: q.Want, TimeBudget: room},
	}
}

// placeAsLastResort places a task that no rule found room for and no fresh node will take:
// where it still meets its due time with clocks that Tune didn't want, or else
// where it ends first; of equal places the one that is free first, which tells
// where starts wait for a slot. Only a task that can run on no node at all is
// rejected.
func placeAsLastResort(v *planner.View, task int) (planner.Placement, planner.Verdict) {
	if pl, ok := onFreshNode(v, task); ok {
		return pl, planner.Start
	}
	var forced, late planner.Placement
	cheapest, earliest := math.Inf(1), math.Inf(1)
	fastest := make([]planner.Quote, len(v.Problem.Cluster.Classes)) // by class, once asked for
	eachPlace(v, task, func(node, class, option int, gpus planner.GPUSet, start float64) {
		if q, room, ok := askQuote(v, task, option, class, start); ok {
			if cost := taskCost(v.Problem, task, option, class, &q); cost < cheapest ||
				cost == cheapest && freeBefore(v, node, gpus, &forced) {
				cheapest = cost
				forced = newPlacement(node, class, option, gpus, start, &q, room, planner.PlaceForced)
			}
		}
		q := &fastest[class]
		if q.Point.Time == 0 {
			*q = v.Tuner.Fastest(task, option, class)
		}
		if end := start + q.Point.Time; end < earliest || end == earliest && freeBefore(v, node, gpus, &late) {
			earliest = end
			late = newPlacement(node, class, option, gpus, start, q,
				v.Problem.Tasks[task].TimeBudgetFrom(start), planner.PlaceLate)
		}
	})
	switch {
	case !math.IsInf(cheapest, 1):
		return forced, planner.Start
	case !math.IsInf(earliest, 1):
		return late, planner.Start
	}
	return planner.Placement{}, planner.Reject
}

// freeBefore reports whether GPUs of a node that is on are free before those of
// another placement.
func freeBefore(v *planner.View, node int, gpus planner.GPUSet, than *planner.Placement) bool {
	return node >= 0 && than.Node >= 0 && gpusFreeFrom(v, node, gpus) < gpusFreeFrom(v, than.Node, than.GPUs)
}

// gpusFreeFrom returns when the last task on GPUs of a node ends.
func gpusFreeFrom(v *planner.View, node int, gpus planner.GPUSet) float64 {
	first, free := v.Node(node).FirstGPU, 0.0
	for ; gpus != 0; gpus &= gpus - 1 {
		free = max(free, v.FreeFrom(first+gpus.First()))
	}
	return free
}

// eachPlace visits every place where the task could start: the nodes that are on,
// and a fresh one of each class.
func eachPlace(
	v *planner.View, task int, visit func(node, class, option int, gpus planner.GPUSet, start float64),
) {
	p := v.Problem
	var few [8]int
	options := appendOptions(v, few[:0], task)
	for node := range v.NodeCount() {
		n := v.Node(node)
		if !n.On || options[n.Class] < 0 {
			continue
		}
		option := options[n.Class]
		if start, gpus, ok := v.Earliest(task, option, node); ok {
			visit(node, n.Class, option, gpus, start)
		}
	}
	for class, option := range options {
		if option >= 0 && v.CanOpen(task, option, class) {
			gpus := planner.FirstGPUs(p.Tasks[task].Options[option].GPUs)
			visit(-1, class, option, gpus, v.StartOnNew(task, class))
		}
	}
}

// appendOptions appends the task's option on each class. Where all nodes are looked at,
// each class is asked once.
func appendOptions(v *planner.View, list []int, task int) []int {
	for class := range v.Problem.Cluster.Classes {
		list = append(list, usableOption(v, task, class))
	}
	return list
}

// usableOption returns the task's option on a class, or -1 if its nodes have no room for the task, or
// the task would exceed its limit there at the fastest clocks that Tune sets.
func usableOption(v *planner.View, task, class int) int {
	if v.CanRunOn(task, class) {
		return v.Option(task, class)
	}
	return -1
}
