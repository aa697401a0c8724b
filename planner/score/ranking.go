package score

import "math"

// ranking sorts nodes by their total, under rules by which it doesn't depend
// on what other nodes there are.
type ranking struct {
	v       view
	totals  []float64      // by node; none: NaN
	entries heap[standing] // nodes at their totals, and at some that they had before
	count   int            // nodes that have a total
	loose   bool           // entries are in no order yet
}

func newRanking(v view, nodes int) *ranking {
	return &ranking{v: v, totals: make([]float64, nodes)}
}

// restart forgets all nodes. Until the next choice they come in any order.
func (r *ranking) restart() {
	for i := range r.totals {
		r.totals[i] = math.NaN()
	}
	r.entries, r.count, r.loose = r.entries[:0], 0, true
}

func (r *ranking) view() *view { return &r.v }

func (r *ranking) put(m *mixture, node int32, scores []float64) {
	old := r.totals[node]
	if scores == nil {
		if !math.IsNaN(old) {
			r.count--
			r.totals[node] = math.NaN()
		}
		return
	}
	var anything [maxParts]bound
	total := m.total(scores, anything[:])
	if total == old {
		return
	}
	if math.IsNaN(old) {
		r.count++
	}
	r.totals[node] = total
	if r.loose {
		r.entries = append(r.entries, standing{total, node})
		return
	}
	r.entries.push(standing{total, node})
	if len(r.entries) > 2*r.count+64 {
		r.entries.tidy(r.valid)
	}
}

// valid tells whether an entry has its node's present total.
func (r *ranking) valid(s standing) bool { return r.totals[s.node] == s.total }

// best is the first node of the greatest total.
func (r *ranking) best(*mixture) int32 {
	if r.loose {
		r.entries.order()
		r.loose = false
	}
	for len(r.entries) > 0 && !r.valid(r.entries[0]) {
		r.entries.pop()
	}
	if len(r.entries) == 0 {
		return -1
	}
	return r.entries[0].node
}
