package planner

import (
	"context"
	"errors"
	"sync"

	"github.com/epplan/epplan/dvfsmodel"
)

// ErrCut is the cause of a context that ends because its time is up: what was found
// by then is good enough. Improvers return their best plan so far, without an error.
var ErrCut = errors.New("the time for the search is up")

// ErrUnfinished is the error of a run that a [Watch] stopped before it had a plan.
var ErrUnfinished = errors.New("stopped before there was a plan")

// Cut tells whether a search was asked to stop and return what it has.
func Cut(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrCut) }

// Cancelled is the error of a context that ended for another reason than [ErrCut], or
// whose run was stopped before it had a plan.
func Cancelled(ctx context.Context) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case WatchOf(ctx).Unfinished():
		return ErrUnfinished
	case Cut(ctx):
		return nil
	}
	return ctx.Err()
}

// Watch follows one call of [Solve]: it counts the work, tells how far it is, and stops
// it when it has done too much or somebody asks for that. Where there is a plan by then,
// the search for a better one is cut and the best so far comes back; where there is none,
// the call fails with [ErrUnfinished].
//
// Work is counted in evaluations: a task looked at for a node class, a node or a place
// in a queue, or a move of a search. How many there are follows from problem, policy and
// seed, on every machine alike.
//
// A Watch is for one call at a time. Its exported methods may be called on nil, which
// follows nothing.
type Watch struct {
	Most int            // evaluations; 0: any number
	Tell func(Progress) // is told of the work from time to time, by the goroutine that does it; nil: nobody is

	mu         sync.Mutex
	cut        context.CancelCauseFunc
	unfinished bool // it was stopped before there was a plan
	best       *Plan

	// Of the goroutine that plans.
	depth    int // calls of Solve in each other
	work     int // evaluations
	progress Progress
	cost     float64 // of the best plan
}

// Progress is how far a call of [Solve] is.
type Progress struct {
	Doing       string // the policy by which a plan is made, or [Searching]
	Done, Total int    // tasks placed, policies or clocks tried, or moves of the search
	// The best plan so far.
	Planned bool // there is one
	PastDue int
	Energy  dvfsmodel.Joule
}

// Searching is what a run does while it improves a plan.
const Searching = "search"

// watchKey is where a context has its Watch.
type watchKey struct{}

// WatchOf is the watch of a context; nil: it has none.
func WatchOf(ctx context.Context) *Watch {
	w, _ := ctx.Value(watchKey{}).(*Watch)
	return w
}

// Begin is the context for the call to watch. When the given one ends, the call is
// stopped as [Watch.Stop] says. The caller ends it when the call is over.
func (w *Watch) Begin(ctx context.Context) (watched context.Context, end context.CancelFunc) {
	watched, w.cut = context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), watchKey{}, w))
	if ctx.Err() != nil {
		w.Stop()
	}
	forget := context.AfterFunc(ctx, w.Stop)
	return watched, func() {
		forget()
		w.cut(nil)
	}
}

// Stop cuts the search if there is a plan, and else ends the call without one.
func (w *Watch) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unfinished = w.unfinished || w.best == nil
	w.cut(ErrCut)
}

// Unfinished tells whether the call was stopped before there was a plan.
func (w *Watch) Unfinished() bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unfinished
}

// Count adds to the work that is done.
func (w *Watch) Count(evaluations int) {
	if w == nil {
		return
	}
	if w.work += evaluations; w.Most > 0 && w.work > w.Most {
		w.Stop()
	}
}

// At says what is being done, and how much of it is.
func (w *Watch) At(doing string, done, total int) {
	if w != nil {
		w.progress.Doing, w.progress.Done, w.progress.Total = doing, done, total
		w.tell()
	}
}

// tell tells what is known of the progress, if anybody listens.
func (w *Watch) tell() {
	if w.Listens() && w.progress.Total > 0 {
		w.Tell(w.progress)
	}
}

// Listens tells whether anybody is told of the work.
func (w *Watch) Listens() bool { return w != nil && w.Tell != nil }

// Found says that there is a plan. The best one counts: the fewest tasks left out, the
// fewest past due, the least cost.
func (w *Watch) Found(p *Problem, plan *Plan) {
	if w == nil {
		return
	}
	late, cost := len(plan.PastDue(p)), p.Cost(plan)
	if b := w.best; b != nil {
		switch {
		case len(plan.Unplaced) != len(b.Unplaced):
			if len(plan.Unplaced) > len(b.Unplaced) {
				return
			}
		case late != w.progress.PastDue:
			if late > w.progress.PastDue {
				return
			}
		case cost >= w.cost:
			return
		}
	}
	w.mu.Lock()
	w.best = plan
	w.mu.Unlock()
	w.cost = cost
	w.progress.Planned, w.progress.PastDue, w.progress.Energy = true, late, plan.Ledger.Total()
}

// enter begins a call of Solve, and tells whether it is within another one.
func (w *Watch) enter() (within bool, leave func()) {
	if w == nil {
		return false, func() {}
	}
	w.depth++
	return w.depth > 1, func() { w.depth-- }
}
