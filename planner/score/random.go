package score

import (
	"math/bits"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
)

// SplitMix is the splitmix64 generator; its value is the seed.
type SplitMix uint64

// Next draws a number.
func (s *SplitMix) Next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (s *SplitMix) intBelow(n int) int {
	return int(s.Next() % uint64(n))
}

// drawGPUs chooses the GPUs of a node for a task at random if it shares one.
func (s *SplitMix) drawGPUs(d *fleet.Demand, n *fleet.Node) planner.GPUSet {
	if d.GPUs == 0 || !d.IsShared() {
		return n.WholeGPUs(d.GPUs)
	}
	room := n.GPUsWithRoom(d.Milli)
	for range s.intBelow(room.Len()) {
		room &= room - 1
	}
	return room & -room
}

// Random draws one of the nodes that a task fits on, and one of the GPUs that it can share there
// (data/openb/SEMANTICS.md, section 9). Every choice draws, whether the task is placed or not. It
// looks only at nodes that changed.
type Random struct {
	changeTracker
	draw    SplitMix
	fitting map[fleet.Demand]*fittingNodes
}

// fittingNodes is the nodes that a demand fits on.
type fittingNodes struct {
	demandView
	set   []uint64 // a bit for each node
	count int
}

// maxFittingNodes is how many demands are remembered before starting afresh.
const maxFittingNodes = 1 << 12

// NewRandom returns a chooser for a cluster, which it owns from now on.
func NewRandom(s *fleet.State, seed uint64) *Random {
	return &Random{
		changeTracker: newChangeTracker(s), draw: SplitMix(seed),
		fitting: make(map[fleet.Demand]*fittingNodes),
	}
}

// Choose draws a node.
func (c *Random) Choose(d *fleet.Demand) (node int, gpus planner.GPUSet, ok bool) {
	r := c.fitting[*d]
	if r == nil {
		if len(c.fitting) >= maxFittingNodes {
			clear(c.fitting)
		}
		r = &fittingNodes{demandView: c.newDemandView(d), set: make([]uint64, (len(c.nodes)+63)/64)}
		c.fitting[*d] = r
	}
	for i := range c.changed(&r.demandView, 0) {
		r.note(int(i), r.canFit(&c.nodes[i], c.kinds[i]))
	}
	if r.count == 0 {
		return 0, 0, false
	}
	node = r.nth(c.draw.intBelow(r.count))
	return node, c.draw.drawGPUs(d, c.state.Node(node)), true
}

func (r *fittingNodes) note(node int, fits bool) {
	word, bit := &r.set[node/64], uint64(1)<<(node%64)
	switch had := *word&bit != 0; {
	case fits && !had:
		*word |= bit
		r.count++
	case !fits && had:
		*word &^= bit
		r.count--
	}
}

// nth returns the node after n others with room.
func (r *fittingNodes) nth(n int) int {
	for i, word := range r.set {
		here := bits.OnesCount64(word)
		if n >= here {
			n -= here
			continue
		}
		for range n {
			word &= word - 1
		}
		return i*64 + bits.TrailingZeros64(word)
	}
	return -1
}
