package pick

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// chooser is a line of tasks out of which pairs of a task and a node class are
// offered, in any order.
type chooser struct {
	waitingLine
	barred []pair  // refused since the last event
	last   pair    // offered last
	wake   float64 // when to look again if nothing happens
}

func newChooser(v *planner.View, limit Fairness) chooser {
	return chooser{waitingLine: newWaitingLine(v, limit), wake: math.Inf(1)}
}

// propose offers the task at a place of the line, on the pair's class.
func (q *chooser) propose(at int, p pair) (int, bool) {
	q.last = p
	return q.offer(at, p.class)
}

// Refused bars the pair until the next event: its class has the GPUs, but not
// together.
func (q *chooser) Refused(task int) {
	q.waitingLine.Refused(task)
	if q.last.task == task {
		q.barred = append(q.barred, q.last)
	}
}

func (q *chooser) unbar() { q.barred = q.barred[:0] }

func (q *chooser) isBarred(p *pair) bool {
	return slices.ContainsFunc(q.barred, func(b pair) bool { return b.task == p.task && b.class == p.class })
}

func (q *chooser) Wake() float64 {
	if len(q.waiting) == 0 {
		return math.Inf(1)
	}
	return min(q.wake, q.waitingLine.Wake())
}
