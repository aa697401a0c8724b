package score

import "slices"

// heapElement is what a heap holds.
type heapElement[E any] interface {
	comparable
	// compare is below 0 when the element comes before the other.
	compare(E) int
}

// heap keeps elements of which the first can be had at once.
type heap[E heapElement[E]] []E

func (h *heap[E]) push(x E) {
	*h = append(*h, x)
	s := *h
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if s[up].compare(x) <= 0 {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = x
}

func (h *heap[E]) pop() {
	s := *h
	last := len(s) - 1
	x := s[last]
	s = s[:last]
	*h = s
	if last == 0 {
		return
	}
	s.siftDown(0, x)
}

// siftDown puts an element where there is none any more, or below it.
func (h heap[E]) siftDown(i int, x E) {
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1].compare(h[down]) < 0 {
			down++
		}
		if h[down].compare(x) >= 0 {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = x
}

// heapify makes a heap of elements in any order.
func (h heap[E]) heapify() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.siftDown(i, h[i])
	}
}

// retain keeps what is still good, each once.
func (h *heap[E]) retain(good func(E) bool) {
	kept := slices.DeleteFunc(*h, func(x E) bool { return !good(x) })
	slices.SortFunc(kept, E.compare)
	*h = slices.Compact(kept)
}

// nodeNumber is a node by its number.
type nodeNumber int32

func (a nodeNumber) compare(b nodeNumber) int { return int(a) - int(b) }

// nodeTotal is a node at a total.
type nodeTotal struct {
	total float64
	node  int32
}

func (a nodeTotal) compare(b nodeTotal) int {
	switch {
	case a.total > b.total:
		return -1
	case a.total < b.total:
		return 1
	}
	return int(a.node) - int(b.node)
}
