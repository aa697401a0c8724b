package improve

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// levels are the prices, as indexes of priceSteps, that relist tries for the
// tasks of a node together: their own optimum first, which [lister.write] compares
// with, then from much faster to as slow as idling costs.
var levels = [...]int{natural, 9, 11, 13, 16, 18, 20, 23}

// lister holds a plan as lists: a node runs its tasks in their order, each on
// the GPUs that are free first.
type lister struct {
	p       *planner.Problem
	old     *planner.Plan
	key     []int                          // by task: order within a node
	latest  []float64                      // by task: when it must have ended: its due time, or when it did if that was later
	points  [][len(levels)]dvfsmodel.Point // by task and class
	nodes   []listed
	home    []int // by task: its node, -1: it isn't planned
	pricing []pricing
	free    []float64 // buffer of timing
	count   []int     // nodes in use, by class
	steps   int       // work done: GPUs that placements looked at
}

// listed is a node as a list.
type listed struct {
	class   int
	tasks   []int
	level   int     // index in levels
	cost    float64 // joules, as timed at that level
	changed bool    // differs from the plan that was given, which a list need not be able to say
}

// newLister makes lists of a plan: each at the level at which it costs least, or as
// planned where no level costs less.
func newLister(p *planner.Problem, plan *planner.Plan) *lister {
	l := &lister{
		p: p, old: plan, key: make([]int, len(p.Tasks)), latest: make([]float64, len(p.Tasks)), home: make([]int, len(p.Tasks)),
		points: make([][len(levels)]dvfsmodel.Point, len(p.Tasks)*len(p.Cluster.Classes)),
		free:   make([]float64, planner.MaxGPUs), count: make([]int, len(p.Cluster.Classes)),
	}
	for i := range p.Tasks {
		a := &plan.Assignments[i]
		l.home[i], l.latest[i] = int(a.Node), p.Tasks[i].Due
		if a.Node >= 0 {
			l.latest[i] = max(l.latest[i], a.End)
		}
	}
	l.rank()
	for class := range p.Cluster.Classes {
		l.pricing = append(l.pricing, pricingOf(p, class))
		for i := range p.Tasks {
			l.tabulate(i, class)
		}
	}
	for n, tasks := range byNode(plan) {
		class := plan.Nodes[n].Class
		v := listed{class: class, tasks: tasks, cost: l.planned(n, tasks)}
		l.count[class]++
		if level, cost, ok := l.best(class, tasks); ok && cost < v.cost {
			v.level, v.cost, v.changed = level, cost, true
		}
		l.nodes = append(l.nodes, v)
	}
	return l
}

// rank orders the tasks by their starts.
func (l *lister) rank() {
	order := make([]int, len(l.p.Tasks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(l.old.Assignments[a].Start, l.old.Assignments[b].Start)
	})
	for rank, task := range order {
		l.key[task] = rank
	}
}

// tabulate finds a task's points on a class; their times are 0 where there are
// none.
func (l *lister) tabulate(task, class int) {
	t, k := &l.p.Tasks[task], &l.p.Cluster.Classes[class]
	o := t.Option(k.Model)
	if o < 0 || t.Options[o].GPUs > k.GPUs {
		return
	}
	pr := &l.pricing[class]
	room := min(l.latest[task]-t.Arrival-k.TurnOnDelay, t.Limit)
	points := &l.points[task*len(l.p.Cluster.Classes)+class]
	for i, g := range levels {
		pt, err := pr.optimum(t.Options[o].Response, priceSteps[g]*pr.idle, room)
		if err != nil {
			return
		}
		points[i] = pt
	}
}

// point is what a task does on a class at a level; its time is 0 where it can't run there.
func (l *lister) point(task, class, level int) *dvfsmodel.Point {
	return &l.points[task*len(l.p.Cluster.Classes)+class][level]
}

// placing is the time that a placement takes apart from looking at GPUs, in GPUs
// looked at.
const placing = 4

// timing plays a list at a level and returns its cost. Each placement is handed
// to visit unless that is nil. ok is false when a task is late or doesn't suit.
func (l *lister) timing(class int, tasks []int, level int, visit func(task int, gpus planner.GPUSet, start float64)) (cost float64, ok bool) {
	k := &l.p.Cluster.Classes[class]
	free := l.free[:k.GPUs]
	for g := range free {
		free[g] = k.TurnOnDelay
	}
	l.steps += len(tasks) * (k.GPUs + placing)
	off, busy, run := k.TurnOnDelay, 0.0, 0.0
	for _, task := range tasks {
		t, pt := &l.p.Tasks[task], l.point(task, class, level)
		if pt.Time == 0 {
			return 0, false
		}
		count := t.Options[t.Option(k.Model)].GPUs
		gpus, start := firstFree(free, count)
		start = max(start, t.Arrival)
		end := start + pt.Time
		if end > l.latest[task]*(1+roundOff) {
			return 0, false
		}
		for s := gpus; s != 0; s &= s - 1 {
			free[s.First()] = end
		}
		if visit != nil {
			visit(task, gpus, start)
		}
		off = max(off, end)
		busy += float64(count) * pt.Time
		run += float64(count) * l.pricing[class].cost(pt)
	}
	return l.cost(class, run, busy, off), true
}

// cost is what a node costs, above sleeping, whose tasks cost run joules and hold
// GPUs for busy seconds until it goes off.
func (l *lister) cost(class int, run, busy, off float64) float64 {
	if busy == 0 {
		return 0
	}
	k := &l.p.Cluster.Classes[class]
	cost := run + l.pricing[class].idle*(float64(k.GPUs)*off-busy) - float64(k.SleepW)*off
	if l.p.Cluster.OfflineTurnOn {
		cost += float64(k.TurnOn) * float64(k.GPUs)
	}
	return cost
}

// planned is what a node costs in the plan that was given.
func (l *lister) planned(node int, tasks []int) float64 {
	run, busy := 0.0, 0.0
	class := l.old.Nodes[node].Class
	for _, task := range tasks {
		a := &l.old.Assignments[task]
		gpus := float64(a.GPUs.Len())
		run += gpus * l.pricing[class].cost(&a.Point)
		busy += gpus * a.Point.Time
	}
	return l.cost(class, run, busy, offTime(l.old, node))
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

// best is the level at which a list costs least.
func (l *lister) best(class int, tasks []int) (level int, cost float64, ok bool) {
	cost = math.Inf(1)
	for i := range levels {
		if c, fits := l.timing(class, tasks, i, nil); fits && c < cost {
			level, cost, ok = i, c, true
		}
	}
	return level, cost, ok
}

// plan writes the lists down. Nodes that kept their list keep their assignments;
// empty ones are left out.
func (l *lister) plan() *planner.Plan {
	better := *l.old
	better.Assignments = slices.Clone(l.old.Assignments)
	better.Nodes = nil
	sleep := slices.ContainsFunc(l.p.Cluster.Classes, func(k planner.NodeClass) bool { return k.SleepW > 0 })
	for n := range l.nodes {
		v := &l.nodes[n]
		if len(v.tasks) == 0 {
			if sleep && l.p.Cluster.Classes[v.class].Count > 0 { // what it draws counts
				better.Nodes = append(better.Nodes, planner.Node{Class: v.class})
			}
			continue
		}
		node := int32(len(better.Nodes)) //nolint:gosec // few nodes
		off := 0.0
		if v.changed {
			l.write(n, better.Assignments)
		}
		for _, task := range v.tasks {
			better.Assignments[task].Node = node
			off = max(off, better.Assignments[task].End)
		}
		better.Nodes = append(better.Nodes, planner.Node{Class: v.class, On: []planner.Interval{{From: 0, To: off}}})
	}
	better.Recount(l.p)
	return &better
}

// write times a node's list into assignments.
func (l *lister) write(n int, all []planner.Assignment) {
	v := &l.nodes[n]
	l.timing(v.class, v.tasks, v.level, func(task int, gpus planner.GPUSet, start float64) {
		t, old := &l.p.Tasks[task], all[task]
		pt := l.point(task, v.class, v.level)
		own := l.point(task, v.class, 0).Time
		a := planner.Assignment{
			Option: int32(t.Option(l.p.Cluster.Classes[v.class].Model)), //nolint:gosec // index of a slice
			GPUs:   gpus, Start: start, End: start + pt.Time, Point: *pt, Reason: old.Reason,
		}
		if int(l.old.Assignments[task].Node) != n {
			a.Reason.Place = planner.PlaceMoved
		}
		switch {
		case pt.Time > own*(1+narrow):
			a.Reason.Clocks, a.Reason.Want, a.Reason.Room = planner.ClocksStretched, own, pt.Time
		case pt.Time < own*(1-narrow):
			a.Reason.Clocks, a.Reason.Want, a.Reason.Room = planner.ClocksShrunk, own, pt.Time
		case math.Abs(old.Point.Time-pt.Time) > narrow*own:
			a.Reason.Clocks, a.Reason.Want, a.Reason.Room = planner.ClocksFree, own, t.Due-start
		}
		all[task] = a
	})
}
