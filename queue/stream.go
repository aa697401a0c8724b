package queue

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// Stream hands out jobs in the order in which they arrive, all of one moment
// together. An online planner that reads from it can't see ahead.
type Stream struct {
	jobs  []Job
	order []int // indexes by arrival, then by place in jobs
}

// NewStream returns the stream of the jobs, which must stay unchanged.
func NewStream(jobs []Job) *Stream {
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(jobs[a].Arrival, jobs[b].Arrival) })
	return &Stream{jobs: jobs, order: order}
}

// Peek is the time of the next arrival in seconds, +Inf when there is none.
func (s *Stream) Peek() float64 {
	if len(s.order) == 0 {
		return math.Inf(1)
	}
	return s.jobs[s.order[0]].Arrival
}

// Next removes the next arrivals from the stream: their time and the indexes
// of the jobs, in order. It is false at the end. The caller owns the slice.
func (s *Stream) Next() (arrival float64, group []int, ok bool) {
	if len(s.order) == 0 {
		return 0, nil, false
	}
	arrival = s.Peek()
	n := 1
	for n < len(s.order) && s.jobs[s.order[n]].Arrival == arrival {
		n++
	}
	group = s.order[:n:n]
	s.order = s.order[n:]
	return arrival, group, true
}

// Arrivals are the groups of a [Stream] as a sequence.
func Arrivals(jobs []Job) iter.Seq2[float64, []int] {
	return func(yield func(float64, []int) bool) {
		s := NewStream(jobs)
		for {
			arrival, group, ok := s.Next()
			if !ok || !yield(arrival, group) {
				return
			}
		}
	}
}
