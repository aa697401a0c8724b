package score

import (
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
)

// NewForgetfulIndex returns an Index that starts afresh all the time.
func NewForgetfulIndex(r Rule, s *fleet.State) *Index {
	return newIndex(r, s, limits{ranked: 2, classes: s.Len() + 2, memo: 4})
}

// Factor returns how many times their price scarce things cost.
func (p *Potential) Factor() float64 { return p.factor }

// FullScanRandom draws as [Random] does, and looks at every node each time.
type FullScanRandom struct {
	stateForwarder
	draw  SplitMix
	nodes []int
}

// NewFullScanRandom returns a chooser for a cluster, which it owns from now on.
func NewFullScanRandom(s *fleet.State, seed uint64) *FullScanRandom {
	return &FullScanRandom{stateForwarder: stateForwarder{s}, draw: SplitMix(seed)}
}

// Choose draws a node.
func (c *FullScanRandom) Choose(d *fleet.Demand) (node int, gpus planner.GPUSet, ok bool) {
	c.nodes = c.nodes[:0]
	for i := range c.state.Len() {
		if c.state.Node(i).Fits(d) {
			c.nodes = append(c.nodes, i)
		}
	}
	if len(c.nodes) == 0 {
		return 0, 0, false
	}
	node = c.nodes[c.draw.intBelow(len(c.nodes))]
	return node, c.draw.drawGPUs(d, c.state.Node(node)), true
}
