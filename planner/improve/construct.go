package improve

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// construct places the items on the GPUs of so many nodes by EDL algorithm 2:
// those that need a GPU from the start first, then the others by due time, each
// on the GPU that is free first, or on a fresh one if it would be late there.
// GPUs of similar length become nodes (algorithm 3).
//
// Algorithm 2 with many GPUs open from the start keeps none for late tasks of
// little slack. So GPUs are held back until all fit in the count; at last tasks
// for which none is left run at higher clocks. ok is false when that fails, too.
func (s *state) construct(count int) (c *state, ok bool) {
	const mostTries = 6 // numbers of GPUs that are open from the start
	most := count * s.nodeGPUs
	for open, tries := most, 0; tries < mostTries && open > 0; tries++ {
		c = s.spread(open, math.MaxInt)
		if len(c.gpus) <= most {
			break
		}
		open -= len(c.gpus) - most
	}
	if c == nil || len(c.gpus) > most {
		if c = s.spread(0, most); c == nil {
			c = s.spread(most, most)
		}
		if c == nil {
			return nil, false
		}
	}
	c.gpus = append(c.gpus, make([]gpu, most-len(c.gpus))...)
	for g := range c.gpus {
		for _, i := range c.gpus[g].tasks {
			c.gpus[g].plus(&c.items[i].curve, 1)
		}
	}
	c.group()
	return c, true
}

// spread is algorithm 2 with some GPUs open from the start and at most so many
// in the end. It is nil when those don't suffice. The GPUs' curves are left for
// later.
func (s *state) spread(open, most int) *state {
	c := &state{
		items: s.items, order: s.order, where: make([]int32, len(s.items)), gpus: make([]gpu, open),
		nodeGPUs: s.nodeGPUs, idle: s.idle, perNode: s.perNode, stepped: s.stepped,
	}
	h := make(lengths, open)
	for g := range h {
		h[g].gpu = int32(g)
	}
	for _, i := range c.order {
		at := 0
		if len(h) == 0 || h[0].end+s.items[i].time[natural] > s.items[i].due*(1+roundOff) {
			if at = c.another(&h, i, most); at < 0 {
				return nil
			}
		}
		c.list(i, h[at].gpu)
		h[at].end += s.items[i].time[natural]
		heap.Fix(&h, at)
	}
	return c
}

// inOrder lists the items in the order of algorithm 2.
func (s *state) inOrder() []int32 {
	order := make([]int32, len(s.items)-1)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		if x, y := s.fills(a), s.fills(b); x != y {
			if x {
				return -1
			}
			return 1
		}
		return s.byDue(a, b)
	})
	return order
}

// fills tells whether an item takes all the time up to its due time, so that it
// needs a GPU from the start (a deadline-prior task, EDL definition 1).
func (s *state) fills(i int32) bool {
	return s.items[i].time[natural] >= s.items[i].room*(1-roundOff)
}

// another opens a GPU, or else finds the shortest one that can take the item at
// higher clocks. It returns the place in the heap, or -1.
func (s *state) another(h *lengths, i int32, most int) int {
	if len(s.gpus) < most {
		s.gpus = append(s.gpus, gpu{})
		heap.Push(h, length{gpu: int32(len(s.gpus) - 1)})
		return 0
	}
	best := -1
	for at := range *h {
		if best >= 0 && !h.Less(at, best) {
			continue
		}
		if s.onTime(&s.gpus[(*h)[at].gpu], s.none(), i, 0, 0) {
			best = at
		}
	}
	return best
}

// group forms nodes of l GPUs of falling natural length.
func (s *state) group() {
	order := make([]int32, len(s.gpus))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.gpus[b].time[natural], s.gpus[a].time[natural]), cmp.Compare(a, b))
	})
	s.servers = make([]server, len(s.gpus)/s.nodeGPUs)
	for j := range s.servers {
		v := &s.servers[j]
		v.gpus = order[j*s.nodeGPUs : (j+1)*s.nodeGPUs]
		for _, g := range v.gpus {
			s.gpus[g].server = int32(j)
			v.end = max(v.end, s.gpus[g].time[natural])
		}
		s.settle(int32(j), settleFully)
	}
}

// length is a GPU and when it comes free.
type length struct {
	end float64
	gpu int32
}

// lengths is a heap of GPUs, the one that is free first on top.
type lengths []length

func (h lengths) Len() int { return len(h) }
func (h lengths) Less(i, j int) bool {
	return h[i].end < h[j].end || (h[i].end == h[j].end && h[i].gpu < h[j].gpu)
}
func (h lengths) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push adds an entry; for container/heap.
func (h *lengths) Push(x any) { *h = append(*h, x.(length)) } //nolint:errcheck // lengths only

// Pop takes the last entry; for container/heap.
func (h *lengths) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
