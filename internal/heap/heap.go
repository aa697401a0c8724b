// Package heap holds binary heaps of elements that compare themselves. Equal elements come in the
// order in which container/heap would give them. Pure, and below every other room.
package heap

import "slices"

// Element is an element of a heap.
type Element[E any] interface {
	// Compare is below 0 if the element comes before the other one.
	Compare(E) int
}

// Heap holds elements, the one that comes before all others at index 0.
type Heap[E Element[E]] []E

// Push adds an element.
func (h *Heap[E]) Push(x E) {
	s := append(*h, x)
	*h = s
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if s[up].Compare(x) <= 0 {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = x
}

// Pop removes the first element and returns it.
func (h *Heap[E]) Pop() E {
	s := *h
	first, last := s[0], len(s)-1
	x := s[last]
	var none E
	s[last] = none // for the garbage collector
	*h = s[:last]
	if last > 0 {
		h.sink(0, x)
	}
	return first
}

// FixFirst restores the order after the first element was changed to come later.
func (h Heap[E]) FixFirst() { h.sink(0, h[0]) }

// Init puts elements in any order into that of a heap.
func (h Heap[E]) Init() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(i, h[i])
	}
}

// Retain keeps the elements that are still good, each of equal ones once.
func (h *Heap[E]) Retain(good func(E) bool) {
	kept := slices.DeleteFunc(*h, func(x E) bool { return !good(x) })
	slices.SortFunc(kept, E.Compare)
	*h = slices.CompactFunc(kept, func(a, b E) bool { return a.Compare(b) == 0 })
}

// sink puts an element at an index that is free, or below it.
func (h Heap[E]) sink(i int, x E) {
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1].Compare(h[down]) < 0 {
			down++
		}
		if h[down].Compare(x) >= 0 {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = x
}
