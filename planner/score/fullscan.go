package score

import (
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
)

// FullScan applies a rule by scoring every node for every task.
type FullScan struct {
	stateForwarder
	mix    activeRule
	nodes  []int     // that the task fits on
	scores []float64 // one for each node and part
	bounds []scoreRange
}

// NewFullScan returns a chooser for a cluster, which it owns from now on.
func NewFullScan(r Rule, s *fleet.State) *FullScan {
	return &FullScan{
		stateForwarder: stateForwarder{s}, mix: newActiveRule(r), bounds: make([]scoreRange, len(r.Parts)),
	}
}

// Choose scores every node.
func (c *FullScan) Choose(d *fleet.Demand) (node int, gpus planner.GPUSet, ok bool) {
	c.mix.adapt(c.state)
	c.nodes, c.scores = c.nodes[:0], c.scores[:0]
	parts := len(c.mix.parts)
	for i := range c.state.Len() {
		n := c.state.Node(i)
		if !n.Fits(d) {
			continue
		}
		c.nodes = append(c.nodes, i)
		for range parts {
			c.scores = append(c.scores, 0)
		}
		scores := c.scores[len(c.scores)-parts:]
		c.mix.score(d, n, scores)
		for p, x := range scores {
			if len(c.nodes) == 1 {
				c.bounds[p] = scoreRange{x, x}
			}
			c.bounds[p] = scoreRange{min(c.bounds[p].lowest, x), max(c.bounds[p].highest, x)}
		}
	}
	best := 0.0
	for i, candidate := range c.nodes {
		if total := c.mix.total(c.scores[i*parts:(i+1)*parts], c.bounds); i == 0 || total > best {
			node, best = candidate, total
		}
	}
	if len(c.nodes) == 0 {
		return 0, 0, false
	}
	return node, c.mix.chooseGPUs(d, c.state.Node(node)), true
}

// stateForwarder passes changes of the state on.
type stateForwarder struct{ state *fleet.State }

// Place puts a task on GPUs of a node.
func (k *stateForwarder) Place(node int, d *fleet.Demand, gpus planner.GPUSet) error {
	return k.state.Place(node, d, gpus)
}

// Release takes a task away again.
func (k *stateForwarder) Release(node int, d *fleet.Demand, gpus planner.GPUSet) {
	k.state.Release(node, d, gpus)
}

// Sleep switches an empty node off.
func (k *stateForwarder) Sleep(node int) { k.state.Sleep(node) }

// Wake switches a node on.
func (k *stateForwarder) Wake(node int) { k.state.Wake(node) }

// State returns the cluster.
func (k *stateForwarder) State() *fleet.State { return k.state }
