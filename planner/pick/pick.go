// Package pick decides which waiting task is offered next.
package pick

import (
	"math"

	"github.com/epplan/epplan/planner"
)

// batchQueue offers each batch in an order of its own. What was refused waits for
// the next arrival, in front of what comes then.
type batchQueue struct {
	sort    func([]int)
	waiting []int
	next    int   // index in waiting of the task to offer next
	refused []int // since the last arrival
}

func (q *batchQueue) Arrive(tasks []int) {
	q.sort(tasks)
	if q.next == len(q.waiting) && len(q.refused) == 0 {
		q.waiting, q.next = tasks, 0
		return
	}
	q.waiting = append(append(q.refused, q.waiting[q.next:]...), tasks...)
	q.next, q.refused = 0, nil
}

func (q *batchQueue) Next() (int, bool) {
	if q.next == len(q.waiting) {
		return 0, false
	}
	q.next++
	return q.waiting[q.next-1], true
}

func (q *batchQueue) Refused(task int) { q.refused = append(q.refused, task) }

func (q *batchQueue) Wake() float64 { return math.Inf(1) }

// FCFS offers tasks by arrival, then in input order: first come, first served.
func FCFS(v *planner.View, _ planner.Placer) planner.Picker {
	tasks := v.Problem.Tasks
	return &batchQueue{sort: func(batch []int) {
		planner.SortByKey(batch, func(task int) float64 { return tasks[task].Arrival })
	}}
}

// EDF offers the task with the earliest due time first; equal ones in input
// order.
func EDF(v *planner.View, _ planner.Placer) planner.Picker {
	return &batchQueue{sort: func(batch []int) { planner.SortByKey(batch, dueKey(v)) }}
}

// DeadlineFirst returns the order of the EDL paper. While GPUs are placed one by one
// (the batch at time 0), tasks that cannot have their free optimum come first,
// in input order, for each needs a GPU of its own; then the others, earliest
// due time first. Later batches come in EDF order.
func DeadlineFirst(v *planner.View, _ planner.Placer) planner.Picker {
	return deadlineFirst(v, func(rest []int) { planner.SortByKey(rest, dueKey(v)) })
}

// LongestFirst is DeadlineFirst with the others by falling run time, equal ones
// by due time: the order of LPT-FF.
func LongestFirst(v *planner.View, _ planner.Placer) planner.Picker {
	due := dueKey(v)
	return deadlineFirst(v, func(rest []int) {
		planner.SortByKey(rest, due)
		planner.SortByKey(rest, func(task int) float64 { return -shortestWanted(v, task) })
	})
}

// deadlineFirst is DeadlineFirst with an order of its own for the tasks that can have
// their free optimum.
func deadlineFirst(v *planner.View, sortRest func([]int)) *batchQueue {
	return &batchQueue{sort: func(batch []int) {
		if v.Now > 0 {
			planner.SortByKey(batch, dueKey(v))
			return
		}
		prior := planner.MoveToFront(batch, v.IsDeadlinePrior)
		sortRest(batch[prior:])
	}}
}

// shortestWanted returns the shortest run time that the task wants on any class, seconds; +Inf
// where none suits it in time.
func shortestWanted(v *planner.View, task int) float64 {
	shortest := math.Inf(1)
	for class := range v.Problem.Cluster.Classes {
		if q, _, ok := v.Want(task, class); ok {
			shortest = min(shortest, q.Point.Time)
		}
	}
	return shortest
}

// dueKey returns the key by which tasks are in EDF order.
func dueKey(v *planner.View) func(int) float64 {
	return func(task int) float64 { return v.Problem.Tasks[task].Due }
}
