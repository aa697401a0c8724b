package pick

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// waitingLine is the tasks that wait, in order of arrival, of which a picker offers
// one at a time for one node class. All pickers that choose by class embed it.
type waitingLine struct {
	classUsage

	waiting     []int
	places      []int     // by task: a place in waiting that it isn't behind
	offered     int       // index in waiting of the task that is being offered; none: nothing is
	pairsOf     [][]pair  // by task: its pairs while it waits, nil before and after
	unplaceable []int     // tasks that no class suits: Place is to give them up
	fair        *fairness // nil: waits aren't bounded
	looks       int       // at pairs
}

func newWaitingLine(v *planner.View, limit Fairness) waitingLine {
	return waitingLine{
		classUsage: newClassUsage(v), offered: noPair, pairsOf: make([][]pair, len(v.Problem.Tasks)),
		fair: newFairness(v, limit), places: make([]int, len(v.Problem.Tasks)),
	}
}

// enqueue adds tasks at the end of the line. It begins a new event.
func (l *waitingLine) enqueue(tasks []int) {
	l.removeStarted()
	l.fair.beginEvent()
	for _, task := range tasks {
		if l.pairsOf[task] = l.pairs(task); len(l.pairsOf[task]) > 0 {
			l.places[task] = len(l.waiting)
			l.waiting = append(l.waiting, task)
			l.fair.arrive(task, l.pairsOf[task])
		} else {
			l.unplaceable = append(l.unplaceable, task)
		}
	}
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

// placeOf returns the place of a task that waits. Others leave the line and none joins it before the end, so
// that it never moves back.
func (l *waitingLine) placeOf(task int) int {
	at := min(l.places[task], len(l.waiting)-1)
	for l.waiting[at] != task {
		at--
	}
	l.places[task] = at
	return at
}

func (l *waitingLine) offer(at, class int) (int, bool) {
	l.offered = at
	l.v.RestrictTask(l.waiting[at], class)
	return l.waiting[at], true
}

// giveUp begins an offer: tasks that no class suits come first, once.
func (l *waitingLine) giveUp() (task int, ok bool) {
	l.removeStarted()
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
	p := l.started(task, a)
	l.fair.committed(task, p.class, a)
}

// Finished counts what a task gives back.
func (l *waitingLine) Finished(task int, a *planner.Assignment) {
	l.ended(task, a)
	l.fair.finished(task, a)
}

// looksInOne is how many looks at a pair of the line take as long as one evaluation of a
// place ([planner.Monitor]).
const looksInOne = 16

// mayStart reports whether a pair fits and makes nobody wait for too long.
func (l *waitingLine) mayStart(p *pair) bool {
	if l.looks++; l.looks%looksInOne == 0 {
		l.v.Evaluations++
	}
	if !l.fits(p) || l.fair == nil {
		return l.fits(p)
	}
	l.fair.updatePlan(l)
	return l.fair.lastResort.allowsStart(l, p)
}

// nextOverdue is asked when a rule leaves the rest waiting until a time, unless
// something happens before. It offers what must not wait, where that takes the
// least energy.
func (l *waitingLine) nextOverdue(until float64) (task int, ok bool) {
	f := l.fair
	if f == nil || len(l.waiting) == 0 {
		return 0, false
	}
	f.updatePlan(l)
	if f.wake = f.lastResort.maxPause(l, min(until, l.v.Now+wakeAfter*f.reference.meanRunTime())); f.wake >
		l.v.Now {
		return 0, false
	}
	f.wake = math.Inf(1)
	for _, b := range f.lastResort.dueStarts(l.v.Now) {
		if f.last = f.cheapestAllowed(l, l.pairsOf[b.task]); f.last.task != noPair {
			return l.offer(l.placeOf(b.task), f.last.class)
		}
	}
	return 0, false
}

// Wake returns when the rest may have waited for long enough, for rules that leave
// room free; apart from that, starts and ends are all that changes an answer.
func (l *waitingLine) Wake() float64 {
	if l.fair == nil {
		return math.Inf(1)
	}
	return l.fair.wake
}
