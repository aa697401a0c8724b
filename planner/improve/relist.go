package improve

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/planner"
)

// relist tries to move and swap tasks between nodes, and to change the clocks
// of each node's tasks together. It returns nil where lists cannot describe the
// plan.
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
		if m%checkEvery == 0 {
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

// checkEvery is how many moves pass between two looks at the context: each times
// two lists at several levels.
const checkEvery = 64

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

// without is a node's list less one task.
func (l *lister) without(node, task int) []int {
	tasks := slices.Clone(l.nodes[node].tasks)
	return slices.DeleteFunc(tasks, func(i int) bool { return i == task })
}

// with is a list and one task more.
func (l *lister) with(list []int, task int) []int {
	at, _ := slices.BinarySearchFunc(list, task, l.byKey)
	return slices.Insert(slices.Clone(list), at, task)
}

// byKey is the order of tasks within a node.
func (l *lister) byKey(a, b int) int { return cmp.Compare(l.key[a], l.key[b]) }
