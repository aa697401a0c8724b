package improve

import (
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// toPlan writes the schedule down in place of a plan of the same tasks. Nodes on which
// nothing runs are left out, but for those that draw power asleep.
func (l *listSchedule) toPlan(old *planner.Plan) *planner.Plan {
	better := *old
	better.Assignments = slices.Clone(old.Assignments)
	for i := range better.Assignments {
		if a := &better.Assignments[i]; a.Node >= 0 {
			a.Node, a.More = -1, nil
		}
	}
	better.Nodes = nil
	asleep := l.drawingAsleep(old)
	for n := range l.nodes {
		v := &l.nodes[n]
		if len(v.jobs) == 0 && v.runs == nil {
			continue
		}
		w := &nodeWriter{l: l, old: old, node: int32(len(better.Nodes)), all: better.Assignments}
		w.write(v, l.startsOf(int32(n)))
		better.Nodes = append(better.Nodes, planner.PlannedNode{
			Class: v.class, On: []planner.Interval{{From: 0, To: w.off}},
		})
		asleep[v.class]--
	}
	for class, count := range asleep {
		for range count {
			better.Nodes = append(better.Nodes, planner.PlannedNode{Class: class})
		}
	}
	if l.arrive {
		better.CutIdle(l.p)
	}
	better.Recount(l.p)
	return &better
}

// drawingAsleep returns how many nodes of each class a plan lists because they draw power even
// when they are off.
func (l *listSchedule) drawingAsleep(plan *planner.Plan) []int {
	count := make([]int, len(l.classes))
	sleep := slices.ContainsFunc(l.p.Cluster.Classes, func(k planner.NodeClass) bool { return k.SleepW > 0 })
	for n := range plan.Nodes {
		if class := plan.Nodes[n].Class; sleep && l.p.Cluster.Classes[class].Count > 0 {
			count[class]++
		}
	}
	return count
}

// nodeWriter writes a node's list into assignments.
type nodeWriter struct {
	l    *listSchedule
	old  *planner.Plan
	node int32
	all  []planner.Assignment
	off  float64 // when the node goes off
}

// write writes what runs on the node at the present, and its list, whose jobs begin then.
func (w *nodeWriter) write(v *nodeList, begins []float64) {
	c := &w.l.classes[v.class]
	free := slices.Repeat([]float64{c.delay}, len(c.clock.free))
	shared := nodeClock{} // its GPUs have their own numbers
	if v.runs != nil {
		copy(free, v.runs.free)
		shared.parts = slices.Clone(v.runs.parts)
		for _, task := range v.runs.tasks {
			was := &w.old.Assignments[task]
			for part := range was.Parts {
				if int(part.Node) == v.runs.node {
					w.part(task, was, part.GPUs)
				}
			}
		}
	}
	pr := w.l.pricing(v.class)
	for turn, i := range v.jobs {
		m, level := w.l.menu(i, v.class), w.l.jobs[i].level
		t, was := &w.l.p.Tasks[i], &w.old.Assignments[i]
		option := t.Option(w.l.p.Cluster.Classes[v.class].Model)
		points, _ := pr.pointsOf(t, option)
		a := planner.Assignment{
			Option: int32(option),
			Start:  begins[turn], End: begins[turn] + m.time[level], Point: points[level], Reason: was.Reason,
		}
		gpus, _ := planner.FirstFree(free, m.gpus)
		if t.Share < 1 {
			gpus = shared.occupyOwn(free, t.Share, a.Start, a.End)
		}
		for s := gpus; s != 0; s &= s - 1 {
			free[s.First()] = max(free[s.First()], a.End)
		}
		a.Reason.Place = planner.PlaceMoved
		if m.nodes > 1 {
			a.Reason.Place = planner.PlaceTogether
		}
		explainClocks(&a.Reason, &a, was, m, t)
		w.part(int(i), &a, gpus)
	}
}

// occupyOwn is occupyPart where the numbers in parts are those of the node's GPUs, of which free tells when
// they are free.
func (t *nodeClock) occupyOwn(free []float64, share, start, end float64) planner.GPUSet {
	t.parts = slices.DeleteFunc(t.parts, func(p gpuPart) bool { return p.end <= start })
	gpu := t.fullest(share, start)
	if gpu < 0 {
		gpus, _ := planner.FirstFree(free, 1)
		gpu = int32(gpus.First())
	}
	t.parts = append(t.parts, gpuPart{gpu, share, end})
	return 1 << uint(gpu)
}

// part gives a task GPUs of the node, its first one or a further one.
func (w *nodeWriter) part(task int, a *planner.Assignment, gpus planner.GPUSet) {
	w.off = max(w.off, a.End)
	to := &w.all[task]
	if to.Node >= 0 {
		to.More = append(to.More, planner.Part{Node: w.node, GPUs: gpus})
		return
	}
	*to = *a
	to.Node, to.GPUs, to.More = w.node, gpus, nil
}

// explainClocks says why a job has its clocks.
func explainClocks(
	why *planner.Reason, a, was *planner.Assignment, m *clockMenu, t *planner.Task,
) {
	own, time := m.time[freeOptimum], a.Point.Time
	if t.Share < 1 {
		why.Clocks = planner.ClocksShared
		return
	}
	if !dvfsmodel.HasModel(t.Options[a.Option].Response) {
		why.Clocks = planner.ClocksNoModel
		return
	}
	switch {
	case time > own*(1+narrow):
		why.Clocks, why.Want, why.TimeBudget = planner.ClocksStretched, own, time
	case time < own*(1-narrow):
		why.Clocks, why.Want, why.TimeBudget = planner.ClocksShrunk, own, time
	case was.Option != a.Option || math.Abs(was.Point.Time-time) > narrow*own:
		why.Clocks, why.Want, why.TimeBudget = planner.ClocksFree, own, t.Due-a.Start
	}
}
