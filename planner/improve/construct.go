package improve

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// construct places the items on the GPUs of so many nodes by EDL algorithm 2:
// those that need a GPU from the start first, then the others by due time, each
// on the GPU that is free first, or on a fresh one if it would be late there.
// GPUs of similar length become nodes (algorithm 3).
//
// Algorithm 2 with many GPUs open from the start keeps none for late tasks of
// little slack. So GPUs are held back until all fit in the count; at last tasks
// for which none is left run at higher clocks. ok is false when that fails, too.
func (s *gpuSchedule) construct(count int) (c *gpuSchedule, ok bool) {
	const mostTries = 6 // numbers of GPUs that are open from the start
	most := count * s.nodeGPUs
	for open, tries := most, 0; tries < mostTries && open > 0; tries++ {
		c = s.constructFrom(open, math.MaxInt)
		if len(c.gpus) <= most {
			break
		}
		open -= len(c.gpus) - most
	}
	if c == nil || len(c.gpus) > most {
		if c = s.constructFrom(0, most); c == nil {
			c = s.constructFrom(most, most)
		}
		if c == nil {
			return nil, false
		}
	}
	c.gpus = append(c.gpus, make([]gpu, most-len(c.gpus))...)
	for g := range c.gpus {
		for _, i := range c.gpus[g].tasks {
			c.gpus[g].plus(&c.items[i].timeCurve, 1)
		}
	}
	c.formNodes()
	return c, true
}

// constructFrom is algorithm 2 with some GPUs open from the start and at most so many
// in the end. It is nil when those don't suffice. The GPUs' curves are left for
// later.
func (s *gpuSchedule) constructFrom(open, most int) *gpuSchedule {
	c := &gpuSchedule{
		items: s.items, order: s.order, gpuOf: make([]int32, len(s.items)), gpus: make([]gpu, open),
		nodeGPUs: s.nodeGPUs, idle: s.idle, perNode: s.perNode, stepped: s.stepped,
	}
	h := make(planner.Agenda, open)
	for g := range h {
		h[g].What = g
	}
	for _, i := range c.order {
		at := 0
		if len(h) == 0 || h[0].At+s.items[i].time[freeOptimum] > s.items[i].due*(1+roundOff) {
			if at = c.openOrShortest(&h, i, most); at < 0 {
				return nil
			}
		}
		c.addToList(i, int32(h[at].What))
		h.Move(at, h[at].At+s.items[i].time[freeOptimum])
	}
	return c
}

// itemsInOrder lists the items in the order of algorithm 2.
func (s *gpuSchedule) itemsInOrder() []int32 {
	order := make([]int32, len(s.items)-1)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		if x, y := s.fillsItsTime(a), s.fillsItsTime(b); x != y {
			if x {
				return -1
			}
			return 1
		}
		return s.byDue(a, b)
	})
	return order
}

// fillsItsTime reports whether an item takes all the time up to its due time, so that it
// needs a GPU from the start (a deadline-prior task, EDL definition 1).
func (s *gpuSchedule) fillsItsTime(i int32) bool {
	return s.items[i].time[freeOptimum] >= s.items[i].room*(1-roundOff)
}

// openOrShortest opens a GPU, or else finds the shortest one that can take the item at
// higher clocks. It returns the place in the heap, or -1.
func (s *gpuSchedule) openOrShortest(h *planner.Agenda, i int32, most int) int {
	if len(s.gpus) < most {
		s.gpus = append(s.gpus, gpu{})
		h.Add(planner.Event{What: len(s.gpus) - 1})
		return 0
	}
	best := -1
	for at := range *h {
		if best >= 0 && !(*h)[at].Before((*h)[best]) {
			continue
		}
		if s.onTime(&s.gpus[(*h)[at].What], s.dummyItem(), i, 0, 0) {
			best = at
		}
	}
	return best
}

// formNodes forms nodes of l GPUs of falling natural length.
func (s *gpuSchedule) formNodes() {
	order := make([]int32, len(s.gpus))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.gpus[b].time[freeOptimum], s.gpus[a].time[freeOptimum]),
			cmp.Compare(a, b))
	})
	s.servers = make([]server, len(s.gpus)/s.nodeGPUs)
	for j := range s.servers {
		v := &s.servers[j]
		v.gpus = order[j*s.nodeGPUs : (j+1)*s.nodeGPUs]
		for _, g := range v.gpus {
			s.gpus[g].server = int32(j)
			v.end = max(v.end, s.gpus[g].time[freeOptimum])
		}
		s.chooseEnd(int32(j), fullEndTries)
	}
}
