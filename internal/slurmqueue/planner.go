package slurmqueue

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/slurm"
)

// LivePlanner keeps the order that the configured policy wants, for the levers. It
// is safe for concurrent use.
type LivePlanner struct {
	Queue    func(context.Context) (*epdapi.Queue, error)
	Settings func() (*config.Live, *PlanTerms) // those in force
	Clock    func() time.Time                  // nil: time.Now
	Log      *slog.Logger                      // nil: none

	last atomic.Pointer[steer.Ranking]
}

// Bounds of an order's making.
const (
	orderTimeLimit = 10 * time.Second // to play the queue; what has started by then has a place
	renewSoon      = 5 * time.Second  // until another try after a failure
	// An order that takes long waits so many times as long: a tenth of a processor.
	renewBusyFactor = 9
	// An order that isn't renewed is believed so long, or ten times as long as it is to
	// be.
	maxOrderAge = 10 * time.Minute
)

// Ranking is the order at present; nil: no policy is asked.
func (o *LivePlanner) Ranking() *steer.Ranking { return o.last.Load() }

// Run makes the order anew every so often until the context ends. It never
// delays whoever asks for it.
func (o *LivePlanner) Run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := time.NewTimer(o.Renew(ctx))
		select {
		case <-ctx.Done():
		case <-wait.C:
		}
		wait.Stop()
	}
}

// Renew makes the order anew and says when to do so again.
func (o *LivePlanner) Renew(ctx context.Context) time.Duration {
	begun := o.now()
	again := o.renew(ctx)
	return max(again, renewBusyFactor*o.now().Sub(begun))
}

func (o *LivePlanner) renew(ctx context.Context) time.Duration {
	live, terms := o.Settings()
	every := time.Duration(live.Pick.Every * float64(time.Second))
	policy, err := live.Pick.Parse()
	if err == nil && (policy == nil || live.OnlyObserves()) {
		o.last.Store(nil)
		return min(every, renewSoon) // the settings may change
	}
	before := o.last.Load()
	next := &steer.Ranking{Policy: live.Pick.Policy, At: o.now()}
	next.Until = next.At.Add(max(maxOrderAge, 10*every)) //nolint:mnd // see oldest
	var order *Order
	if err == nil {
		order, err = o.order(ctx, terms, policy)
	}
	if err == nil {
		next.Place, next.Without = order.places(), order.Without
		o.last.Store(next)
		return every
	}
	if ctx.Err() != nil {
		return every
	}
	if before != nil && before.Policy == next.Policy {
		kept := *before
		next = &kept
	}
	if said := fmt.Sprint(err); next.Trouble != said {
		next.Trouble = said
		o.log().Warn("the order of pending jobs can't be made", "policy", next.Policy, "error", err)
	}
	o.last.Store(next)
	return min(every, renewSoon)
}

// order makes the order. A policy that panics is one that failed: jobs are decided
// without an order.
func (o *LivePlanner) order(
	ctx context.Context, terms *PlanTerms, policy *planner.Policy,
) (order *Order, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
			// Else it is in the log.
			if before := o.last.Load(); before == nil || before.Trouble != err.Error() {
				o.log().Error("a policy panicked", "error", err, "stack", string(debug.Stack()))
			}
		}
	}()
	bounded, cancel := context.WithTimeout(ctx, orderTimeLimit)
	defer cancel()
	q, err := o.Queue(bounded)
	if err != nil {
		return nil, err
	}
	return NewOrder(bounded, q, terms, policy)
}

func (o *Order) places() map[slurm.JobID]int {
	places := make(map[slurm.JobID]int, len(o.Jobs))
	for place, id := range o.Jobs {
		places[id] = place
	}
	return places
}

func (o *LivePlanner) now() time.Time {
	if o.Clock == nil {
		return time.Now()
	}
	return o.Clock()
}

func (o *LivePlanner) log() *slog.Logger {
	if o.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Log
}
