// Package pick decides which waiting task is offered next.
package pick

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// queue offers each batch in an order of its own. What was refused waits for
// the next arrival, in front of what comes then.
type queue struct {
	sort    func([]int)
	waiting []int
	next    int
}

func (q *queue) Arrive(tasks []int) {
	q.waiting = append(q.waiting[:0], q.waiting[q.next:]...)
	q.next = 0
	first := len(q.waiting)
	q.waiting = append(q.waiting, tasks...)
	q.sort(q.waiting[first:])
}

func (q *queue) Next() (int, bool) {
	if q.next == len(q.waiting) {
		return 0, false
	}
	q.next++
	return q.waiting[q.next-1], true
}

func (q *queue) Refused(int) {}

func (q *queue) Wake() float64 { return math.Inf(1) }

// FCFS offers tasks by arrival, then in input order: first come, first served.
func FCFS(v *planner.View, _ planner.Placer) planner.Picker {
	tasks := v.Problem.Tasks
	return &queue{sort: func(batch []int) {
		slices.SortStableFunc(batch, func(a, b int) int { return cmp.Compare(tasks[a].Arrival, tasks[b].Arrival) })
	}}
}

// EDF offers the task with the earliest due time first; equal ones in input
// order.
func EDF(v *planner.View, _ planner.Placer) planner.Picker {
	return &queue{sort: func(batch []int) { sortBy(batch, dueOf(v)) }}
}

// DeadlineFirst is the order of the EDL paper. While GPUs are placed one by one
// (the batch at time 0), tasks that cannot have their free optimum come first,
// in input order, for each needs a GPU of its own; then the others, earliest
// due time first. Later batches come in EDF order.
func DeadlineFirst(v *planner.View, _ planner.Placer) planner.Picker {
	return deadlineFirst(v, func(rest []int) { sortBy(rest, dueOf(v)) })
}

// LongestFirst is DeadlineFirst with the others by falling run time, equal ones
// by due time: the order of LPT-FF.
func LongestFirst(v *planner.View, _ planner.Placer) planner.Picker {
	due := dueOf(v)
	return deadlineFirst(v, func(rest []int) {
		sortBy(rest, due)
		slices.SortStableFunc(rest, func(a, b int) int { return cmp.Compare(wanted(v, b), wanted(v, a)) })
	})
}

func deadlineFirst(v *planner.View, sortRest func([]int)) *queue {
	return &queue{sort: func(batch []int) {
		if v.Now > 0 {
			sortBy(batch, dueOf(v))
			return
		}
		rest := make([]int, 0, len(batch))
		prior := batch[:0]
		for _, task := range batch {
			if bound(v, task) {
				prior = append(prior, task)
			} else {
				rest = append(rest, task)
			}
		}
		sortRest(rest)
		copy(batch[len(prior):], rest)
	}}
}

// bound tells whether the task is deadline-prior (EDL definition 1): its own
// optimum would take too long on every class.
func bound(v *planner.View, task int) bool {
	for class := range v.Problem.Cluster.Classes {
		if q, ok := v.Want(task, class); ok && q.Clocks != planner.ClocksDeadline {
			return false
		}
	}
	return true
}

// wanted is the shortest run time that the task wants on any class.
func wanted(v *planner.View, task int) float64 {
	shortest := math.Inf(1)
	for class := range v.Problem.Cluster.Classes {
		if q, ok := v.Want(task, class); ok {
			shortest = min(shortest, q.Point.Time)
		}
	}
	return shortest
}

func dueOf(v *planner.View) func(int) float64 {
	return func(task int) float64 { return v.Problem.Tasks[task].Due }
}

// sortBy sorts tasks by a rising key; equal keys in input order.
func sortBy(tasks []int, key func(int) float64) {
	type keyed struct {
		key  float64
		task int
	}
	keys := make([]keyed, len(tasks))
	for i, task := range tasks {
		keys[i] = keyed{key(task), task}
	}
	slices.SortFunc(keys, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.task, b.task))
	})
	for i := range keys {
		tasks[i] = keys[i].task
	}
}
