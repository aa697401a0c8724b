package planner

import (
	"math"
	"math/bits"
)

// Agenda is a heap of events, the first one on top: by time, and those of one time by number. Times
// aren't negative.
type Agenda []Event

// Event is when something happens to a node or a task, or when a GPU is free.
type Event struct {
	At   float64 // seconds
	What int     // the number of the node, the task or the GPU
}

// before is 1 if a comes before b, and 0 otherwise. Bits of times that aren't negative are in the
// order of the times, and the pair is subtracted like one long number: a branch would be
// guessed wrong every other time.
func (a Event) before(b Event) int {
	_, borrow := bits.Sub64(uint64(a.What), uint64(b.What), 0)
	_, borrow = bits.Sub64(math.Float64bits(a.At), math.Float64bits(b.At), borrow)
	return int(borrow)
}

// Before reports whether a comes before b.
func (a Event) Before(b Event) bool { return a.before(b) > 0 }

// nextTime returns when the first event is due; +Inf when there is none.
func (q Agenda) nextTime() float64 {
	if len(q) == 0 {
		return math.Inf(1)
	}
	return q[0].At
}

// Add adds an event.
func (q *Agenda) Add(e Event) {
	*q = append(*q, e)
	q.siftUp(len(*q) - 1)
}

// Pop takes the first event.
func (q *Agenda) Pop() Event {
	first, last := (*q)[0], len(*q)-1
	(*q)[0] = (*q)[last]
	if *q = (*q)[:last]; last > 0 {
		q.siftDown(0)
	}
	return first
}

// Move gives the event at an index another time.
func (q *Agenda) Move(i int, at float64) {
	(*q)[i].At = at
	q.siftDown(i)
}

// siftUp moves an event that may be earlier than its parents to where it belongs.
func (q *Agenda) siftUp(i int) {
	heap := *q
	e := heap[i]
	for i > 0 {
		parent := (i - 1) / 2
		if e.before(heap[parent]) == 0 {
			break
		}
		heap[i] = heap[parent]
		i = parent
	}
	heap[i] = e
}

// siftDown moves an event to where it belongs. Most became later and belong near the bottom, so it goes
// there first, and then up again as far as it must.
func (q *Agenda) siftDown(i int) {
	heap := *q
	e := heap[i]
	child := 2*i + 1
	for child+1 < len(heap) {
		child += heap[child+1].before(heap[child])
		heap[i] = heap[child]
		i, child = child, 2*child+1
	}
	if child < len(heap) {
		heap[i] = heap[child]
		i = child
	}
	heap[i] = e
	q.siftUp(i)
}

// arrivals are the tasks of a run in the order in which they are decided.
type arrivals struct {
	problem *Problem
	order   []int   // those that run at the present come first
	next    int     // index in order of the next arrival
	from    float64 // when the plan begins, seconds
}

func newArrivals(p *Problem, order []int) arrivals {
	for i := range order {
		order[i] = i
	}
	if p.Mode == Online {
		SortByKey(order, func(task int) float64 { return p.Tasks[task].Arrival })
	}
	a := arrivals{problem: p, order: order}
	if p.Snapshot != nil {
		a.from = p.Snapshot.Now
		runs := p.RunningTasks()
		MoveToFront(order, func(task int) bool { return runs != nil && runs[task] })
	}
	return a
}

func (a *arrivals) decided() []int { return a.order[:a.next] }

// nextTime returns when the next batch is decided; +Inf when there is none.
func (a *arrivals) nextTime() float64 {
	if a.next == len(a.order) {
		return math.Inf(1)
	}
	return a.time(a.next)
}

// time returns when the task at an index of the order is decided: at its arrival, or at the next
// slot where starts are bound to slots.
func (a *arrivals) time(i int) float64 {
	if a.problem.Mode != Online {
		return 0
	}
	return a.problem.nextSlot(max(a.problem.Tasks[a.order[i]].Arrival, a.from))
}

func (a *arrivals) due(now float64) []int {
	n := a.next
	for n < len(a.order) && a.time(n) <= now {
		n++
	}
	return a.order[a.next:n]
}
