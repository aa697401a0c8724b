package improve

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// toPlan writes the schedule down in place of an island of a plan, with exact
// clocks. The island's nodes come last, by falling end; those without a task are
// left out.
func (s *gpuSchedule) toPlan(p *planner.Problem, old *planner.Plan, isle *subplan) *planner.Plan {
	better := *old
	better.Assignments = slices.Clone(old.Assignments)
	better.Nodes = nil
	number := make([]int32, len(old.Nodes))
	for n := range old.Nodes {
		number[n] = int32(len(better.Nodes))
		if !isle.nodes[n] {
			better.Nodes = append(better.Nodes, old.Nodes[n])
		}
	}
	for i := range better.Assignments {
		better.Assignments[i].Node = number[better.Assignments[i].Node]
	}
	e := emitter{s: s, p: p, plan: &better, isle: isle, pricing: pricingOf(p, isle.class)}
	order := make([]int, len(s.servers))
	for j := range order {
		order[j] = j
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(s.servers[b].end, s.servers[a].end), cmp.Compare(a, b))
	})
	for _, j := range order {
		e.node(&s.servers[j])
	}
	better.Ledger = planner.Account(p, &better)
	return &better
}

// emitter turns a state into the part of a plan that an island is.
type emitter struct {
	pricing
	s    *gpuSchedule
	p    *planner.Problem
	plan *planner.Plan
	isle *subplan
}

func (e *emitter) node(v *server) {
	class := e.isle.class
	delay := e.p.Cluster.Classes[class].TurnOnDelay
	last := delay
	for slot, g := range v.gpus {
		start := delay
		tasks := e.s.gpus[g].tasks
		for i, pr := range e.s.prices(tasks, v.end) {
			a := e.assignment(tasks[i], pr)
			a.GPUs = 1 << uint(slot)
			a.Start, a.End = start, start+a.Point.Time
			start = a.End
		}
		last = max(last, start)
	}
	if last > delay {
		e.plan.Nodes = append(e.plan.Nodes, planner.PlannedNode{
			Class: class, On: []planner.Interval{{From: 0, To: last}},
		})
	}
}

// assignment fills in an item's clocks for a price of time.
func (e *emitter) assignment(i int32, at gridPrice) *planner.Assignment {
	task, it := e.isle.tasks[i], &e.s.items[i]
	t := &e.p.Tasks[task]
	option := t.Option(e.p.Cluster.Classes[e.isle.class].Model)
	response := t.Options[option].Response
	a := &e.plan.Assignments[task]
	*a = planner.Assignment{Node: int32(len(e.plan.Nodes)), Option: int32(option)}
	own := it.time[freeOptimum]
	a.Point = e.pointFor(response, it, at)
	a.Reason = planner.Reason{Place: planner.PlaceMoved, Want: own, TimeBudget: a.Point.Time}
	switch {
	case a.Point.Time > own*(1+narrow):
		a.Reason.Clocks = planner.ClocksStretched
	case a.Point.Time < own*(1-narrow):
		a.Reason.Clocks = planner.ClocksShrunk
	default:
		a.Reason.Clocks, a.Reason.Want, a.Reason.TimeBudget = e.ownReason(response, it)
	}
	return a
}

// ownReason explains the clocks of a task at its own optimum.
func (e *emitter) ownReason(r dvfsmodel.Response, it *item) (why planner.ClockReason, want, room float64) {
	if !dvfsmodel.HasModel(r) {
		return planner.ClocksNoModel, it.time[freeOptimum], it.room
	}
	if free, err := r.Optimum(e.objective, math.Inf(1)); err == nil && free.Time > it.room {
		return planner.ClocksDeadline, free.Time, it.room
	}
	return planner.ClocksFree, it.time[freeOptimum], it.room
}

// pointFor returns the cheapest point for a price: of exactly the time there if the
// clocks are continuous.
func (e *emitter) pointFor(r dvfsmodel.Response, it *item, at gridPrice) dvfsmodel.Point {
	if longest, exact := dvfsmodel.MaxTime(r); exact && e.retune {
		time := it.between(at.step, at.frac)
		time = min(max(time, r.MinTime()), longest)
		if pt, ok := dvfsmodel.ForTime(r, time); ok {
			return pt
		}
	}
	all, _ := e.points(r, it.room)
	return all[at.step]
}

// gridPrice is a price of time on the grid of priceSteps, or between two of them.
type gridPrice struct {
	step int     // index in priceSteps
	frac float64 // from step towards the next one, 0 ≤ frac < 1
}

func (a gridPrice) less(b gridPrice) bool {
	return a.step < b.step || (a.step == b.step && a.frac < b.frac)
}

// prices returns the price of time for each of a GPU's tasks so that the last ends at
// the given time, as cheaply as due times allow. Without due times all have the
// same price, at which the run times add up to the end. Where a due time comes
// too early for that, the tasks up to it share the lower price that meets it;
// the one that asks for the lowest price is taken first, and the rest of the
// tasks start again from there. At the optimum prices never fall along the GPU.
func (s *gpuSchedule) prices(tasks []int32, end float64) []gridPrice {
	all := make([]gridPrice, 0, len(tasks))
	start := 0.0
	for len(all) < len(tasks) {
		rest := tasks[len(all):]
		low, count := gridPrice{step: priceCount - 1}, len(rest)
		var sum timeCurve
		for k, i := range rest {
			sum.plus(&s.items[i].timeCurve, 1)
			until := s.items[i].due
			if k == len(rest)-1 {
				until = min(until, end)
			}
			if at := s.priceOf(&sum, until-start); at.less(low) {
				low, count = at, k+1
			}
		}
		for range count {
			all = append(all, low)
		}
		for _, i := range rest[:count] {
			start += s.items[i].between(low.step, low.frac)
		}
	}
	return all
}

// priceOf returns the highest price at which the sum's run time fits into the room,
// seconds.
func (s *gpuSchedule) priceOf(sum *timeCurve, room float64) gridPrice {
	n := 0
	for n < priceCount-1 && sum.time[n+1] <= room*(1+roundOff) {
		n++
	}
	if n == priceCount-1 || s.stepped {
		return gridPrice{step: n}
	}
	return gridPrice{step: n, frac: max(0, room-sum.time[n]) / (sum.time[n+1] - sum.time[n])}
}
