package pick

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// Fairness bounds how long tasks wait: by Patience times the longest wait that
// Simple would have had so far, which is played beside the real run. A third of
// that is kept in reserve, for Simple's true waits are known to nobody; the rest is
// the bound. A rule with a limit keeps a plan of last resort: the tasks that wait,
// by arrival, each where and when it can start first. Nothing starts, and nothing
// is left waiting, that makes a task's start there later than its bound, or later
// still where it is beyond the bound already.
//
// So, where run times are as predicted, a task waits beyond the bound only if it
// would have even with nothing passing it from when it arrived. Where they aren't,
// the plan is mended as far as it can be, and a task may wait longer. Among more
// than 64 tasks that wait the first 64 have that promise.
type Fairness struct {
	Patience float64 // 0: waits aren't bounded
	Spread   float64 // standard deviation of a run time, as a part of its prediction; 0: 0.35
}

// spread is Spread, or what is usual.
func (f Fairness) spread() float64 {
	const usual = 0.35
	if f.Spread > 0 {
		return f.Spread
	}
	return usual
}

// fairness keeps the bound during a run; nil keeps none.
type fairness struct {
	patience   float64
	reference  *referenceRun
	lastResort fallbackPlan
	stale      bool    // the plan of last resort is of an earlier state
	barred     []pair  // offered for it and refused since the last event
	last       pair    // offered for it last
	bound      float64 // seconds, as of when it was last reckoned
	wake       float64 // when waiting has to be looked at again
}

// newFairness is nil where waits aren't bounded.
func newFairness(v *planner.View, limit Fairness) *fairness {
	if limit.Patience == 0 {
		return nil
	}
	spread := limit.spread()
	return &fairness{
		patience: limit.Patience, reference: newReferenceRun(v, newResidualTimes(spread)),
		lastResort: fallbackPlan{age: exactResidualTimes(spread)},
		last:       pair{task: noPair}, stale: true, wake: math.Inf(1),
	}
}

func (f *fairness) beginEvent() {
	if f != nil {
		f.barred, f.last, f.stale, f.wake = f.barred[:0], pair{task: noPair}, true, math.Inf(1)
	}
}

func (f *fairness) arrive(task int, pairs []pair) {
	if f != nil {
		f.reference.arrive(task, pairs)
	}
}

func (f *fairness) committed(task, class int, a *planner.Assignment) {
	if f != nil {
		f.reference.noteStart(task, class, a.Start)
		f.stale = true
	}
}

func (f *fairness) finished(task int, a *planner.Assignment) {
	if f != nil {
		f.reference.noteEnd(task, a.End-a.Start)
		f.stale = true
	}
}

// refused bars the pair until the next event if it was offered as a last resort:
// its class has the GPUs, but not together.
func (f *fairness) refused(task int) {
	if f != nil && f.last.task == task {
		f.barred = append(f.barred, f.last)
	}
}

// updatePlan makes the plan of last resort for the present state.
func (f *fairness) updatePlan(l *waitingLine) {
	if !f.stale {
		return
	}
	f.stale = false
	f.reference.play(l.v.Now)
	f.bound = patiencePart * f.patience * max(minLongestWait*f.reference.meanRunTime(), f.reference.longest)
	f.lastResort.replan(l, f.bound)
}

// patiencePart is the part of a factor that is planned with, and minLongestWait the
// longest wait under Simple, in usual run times, as long as hardly anybody had to
// wait there.
const (
	patiencePart   = 2.0 / 3
	minLongestWait = 0.25
)

// cheapestAllowed returns the one of a task's pairs that takes the least energy among those
// that may start.
func (f *fairness) cheapestAllowed(l *waitingLine, pairs []pair) (best pair) {
	best.task = noPair
	for i := range pairs {
		p := &pairs[i]
		barred := slices.ContainsFunc(f.barred, func(b pair) bool {
			return b.task == p.task && b.class == p.class
		})
		if !barred && (best.task == noPair || p.Energy < best.Energy) && l.mayStart(p) {
			best = *p
		}
	}
	return best
}
