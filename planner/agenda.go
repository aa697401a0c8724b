package planner

import "math"

// eventQueue is a heap of what is to happen to nodes or to tasks, by time and then by
// number.
type eventQueue []queuedEvent

// queuedEvent is a node that may go off at a time, unless it got another task, or a
// task that ends then.
type queuedEvent struct {
	at   float64 // seconds
	what int     // the node or the task
}

// nextTime is when the first entry is due; +Inf when there is none.
func (q eventQueue) nextTime() float64 {
	if len(q) == 0 {
		return math.Inf(1)
	}
	return q[0].at
}

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || (q[i].at == q[j].at && q[i].what < q[j].what)
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push adds an entry; for container/heap.
func (q *eventQueue) Push(x any) { *q = append(*q, x.(queuedEvent)) } //nolint:errcheck // heap.Push gets entries only

// Pop takes the last entry; for container/heap.
func (q *eventQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
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

// nextTime is when the next batch is decided; +Inf when there is none.
func (a *arrivals) nextTime() float64 {
	if a.next == len(a.order) {
		return math.Inf(1)
	}
	return a.time(a.next)
}

// time is when the task at an index of the order is decided: at its arrival, or at the next
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
