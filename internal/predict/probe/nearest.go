package probe

import (
	"cmp"
	"slices"
)

// Nearest returns the jobs that were learnt from, by their place in the set, that an
// embedding is most like in style: at most n of them, the nearest first.
func (d *Distances) Nearest(e []float64, n int) []int {
	mine := d.set.style(e)
	apart := make([]float64, len(d.set.Embeddings))
	order := make([]int, len(apart))
	for i, other := range d.set.Embeddings {
		order[i] = i
		for k, v := range d.set.style(other) {
			apart[i] += (v - mine[k]) * (v - mine[k])
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(apart[a], apart[b]) })
	return order[:min(n, len(order))]
}
