package pick

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// Largest offers all tasks that wait at once, and the largest of them first: by
// GPUs asked for, then by CPUs for each of these, then by arrival. Small tasks
// then fill the gaps that large ones leave.
//
// Tasks that have waited for longer than the bound come before all others,
// oldest first. While one of them finds no room, no other task starts that
// could take a node of a class that suits it: so it starts, at the latest, when
// all tasks that run there have ended. That leaves much of a cluster idle, so
// the bound had better be longer than most stays.
type Largest struct{ Bound float64 } // seconds

// DayBound is a bound of a day.
const DayBound = 24 * 3600

// New returns the Pick stage of one run.
func (l Largest) New(v *planner.View, _ planner.Placer) planner.Picker {
	return &largest{v: v, bound: l.Bound, held: make([]bool, len(v.Problem.Cluster.Classes))}
}

type largest struct {
	v       *planner.View
	bound   float64
	waiting []int
	next    int
	refused []int
	held    []bool // by class: a task that has waited for too long needs it
}

func (q *largest) Arrive(tasks []int) {
	q.waiting = append(append(q.refused, q.waiting[q.next:]...), tasks...)
	q.next, q.refused = 0, nil
	clear(q.held)
	slices.SortStableFunc(q.waiting, q.compare)
}

// compare is below 0 if task a is offered before b.
func (q *largest) compare(a, b int) int {
	s, t := &q.v.Problem.Tasks[a], &q.v.Problem.Tasks[b]
	byArrival := cmp.Or(cmp.Compare(s.Arrival, t.Arrival), cmp.Compare(a, b))
	late, later := q.isOverdue(a), q.isOverdue(b)
	switch {
	case late && later:
		return byArrival
	case late:
		return -1
	case later:
		return 1
	}
	sGPUs, sCPUs := taskSize(s)
	tGPUs, tCPUs := taskSize(t)
	return cmp.Or(cmp.Compare(tGPUs, sGPUs), cmp.Compare(tCPUs, sCPUs), byArrival)
}

// taskSize returns the GPUs that a task asks for at most, and its CPUs for each of them.
func taskSize(t *planner.Task) (gpus, cpus float64) {
	for i := range t.Options {
		gpus = max(gpus, float64(t.Options[i].GPUs)*t.Share)
	}
	if gpus == 0 {
		return 0, t.CPUs
	}
	return gpus, t.CPUs / gpus
}

// isOverdue reports whether a task has waited for longer than the bound.
func (q *largest) isOverdue(task int) bool {
	return q.v.Now-q.v.Problem.Tasks[task].Arrival > q.bound
}

func (q *largest) Next() (int, bool) {
	for q.next < len(q.waiting) {
		task := q.waiting[q.next]
		q.next++
		if !q.isBarred(task) {
			return task, true
		}
		q.refused = append(q.refused, task)
	}
	return 0, false
}

// isBarred reports whether a task could take what an overdue one waits for.
func (q *largest) isBarred(task int) bool {
	for class, held := range q.held {
		if held && q.v.Option(task, class) >= 0 {
			return true
		}
	}
	return false
}

func (q *largest) Refused(task int) {
	q.refused = append(q.refused, task)
	if !q.isOverdue(task) {
		return
	}
	for class := range q.held {
		q.held[class] = q.held[class] || q.v.Option(task, class) >= 0
	}
}

func (q *largest) Wake() float64 { return math.Inf(1) }
