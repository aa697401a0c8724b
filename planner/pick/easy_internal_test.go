package pick

import "github.com/epplan/epplan/planner"

// PlainEasy is [Easy] that looks at all that wait, one after the other.
type PlainEasy struct{ Spread float64 }

// New returns the Pick stage of one run.
func (o PlainEasy) New(v *planner.View, _ planner.Placer) planner.Picker {
	return &plainEasy{
		simple: simple{waitingLine: newWaitingLine(v, Fairness{}), backfill: true},
		age:    newResidualTimes(o.Spread),
	}
}

type plainEasy struct {
	simple
	age      *residualTimes
	reserved *classSchedule // nil: the head may still start
}

func (e *plainEasy) Arrive(tasks []int) {
	e.simple.Arrive(tasks)
	e.reserved = nil
}

func (e *plainEasy) Next() (int, bool) {
	for {
		task, ok := e.simple.Next()
		if !ok || e.offered == noPair {
			return task, ok
		}
		if e.offered > 0 && e.reserved == nil {
			e.reserved = newClassSchedule(&e.classUsage, e.age)
			e.reserved.reserve(e.pairsOf[e.waiting[0]])
		}
		if e.reserved == nil || e.reserved.sparesReserved(&e.pairsOf[task][e.pair-1]) {
			return task, true
		}
		e.Refused(task)
	}
}

func (e *plainEasy) Committed(task int, a *planner.Assignment) {
	e.simple.Committed(task, a)
	e.reserved = nil
}
