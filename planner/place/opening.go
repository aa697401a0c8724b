package place

import (
	"math"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// stageBase is what all methods embed: it places a task where no running node will
// do, or where nothing will in time.
type stageBase struct{ v *planner.View }

// fresh places a task on a node that is off, of the class where that costs
// least. ok is false when no more nodes can be switched on, or no clocks would
// meet the due time there.
func (o stageBase) fresh(task int) (pl planner.Placement, ok bool) {
	p := o.v.Problem
	if len(p.Cluster.Classes) == 1 {
		return o.freshOf(task, 0)
	}
	best := math.Inf(1)
	for class := range p.Cluster.Classes {
		there, fits := o.freshOf(task, class)
		if !fits {
			continue
		}
		gpus := float64(there.GPUs.Len())
		cost := p.ClassObjective(class).Cost(there.Point)*(gpus*p.Tasks[task].Share) +
			o.turnOnCost(class)*gpus
		if cost < best {
			best, pl, ok = cost, there, true
		}
	}
	return pl, ok
}

// freshOf places a task on a node of the class that is off.
func (o stageBase) freshOf(task, class int) (pl planner.Placement, ok bool) {
	want, option, known := o.v.Wanted(task, class)
	if option < 0 || !o.v.CanOpen(task, option, class) {
		return pl, false
	}
	t, count := &o.v.Problem.Tasks[task], 1
	if !o.v.OnlyWholeGPUs() {
		count = t.Options[option].GPUs
	}
	gpus, start := planner.FirstGPUs(count), o.v.StartOnNew(task, class)
	room := t.TimeBudgetFrom(start)
	if known && want.Point.Time <= room {
		return placement(-1, class, option, gpus, start, want, room, planner.PlaceOpened), true
	}
	if q, fits := o.v.Tuner.Want(task, option, class, room); fits {
		return placement(-1, class, option, gpus, start, &q, room, planner.PlaceOpened), true
	}
	return pl, false
}

// quote asks Tune for clocks that meet the due time from a start on, by force
// if the room is shorter than the task wants.
func (o stageBase) quote(task, option, class int, start float64) (q planner.Quote, room float64, ok bool) {
	room = o.v.Problem.Tasks[task].TimeBudgetFrom(start)
	if want, known := o.v.Want(task, class); known && want.Point.Time <= room {
		return *want, room, true
	}
	q, ok = o.v.Tuner.Want(task, option, class, room)
	return q, room, ok
}

// taskCost is what a task's run costs by the objective and the class's host power,
// for all its GPUs; joules where the objective is energy alone.
func taskCost(p *planner.Problem, task, option, class int, q *planner.Quote) float64 {
	weight := float64(p.Tasks[task].Options[option].GPUs) * p.Tasks[task].Share
	return p.ClassObjective(class).Cost(q.Point) * weight
}

// idleCost is what an idle GPU's second costs by the objective, host included.
func (o stageBase) idleCost(class int) float64 {
	k := &o.v.Problem.Cluster.Classes[class]
	return o.jouleWeight() * float64(k.IdleW+k.HostW)
}

// turnOnCost is what switching on a node costs by the objective, by GPU.
func (o stageBase) turnOnCost(class int) float64 {
	return o.jouleWeight() * float64(o.v.Problem.Cluster.Classes[class].TurnOn)
}

// jouleWeight is the weight of a joule in the objective; 1 where only time has one, so that
// nothing idles or is switched on for a few seconds.
func (o stageBase) jouleWeight() float64 {
	if w := o.v.Problem.Objective.EnergyWeight; w > 0 {
		return w
	}
	return 1
}

// waitCost is what it costs by the objective that a task starts then.
func (o stageBase) waitCost(task, option int, start float64) float64 {
	t := &o.v.Problem.Tasks[task]
	return o.v.Problem.WaitWeight * float64(t.Options[option].GPUs) * t.Share * (start - t.Arrival)
}

// placement is a place with the clocks of a quote, and why both were chosen; room is
// the time that there was for the run, seconds.
func placement(
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
func (o stageBase) placeAsLastResort(task int) (planner.Placement, planner.Verdict) {
	if pl, ok := o.fresh(task); ok {
		return pl, planner.Start
	}
	var forced, late planner.Placement
	cheapest, earliest := math.Inf(1), math.Inf(1)
	fastest := make([]planner.Quote, len(o.v.Problem.Cluster.Classes)) // by class, once asked for
	o.eachPlace(task, func(node, class, option int, gpus planner.GPUSet, start float64) {
		if q, room, ok := o.quote(task, option, class, start); ok {
			if cost := taskCost(o.v.Problem, task, option, class, &q); cost < cheapest ||
				cost == cheapest && o.freeBefore(node, gpus, &forced) {
				cheapest = cost
				forced = placement(node, class, option, gpus, start, &q, room, planner.PlaceForced)
			}
		}
		q := &fastest[class]
		if q.Point.Time == 0 {
			*q = o.v.Tuner.Fastest(task, option, class)
		}
		if end := start + q.Point.Time; end < earliest || end == earliest && o.freeBefore(node, gpus, &late) {
			earliest = end
			late = placement(node, class, option, gpus, start, q,
				o.v.Problem.Tasks[task].TimeBudgetFrom(start), planner.PlaceLate)
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
func (o stageBase) freeBefore(node int, gpus planner.GPUSet, than *planner.Placement) bool {
	return node >= 0 && than.Node >= 0 && o.freeFrom(node, gpus) < o.freeFrom(than.Node, than.GPUs)
}

// freeFrom is when the last task on GPUs of a node ends.
func (o stageBase) freeFrom(node int, gpus planner.GPUSet) float64 {
	first, _ := o.v.GPUs(node)
	free := 0.0
	for ; gpus != 0; gpus &= gpus - 1 {
		free = max(free, o.v.FreeFrom(first+gpus.First()))
	}
	return free
}

// eachPlace visits every place where the task could start: the nodes that are on,
// and a fresh one of each class.
func (o stageBase) eachPlace(
	task int, visit func(node, class, option int, gpus planner.GPUSet, start float64),
) {
	p := o.v.Problem
	var few [8]int
	options := o.appendOptions(few[:0], task)
	for node := range o.v.NodeCount() {
		if !o.v.IsOn(node) {
			continue
		}
		class := o.v.ClassOf(node)
		option := options[class]
		if option < 0 {
			continue
		}
		if start, gpus, ok := o.v.Earliest(task, option, node); ok {
			visit(node, class, option, gpus, start)
		}
	}
	for class, option := range options {
		if option >= 0 && o.v.CanOpen(task, option, class) {
			gpus := planner.FirstGPUs(p.Tasks[task].Options[option].GPUs)
			visit(-1, class, option, gpus, o.v.StartOnNew(task, class))
		}
	}
}

// appendOptions appends the task's option on each class. Where all nodes are looked at,
// each class is asked once.
func (o stageBase) appendOptions(list []int, task int) []int {
	for class := range o.v.Problem.Cluster.Classes {
		list = append(list, o.usableOption(task, class))
	}
	return list
}

// usableOption is the task's option on a class, or -1: the class doesn't suit it, or
// the task would exceed its limit there at the fastest clocks that Tune sets.
func (o stageBase) usableOption(task, class int) int {
	t := &o.v.Problem.Tasks[task]
	option := o.v.Option(task, class)
	if option < 0 || math.IsInf(t.Limit, 1) ||
		dvfsmodel.MeetsLimit(o.v.Tuner.Fastest(task, option, class).Point.Time, t.Limit) {
		return option
	}
	return -1
}
