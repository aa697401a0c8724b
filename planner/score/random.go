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

// below draws a number below n.
func (s *SplitMix) below(n int) int {
	return int(s.Next() % uint64(n))
}

// drawGPUs chooses the GPUs of a node for a task at random if it shares one.
func (s *SplitMix) drawGPUs(d *fleet.Demand, n *fleet.Node) planner.GPUSet {
	if d.GPUs == 0 || !d.IsShared() {
		return n.WholeGPUs(d.GPUs)
	}
	room := n.GPUsWithRoom(d.Milli)
	for range s.below(room.Len()) {
		room &= room - 1
	}
	return room & -room
}

// PlainRandom draws one of the nodes that a task fits on, and one of the GPUs
// that it can share there (data/openb/SEMANTICS.md, section 9). Every choice
// draws, whether the task is placed or not.
type PlainRandom struct {
	keeper
	draw  SplitMix
	nodes []int
}

// NewPlainRandom is a chooser for a cluster, which it owns from now on.
func NewPlainRandom(s *fleet.State, seed uint64) *PlainRandom {
	return &PlainRandom{keeper: keeper{s}, draw: SplitMix(seed)}
}

// Choose draws a node.
func (c *PlainRandom) Choose(d *fleet.Demand) (node int, gpus planner.GPUSet, ok bool) {
	c.nodes = c.nodes[:0]
	for i := range c.state.Len() {
		if c.state.Node(i).Fits(d) {
			c.nodes = append(c.nodes, i)
		}
	}
	if len(c.nodes) == 0 {
		return 0, 0, false
	}
	node = c.nodes[c.draw.below(len(c.nodes))]
	return node, c.draw.drawGPUs(d, c.state.Node(node)), true
}

// Random draws as [PlainRandom] does, and looks only at nodes that changed.
type Random struct {
	tracker
	draw  SplitMix
	rooms map[fleet.Demand]*rooms
}

// rooms is the nodes that a demand fits on.
type rooms struct {
	view
	set   []uint64 // a bit for each node
	count int
}

// mostRooms is how many demands are remembered before starting afresh.
const mostRooms = 1 << 12

// NewRandom is a chooser for a cluster, which it owns from now on.
func NewRandom(s *fleet.State, seed uint64) *Random {
	return &Random{tracker: newTracker(s), draw: SplitMix(seed), rooms: make(map[fleet.Demand]*rooms)}
}

// Choose draws a node.
func (c *Random) Choose(d *fleet.Demand) (node int, gpus planner.GPUSet, ok bool) {
	r := c.rooms[*d]
	if r == nil {
		if len(c.rooms) >= mostRooms {
			clear(c.rooms)
		}
		r = &rooms{view: c.newView(d), set: make([]uint64, (len(c.nodes)+63)/64)}
		c.rooms[*d] = r
	}
	for i := range c.changed(&r.view, 0) {
		r.note(int(i), r.fits(&c.nodes[i], c.kinds[i]))
	}
	if r.count == 0 {
		return 0, 0, false
	}
	node = r.nth(c.draw.below(r.count))
	return node, c.draw.drawGPUs(d, c.state.Node(node)), true
}

// note is whether a node has room.
func (r *rooms) note(node int, fits bool) {
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

// nth is the node after n others with room.
func (r *rooms) nth(n int) int {
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
