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

// ErrUnfinished is the error of a run that a [Monitor] stopped before it had a plan.
var ErrUnfinished = errors.New("stopped before there was a plan")

// StopRequested reports whether a search was asked to stop and return what it has.
func StopRequested(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrCut) }

// Cancelled is the error of a context that ended for another reason than [ErrCut], or
// whose run was stopped before it had a plan.
func Cancelled(ctx context.Context) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case MonitorOf(ctx).IsUnfinished():
		return ErrUnfinished
	case StopRequested(ctx):
		return nil
	}
	return ctx.Err()
}

// Monitor follows one call of [Solve]: it counts the work, tells how far it is, and stops
// it when it has done too much or somebody asks for that. Where there is a plan by then,
// the search for a better one is cut and the best so far comes back; where there is none,
// the call fails with [ErrUnfinished].
//
// Work is counted in evaluations: a task looked at for a node class, a node or a place
// in a queue, or a move of a search. How many there are follows from problem, policy and
// seed, on every machine alike.
//
// A Monitor is for one call at a time. Its exported methods may be called on nil, which
// follows nothing.
type Monitor struct {
	MaxWork int // evaluations; 0: any number
	// Is told of the work from time to time, by the goroutine that does it; nil: nobody
	// is.
	OnProgress func(Progress)

	mu         sync.Mutex
	cut        context.CancelCauseFunc
	unfinished bool // it was stopped before there was a plan
	best       *Plan

	// Of the goroutine that plans.
	depth    int // calls of Solve in each other
	work     int // evaluations
	progress Progress
	rank     PlanRank // of the best plan
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

// monitorKey is where a context has its Monitor.
type monitorKey struct{}

// MonitorOf returns the monitor of a context; nil: it has none.
func MonitorOf(ctx context.Context) *Monitor {
	m, _ := ctx.Value(monitorKey{}).(*Monitor)
	return m
}

// WithoutMonitor returns a context that ends as the given one does, for work beside the call that
// its monitor follows.
func WithoutMonitor(ctx context.Context) context.Context {
	return context.WithValue(ctx, monitorKey{}, (*Monitor)(nil))
}

// Begin returns the context for the call to monitor. When the given one ends, the call is
// stopped as [Monitor.Stop] says. The caller ends it when the call is over.
func (m *Monitor) Begin(ctx context.Context) (monitored context.Context, end context.CancelFunc) {
	monitored, m.cut = context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), monitorKey{}, m))
	if ctx.Err() != nil {
		m.Stop()
	}
	forget := context.AfterFunc(ctx, m.Stop)
	return monitored, func() {
		forget()
		m.cut(nil)
	}
}

// Stop cuts the search if there is a plan, and else ends the call without one.
func (m *Monitor) Stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unfinished = m.unfinished || m.best == nil
	m.cut(ErrCut)
}

// IsUnfinished reports whether the call was stopped before there was a plan.
func (m *Monitor) IsUnfinished() bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unfinished
}

// Count adds to the work that is done.
func (m *Monitor) Count(evaluations int) {
	if m == nil {
		return
	}
	if m.work += evaluations; m.MaxWork > 0 && m.work > m.MaxWork {
		m.Stop()
	}
}

// SetPhase says what is being done, and how much of it is.
func (m *Monitor) SetPhase(doing string, done, total int) {
	if m != nil {
		m.progress.Doing, m.progress.Done, m.progress.Total = doing, done, total
		m.report()
	}
}

// report tells what is known of the progress, if anybody listens.
func (m *Monitor) report() {
	if m.HasListener() && m.progress.Total > 0 {
		m.OnProgress(m.progress)
	}
}

// HasListener reports whether anybody is told of the work.
func (m *Monitor) HasListener() bool { return m != nil && m.OnProgress != nil }

// Found says that there is a plan. The best one counts, by its [PlanRank].
func (m *Monitor) Found(p *Problem, plan *Plan) {
	if m == nil {
		return
	}
	w := p.RankOf(plan)
	if m.best != nil && w.Compare(m.rank) >= 0 {
		return
	}
	m.mu.Lock()
	m.best = plan
	m.mu.Unlock()
	m.rank = w
	m.progress.Planned, m.progress.PastDue, m.progress.Energy = true, w.Late, plan.Ledger.Total()
}

// enterSolve begins a call of Solve, and reports whether it is within another one.
func (m *Monitor) enterSolve() (within bool, leave func()) {
	if m == nil {
		return false, func() {}
	}
	m.depth++
	return m.depth > 1, func() { m.depth-- }
}
