package score

import (
	"math"
	"slices"

	"github.com/epplan/epplan/internal/heap"
)

// scoreGroups sorts nodes into groups of the same scores: there are few, as most
// scores are whole numbers. The scores are stretched by group.
type scoreGroups struct {
	v      demandView
	parts  int
	where  []int32 // by node: its group; none: -1
	groups []group
	found  map[uint64]int32 // by hash: the newest group
	live   []int32          // groups with nodes
	bounds [maxParts]scoreRange
}

// group is nodes of the same scores.
type group struct {
	scores [maxParts]float64
	nodes  heap.Heap[nodeNumber] // nodes that are here and some that left
	count  int                   // nodes that are here
	at     int                   // place in live
	older  int32                 // the next group of the same hash; none: -1
}

func newScoreGroups(v demandView, nodes, parts int) *scoreGroups {
	g := &scoreGroups{v: v, parts: parts, where: make([]int32, nodes), found: make(map[uint64]int32)}
	for i := range g.where {
		g.where[i] = -1
	}
	return g
}

func (g *scoreGroups) view() *demandView { return &g.v }

// restart keeps what is known: a group is where a node's scores are, old or new.
func (g *scoreGroups) restart() {}

func (g *scoreGroups) put(_ *activeRule, node int32, scores []float64) {
	old := g.where[node]
	if scores == nil {
		if old >= 0 {
			g.removeNode(old)
			g.where[node] = -1
		}
		return
	}
	if old >= 0 && slices.Equal(g.groups[old].scores[:g.parts], scores) {
		return
	}
	if old >= 0 {
		g.removeNode(old)
	}
	to := g.groupOf(scores)
	g.where[node] = to
	into := &g.groups[to]
	if into.count == 0 {
		into.nodes = into.nodes[:0]
		into.at = len(g.live)
		g.live = append(g.live, to)
	}
	into.count++
	into.nodes.Push(nodeNumber(node))
	if len(into.nodes) > 2*into.count+8 {
		into.nodes.Retain(func(node nodeNumber) bool { return g.where[node] == to })
	}
}

func (g *scoreGroups) removeNode(from int32) {
	old := &g.groups[from]
	old.count--
	if old.count > 0 {
		return
	}
	last := g.live[len(g.live)-1]
	g.live[old.at] = last
	g.groups[last].at = old.at
	g.live = g.live[:len(g.live)-1]
}

func (g *scoreGroups) groupOf(scores []float64) int32 {
	newest, known := g.found[hashScores(scores)]
	for at := newest; known && at >= 0; at = g.groups[at].older {
		if slices.Equal(g.groups[at].scores[:g.parts], scores) {
			return at
		}
	}
	if len(g.groups) > 64+2*len(g.live)+len(g.where)/8 {
		g.removeEmpty()
	}
	fresh := group{}
	copy(fresh.scores[:], scores)
	return g.add(fresh)
}

func (g *scoreGroups) add(fresh group) int32 {
	to := int32(len(g.groups))
	hash := hashScores(fresh.scores[:g.parts])
	newest, known := g.found[hash]
	if !known {
		newest = -1
	}
	fresh.older = newest
	g.groups = append(g.groups, fresh)
	g.found[hash] = to
	return to
}

func (g *scoreGroups) removeEmpty() {
	was := g.groups
	moved := make([]int32, len(was))
	for i := range moved {
		moved[i] = -1
	}
	g.groups = make([]group, 0, 2*len(g.live))
	clear(g.found)
	for i, at := range g.live {
		moved[at] = g.add(was[at])
		g.live[i] = moved[at]
	}
	for node, at := range g.where {
		if at >= 0 {
			g.where[node] = moved[at]
		}
	}
}

func hashScores(scores []float64) uint64 {
	hash := uint64(0)
	for _, x := range scores {
		hash = (hash ^ math.Float64bits(x+0)) * 0x94d049bb133111eb // -0 is 0
		hash ^= hash >> 32
	}
	return hash
}

// best returns the first node of the groups with the greatest total.
func (g *scoreGroups) best(m *activeRule) int32 {
	for p := range g.parts {
		for i, at := range g.live {
			x := g.groups[at].scores[p]
			if i == 0 {
				g.bounds[p] = scoreRange{x, x}
			}
			g.bounds[p] = scoreRange{min(g.bounds[p].lowest, x), max(g.bounds[p].highest, x)}
		}
	}
	node, most := int32(-1), 0.0
	for _, at := range g.live {
		total := m.total(g.groups[at].scores[:g.parts], g.bounds[:g.parts])
		if node >= 0 && total < most {
			continue
		}
		first := g.first(at)
		if node < 0 || total > most || first < node {
			node, most = first, total
		}
	}
	return node
}

// first returns the first node of a group that has one.
func (g *scoreGroups) first(at int32) int32 {
	nodes := &g.groups[at].nodes
	for g.where[(*nodes)[0]] != at {
		nodes.Pop()
	}
	return int32((*nodes)[0])
}

// nodeNumber is a node by its number.
type nodeNumber int32

// Compare is that of a heap.
func (a nodeNumber) Compare(b nodeNumber) int { return int(a) - int(b) }
