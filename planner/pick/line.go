package pick

import (
	"slices"

	"github.com/epplan/epplan/planner"
)

// waitingLine is the tasks that wait, in order of arrival, of which a picker offers
// one at a time for one node class. All pickers that choose by class embed it.
type waitingLine struct {
	classUsage // GPUs in use
	runningSet // tasks that run

	v           *planner.View
	waiting     []int
	offered     int       // index in waiting of the task that is being offered; none: nothing is
	pairsOf     [][]pair  // by task: its pairs while it waits, nil before and after
	unplaceable []int     // tasks that no class suits: Place is to give them up
	fair        *fairness // nil: waits aren't bounded
	looks       int       // at pairs
}

// noPair marks that no task is being offered.
const noPair = -1

func newWaitingLine(v *planner.View, limit Fairness) waitingLine {
	return waitingLine{
		classUsage: newClassUsage(v), v: v, offered: noPair, pairsOf: make([][]pair, len(v.Problem.Tasks)),
		fair: newFairness(v, limit),
	}
}

// pair is a task on a node class that suits it.
type pair struct {
	task, class int
	planner.Prediction
	key float64 // what it is ranked by
}

// kWh is an energy in the unit that the PREDICT paper's weights count.
func (p *pair) kWh() float64 { return p.Energy.KWh() }

// work is GPU-seconds.
func (p *pair) work() float64 { return p.GPUs * p.Time }

// enqueue adds tasks at the end of the line. It begins a new event.
func (l *waitingLine) enqueue(tasks []int) {
	l.removeStarted()
	l.fair.beginEvent()
	for _, task := range tasks {
		if l.pairsOf[task] = l.pairs(task); len(l.pairsOf[task]) > 0 {
			l.waiting = append(l.waiting, task)
			l.fair.arrive(task, l.pairsOf[task])
		} else {
			l.unplaceable = append(l.unplaceable, task)
		}
	}
}

// pairs are a task's pairs in the order of the classes.
func (l *waitingLine) pairs(task int) []pair {
	l.v.RestrictToClass(task, planner.AnyClass)
	var all []pair
	for class := range l.v.Problem.Cluster.Classes {
		if l.v.CanRunOn(task, class) {
			all = append(all, pair{task: task, class: class, Prediction: l.v.Predict(task, class)})
		}
	}
	return all
}

// removeStarted takes the task out of the line that was offered last, unless it was
// refused: it has started or was given up. It reports whether there was one.
func (l *waitingLine) removeStarted() bool {
	if l.offered == noPair {
		return false
	}
	l.pairsOf[l.waiting[l.offered]] = nil
	l.waiting = slices.Delete(l.waiting, l.offered, l.offered+1)
	l.offered = noPair
	return true
}

// offer offers the task at a place in the line for a class.
func (l *waitingLine) offer(at, class int) (int, bool) {
	l.offered = at
	l.v.RestrictToClass(l.waiting[at], class)
	return l.waiting[at], true
}

// giveUp offers tasks that no class suits, once.
func (l *waitingLine) giveUp() (task int, ok bool) {
	if len(l.unplaceable) == 0 {
		return 0, false
	}
	task, l.unplaceable = l.unplaceable[0], l.unplaceable[1:]
	return task, true
}

// Refused leaves the task in its place.
func (l *waitingLine) Refused(task int) {
	l.offered = noPair
	l.fair.refused(task)
}

// Committed counts what a task takes and remembers that it runs.
func (l *waitingLine) Committed(task int, a *planner.Assignment) {
	l.take(task, a, 1)
	l.add(l.v, task, a)
	l.fair.committed(task, l.v.Node(int(a.Node)).Class, a)
}

// Finished counts what a task gives back.
func (l *waitingLine) Finished(task int, a *planner.Assignment) {
	l.take(task, a, -1)
	l.remove(task)
	l.fair.finished(task, a)
}
