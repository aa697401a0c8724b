package place

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// Marginal places a task at once where it adds the least energy: what the run
// takes at the clocks for that place, and the idle time to be expected because
// the node stays on longer. A node that is switched on adds its turn-on energy
// and its wait to go off again. Idle time that the task fills counts in its
// favour. All of it counts by the objective, in which time and the task's wait for its
// start may have a price.
//
// It works for every problem: several classes, tasks of many GPUs, shares. It
// takes time linear in the number of GPUs for each task.
func Marginal(v *planner.View) planner.Placer { return &marginal{v: v} }

type marginal struct {
	v     *planner.View
	nodes []int // that are on

	// Of the task that is being placed.
	suits []int             // by class: its option, or -1
	cheap planner.Placement // the cheapest so far
	least float64           // what that adds to the objective; +Inf: there is none
}

func (m *marginal) Opened(node int) { m.nodes = append(m.nodes, node) }

func (m *marginal) Closed(node int) {
	m.nodes = slices.DeleteFunc(m.nodes, func(n int) bool { return n == node })
}

func (m *marginal) Committed(int, *planner.Assignment) {}

func (m *marginal) Place(task int) (planner.Placement, planner.Verdict) {
	if m.v.Problem.Tasks[task].IsGang() {
		return placeGang(m.v, task, gangCheapest)
	}
	m.least, m.suits = math.Inf(1), appendOptions(m.v, m.suits[:0], task)
	for class := range m.v.Problem.Cluster.Classes {
		m.tryFresh(task, class)
	}
	for _, node := range m.nodes {
		m.tryNode(task, node)
	}
	if math.IsInf(m.least, 1) {
		return placeAsLastResort(m.v, task)
	}
	return m.cheap, planner.Start
}

func (m *marginal) tryFresh(task, class int) {
	option := m.suits[class]
	if option < 0 || !m.v.CanOpen(task, option, class) {
		return
	}
	p := m.v.Problem
	k := &p.Cluster.Classes[class]
	start := m.v.StartOnNew(task, class)
	q, room, ok := askQuote(m.v, task, option, class, start)
	if !ok {
		return
	}
	gpus := p.Tasks[task].Options[option].GPUs
	cost := taskCost(p, task, option, class, &q) + waitCost(m.v, task, option, start)
	cost += freshIdleWeight * idleCost(m.v, class) * float64(k.GPUs-gpus) * q.Point.Time
	if p.Mode != planner.Offline || p.Cluster.OfflineTurnOn {
		// The wait until it goes off again is worth about the turn-on energy.
		cost += 2*turnOnCost(m.v, class)*float64(k.GPUs) + idleCost(m.v, class)*float64(k.GPUs)*k.TurnOnDelay
	}
	if cost < m.least {
		m.least = cost
		m.cheap = newPlacement(-1, class, option, planner.FirstGPUs(gpus), start, &q, room, planner.PlaceOpened)
	}
}

// tryNode weighs the places on a node that is on: each GPU for a task of one
// GPU, those that are free first for the others.
func (m *marginal) tryNode(task, node int) {
	n := m.v.Node(node)
	option := m.suits[n.Class]
	if option < 0 {
		return
	}
	if m.v.Problem.Tasks[task].Options[option].GPUs > 1 || !m.v.OnlyGPUsLimited {
		if start, gpus, ok := m.v.Earliest(task, option, node); ok {
			m.try(task, node, &n, option, gpus, start)
		}
		return
	}
	for g := range n.GPUs {
		m.try(task, node, &n, option, 1<<uint(g), m.v.StartFor(task, m.v.FreeFrom(n.FirstGPU+g)))
	}
}

func (m *marginal) try(
	task, node int, n *planner.NodeState, option int, gpus planner.GPUSet, start float64,
) {
	p, class, end := m.v.Problem, n.Class, n.LastEnd
	want, _, ok := m.v.Want(task, class)
	if !ok {
		return
	}
	wait := waitCost(m.v, task, option, start)
	least := taskCost(p, task, option, class, want) + wait + m.idleCostAdded(class, gpus, start,
		want.Point.Time, end)
	if want.Point.Time > p.Tasks[task].TimeBudgetFrom(start) &&
		least-idleCost(m.v, class)*want.Point.Time >= m.least {
		return // clocks for less room cost more still
	}
	q, room, ok := askQuote(m.v, task, option, class, start)
	if !ok {
		return
	}
	cost := taskCost(p, task, option, class, &q) + wait + m.idleCostAdded(class, gpus, start,
		q.Point.Time, end)
	if cost < m.least {
		m.least = cost
		m.cheap = newPlacement(node, class, option, gpus, start, &q, room, planner.PlaceMarginal)
	}
}

// idleCostAdded returns what the idle time costs that a run adds on a node that is on until end:
// the node may end later, and idle time up to its end is used, so that it may be below
// 0.
func (m *marginal) idleCostAdded(class int, gpus planner.GPUSet, start, time, end float64) float64 {
	later := max(0, start+time-end) * float64(m.v.Problem.Cluster.Classes[class].GPUs)
	used := max(0, min(start+time, end)-start) * float64(gpus.Len())
	return idleCost(m.v, class) * (laterIdleWeight*later - used)
}
