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
