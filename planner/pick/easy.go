package pick

import (
	"github.com/epplan/epplan/planner"
)

// Easy is Simple with EASY backfilling: when the head of the queue finds no
// room, the time and the class are reserved for it where it can start first by
// prediction, and the tasks behind it start where they leave that alone.
// Spread is how far run times stray from their predictions, relative.
type Easy struct{ Spread float64 }

// New returns the Pick stage of one run.
func (o Easy) New(v *planner.View, _ planner.Placer) planner.Picker {
	return &easy{
		simple: simple{waitingLine: newWaitingLine(v, Fairness{}), backfill: true},
		age:    newResidualTimes(o.Spread),
	}
}

type easy struct {
	simple
	age      *residualTimes
	reserved *classSchedule // nil: the head may still start
}

func (e *easy) Arrive(tasks []int) {
	e.simple.Arrive(tasks)
	e.reserved = nil
}

func (e *easy) Next() (int, bool) {
	for {
		task, ok := e.simple.Next()
		if !ok || e.offered == noPair {
			return task, ok
		}
		if e.offered > 0 && e.reserved == nil {
			e.reserveHead()
		}
		if e.reserved == nil || e.reserved.sparesReserved(&e.pairsOf[task][e.pair-1]) {
			return task, true
		}
		e.Refused(task)
	}
}

func (e *easy) reserveHead() {
	e.reserved = newClassSchedule(&e.classUsage, e.age)
	e.reserved.reserve(e.pairsOf[e.waiting[0]])
}

// Committed notes a start; what is reserved is reckoned anew.
func (e *easy) Committed(task int, a *planner.Assignment) {
	e.simple.Committed(task, a)
	e.reserved = nil
}
