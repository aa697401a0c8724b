package improve

import (
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// plan writes the schedule down in place of a plan of the same tasks. Nodes without a
// job are left out, but for those that draw power asleep.
func (l *lists) plan(old *planner.Plan) *planner.Plan {
	better := *old
	better.Assignments = slices.Clone(old.Assignments)
	better.Nodes = nil
	asleep := l.asleep(old)
	for n := range l.nodes {
		v := &l.nodes[n]
		if len(v.jobs) == 0 {
			continue
		}
		node := int32(len(better.Nodes)) //nolint:gosec // few nodes
		off := l.write(v, node, old, better.Assignments)
		better.Nodes = append(better.Nodes, planner.Node{Class: v.class, On: []planner.Interval{{From: 0, To: off}}})
		asleep[v.class]--
	}
	for class, count := range asleep {
		for range count {
			better.Nodes = append(better.Nodes, planner.Node{Class: class})
		}
	}
	better.Recount(l.p)
	return &better
}

// asleep is how many nodes of each class a plan lists because they draw power even
// when they are off.
func (l *lists) asleep(plan *planner.Plan) []int {
	count := make([]int, len(l.classes))
	sleep := slices.ContainsFunc(l.p.Cluster.Classes, func(k planner.NodeClass) bool { return k.SleepW > 0 })
	for n := range plan.Nodes {
		if class := plan.Nodes[n].Class; sleep && l.p.Cluster.Classes[class].Count > 0 {
			count[class]++
		}
	}
	return count
}

// write times a node's list into assignments, and says when the node goes off.
func (l *lists) write(v *nodeList, node int32, old *planner.Plan, all []planner.Assignment) (off float64) {
	c := &l.classes[v.class]
	free := slices.Repeat([]float64{c.delay}, len(c.free))
	for _, i := range v.jobs {
		m, level := l.menu(i, v.class), l.jobs[i].level
		gpus, start := firstFree(free, m.gpus)
		end := start + m.time[level]
		for s := gpus; s != 0; s &= s - 1 {
			free[s.First()] = end
		}
		t, was := &l.p.Tasks[i], &old.Assignments[i]
		a := planner.Assignment{
			Node: node, Option: int32(t.Option(l.p.Cluster.Classes[v.class].Model)), //nolint:gosec // index of a slice
			GPUs: gpus, Start: start, End: end, Point: m.at[level], Reason: was.Reason,
		}
		a.Reason.Place = planner.PlaceMoved
		l.explain(&a.Reason, &a, was, m, t)
		all[i] = a
		off = max(off, end)
	}
	return off
}

// explain says why a job has its clocks.
func (l *lists) explain(why *planner.Reason, a, was *planner.Assignment, m *menu, t *planner.Task) {
	own, time := m.time[natural], a.Point.Time
	if _, fixed := t.Options[a.Option].Response.(*dvfsmodel.Fixed); fixed {
		why.Clocks = planner.ClocksNoModel
		return
	}
	switch {
	case time > own*(1+narrow):
		why.Clocks, why.Want, why.Room = planner.ClocksStretched, own, time
	case time < own*(1-narrow):
		why.Clocks, why.Want, why.Room = planner.ClocksShrunk, own, time
	case was.Option != a.Option || math.Abs(was.Point.Time-time) > narrow*own:
		why.Clocks, why.Want, why.Room = planner.ClocksFree, own, t.Due-a.Start
	}
}

// firstFree is the count GPUs that are free first, and when all of them are.
func firstFree(free []float64, count int) (gpus planner.GPUSet, from float64) {
	for range count {
		best := -1
		for g := range free {
			if !gpus.Has(g) && (best < 0 || free[g] < free[best]) {
				best = g
			}
		}
		gpus |= 1 << uint(best)
		from = max(from, free[best])
	}
	return gpus, from
}
