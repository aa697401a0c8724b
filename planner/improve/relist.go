package improve

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// levels are the prices, as indexes of priceSteps, that relist tries for the
// tasks of a node together.
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
	steps   int       // work done: placements times GPUs to choose from
}

// listed is a node as a list.
type listed struct {
	class   int
	tasks   []int
	level   int     // index in levels
	cost    float64 // joules, as timed at that level
	changed bool    // differs from the plan that was given, which a list need not be able to say
}

// relist tries to move and swap tasks between nodes, and to change the clocks
// of each node's tasks together. It returns nil where lists cannot describe the
// plan, or nothing was found.
func relist(ctx context.Context, p *planner.Problem, plan *planner.Plan, moves int, rng *rand.Rand) (*planner.Plan, error) {
	if !listable(p, plan) {
		return nil, ctx.Err()
	}
	l := newLister(p, plan)
	most := math.MaxInt
	if moves <= 0 {
		n := len(p.Tasks)
		moves, most = max(movesPerTask*n, min(leastMoves, movesPerPair*n*n)), mostSteps
	}
	for m := range moves {
		if l.steps > most {
			break
		}
		if m%64 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("retune: %w", err)
			}
		}
		task := rng.IntN(len(p.Tasks))
		if rng.IntN(2) == 0 {
			l.move(task, rng.IntN(len(l.nodes)+1))
		} else {
			l.swap(task, rng.IntN(len(p.Tasks)))
		}
	}
	return l.plan(), nil
}

// Limits of the work that relist does unasked.
const (
	movesPerTask = 100
	leastMoves   = 10_000 // unless each two tasks were tried so often
	movesPerPair = 100
	mostSteps    = 100_000_000 // placements of a task on one of a node's GPUs
	mostListed   = 20_000      // larger batches keep their places
)

// listable tells whether the plan is one of whole GPUs that start at any time,
// on nodes that are on for as long as their tasks need, or not at all.
func listable(p *planner.Problem, plan *planner.Plan) bool {
	if p.Mode != planner.Offline || p.Start != planner.StartContinuous || len(p.Tasks) > mostListed || p.AnyBinds() {
		return false
	}
	last := make([]float64, len(plan.Nodes))
	for i := range plan.Assignments {
		if a := &plan.Assignments[i]; a.Node >= 0 {
			last[a.Node] = max(last[a.Node], a.End)
		}
	}
	for n := range plan.Nodes {
		on := plan.Nodes[n].On
		if len(on) == 0 && last[n] == 0 {
			continue
		}
		if len(on) != 1 || on[0].From != 0 || on[0].To > last[n]*(1+roundOff) {
			return false
		}
	}
	return true
}

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

func (l *lister) point(task, class, level int) *dvfsmodel.Point {
	return &l.points[task*len(l.p.Cluster.Classes)+class][level]
}

// timing plays a list at a level and returns its cost. Each placement is handed
// to visit unless that is nil. ok is false when a task is late or doesn't suit.
func (l *lister) timing(class int, tasks []int, level int, visit func(task int, gpus planner.GPUSet, start float64)) (cost float64, ok bool) {
	k := &l.p.Cluster.Classes[class]
	free := l.free[:k.GPUs]
	for g := range free {
		free[g] = k.TurnOnDelay
	}
	l.steps += len(tasks) * (k.GPUs + 4)
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

// move puts a task on a node; the number after the last one is a new node.
func (l *lister) move(task, to int) {
	from := l.home[task]
	if from < 0 || from == to {
		return
	}
	fresh := to == len(l.nodes)
	if fresh {
		class := l.nodes[from].class
		if n := l.p.Cluster.Classes[class].Count; n > 0 && l.count[class] >= n {
			return
		}
		l.nodes = append(l.nodes, listed{class: class})
		l.count[class]++
	}
	if !l.adopt(from, to, l.without(from, task), l.with(l.nodes[to].tasks, task)) {
		if fresh {
			l.count[l.nodes[to].class]--
			l.nodes = l.nodes[:to]
		}
		return
	}
	l.home[task] = to
}

// swap exchanges two tasks: their nodes, or their turns on the node of both.
func (l *lister) swap(i, j int) {
	a, b := l.home[i], l.home[j]
	if a < 0 || b < 0 {
		return
	}
	if a == b {
		l.reorder(a, i, j)
		return
	}
	if l.adopt(a, b, l.with(l.without(a, i), j), l.with(l.without(b, j), i)) {
		l.home[i], l.home[j] = b, a
	}
}

// reorder has two tasks of a node change turns if that saves energy.
func (l *lister) reorder(node, i, j int) {
	if i == j {
		return
	}
	v := &l.nodes[node]
	l.key[i], l.key[j] = l.key[j], l.key[i]
	tasks := slices.SortedFunc(slices.Values(v.tasks), l.byKey)
	if level, cost, ok := l.best(v.class, tasks); ok && cost < v.cost*(1-roundOff) {
		*v = listed{class: v.class, tasks: tasks, level: level, cost: cost, changed: true}
		return
	}
	l.key[i], l.key[j] = l.key[j], l.key[i]
}

// adopt gives two nodes new lists if that saves energy.
func (l *lister) adopt(a, b int, listA, listB []int) bool {
	u, v := &l.nodes[a], &l.nodes[b]
	now := u.cost + v.cost
	levelA, costA, ok := l.best(u.class, listA)
	if !ok || costA >= now {
		return false
	}
	levelB, costB, ok := l.best(v.class, listB)
	if !ok || costA+costB >= now*(1-roundOff) {
		return false
	}
	*u = listed{class: u.class, tasks: listA, level: levelA, cost: costA, changed: true}
	*v = listed{class: v.class, tasks: listB, level: levelB, cost: costB, changed: true}
	return true
}

// without is a node's list less one task; with is a list and one task more.
func (l *lister) without(node, task int) []int {
	tasks := slices.Clone(l.nodes[node].tasks)
	return slices.DeleteFunc(tasks, func(i int) bool { return i == task })
}

func (l *lister) with(list []int, task int) []int {
	at, _ := slices.BinarySearchFunc(list, task, l.byKey)
	return slices.Insert(slices.Clone(list), at, task)
}

// byKey is the order of tasks within a node.
func (l *lister) byKey(a, b int) int { return cmp.Compare(l.key[a], l.key[b]) }

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
