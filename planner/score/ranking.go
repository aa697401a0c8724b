package score

import (
	"math"

	"github.com/epplan/epplan/internal/heap"
)

// totalRanking sorts nodes by their total, under rules by which it doesn't depend
// on what other nodes there are.
type totalRanking struct {
	v       demandView
	totals  []float64            // by node; none: NaN
	entries heap.Heap[nodeTotal] // nodes at their totals, and at some that they had before
	count   int                  // nodes that have a total
	loose   bool                 // entries are in no order yet
}

func newTotalRanking(v demandView, nodes int) *totalRanking {
	return &totalRanking{v: v, totals: make([]float64, nodes)}
}

// restart forgets all nodes. Until the next choice they come in any order.
func (r *totalRanking) restart() {
	for i := range r.totals {
		r.totals[i] = math.NaN()
	}
	r.entries, r.count, r.loose = r.entries[:0], 0, true
}

func (r *totalRanking) view() *demandView { return &r.v }

func (r *totalRanking) put(m *activeRule, node int32, scores []float64) {
	old := r.totals[node]
	if scores == nil {
		if !math.IsNaN(old) {
			r.count--
			r.totals[node] = math.NaN()
		}
		return
	}
	var anything [maxParts]scoreRange
	total := m.total(scores, anything[:])
	if total == old {
		return
	}
	if math.IsNaN(old) {
		r.count++
	}
	r.totals[node] = total
	if r.loose {
		r.entries = append(r.entries, nodeTotal{total, node})
		return
	}
	r.entries.Push(nodeTotal{total, node})
	if len(r.entries) > 2*r.count+64 {
		r.entries.Retain(r.isCurrent)
	}
}

// isCurrent reports whether an entry has its node's present total.
func (r *totalRanking) isCurrent(s nodeTotal) bool { return r.totals[s.node] == s.total }

// best returns the first node of the greatest total.
func (r *totalRanking) best(*activeRule) int32 {
	if r.loose {
		r.entries.Init()
		r.loose = false
	}
	for len(r.entries) > 0 && !r.isCurrent(r.entries[0]) {
		r.entries.Pop()
	}
	if len(r.entries) == 0 {
		return -1
	}
	return r.entries[0].node
}

// nodeTotal is a node at a total.
type nodeTotal struct {
	total float64
	node  int32
}

// Compare is that of a heap: the highest total first, of equal ones the first node.
func (a nodeTotal) Compare(b nodeTotal) int {
	switch {
	case a.total > b.total:
		return -1
	case a.total < b.total:
		return 1
	}
	return int(a.node) - int(b.node)
}
