package slurmqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/liveplan"
	"github.com/epplan/epplan/internal/pause"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// LivePlanner keeps a plan in force, or the order of one, as it is configured. It
// is safe for concurrent use.
type LivePlanner struct {
	Queue    func(context.Context) (*epdapi.Queue, error)
	Settings func() (*config.Live, *PlanTerms) // those in force
	InForce  *liveplan.InForce                 // where the plan is put
	// Watch is what jobs and nodes there are now; nil: the plan is only made anew by the clock.
	Watch func() QueueState
	Clock func() time.Time // nil: time.Now
	Log   *slog.Logger     // nil: none

	// Of the goroutine that runs it.
	seen    uint64        // the queue that was planned last, by its digest
	atLeast time.Duration // that must pass until the next plan
	last    string        // what was logged last
}

// QueueState is what a plan is made anew for.
type QueueState struct {
	Digest  uint64        // another one for other jobs, states of them, or nodes
	Pending []slurm.JobID // records that wait for GPUs
}

// Bounds of making plans.
const (
	orderTimeLimit = 10 * time.Second // to play the queue; what has started by then has a place
	renewSoon      = 5 * time.Second  // until another try after a failure
	lookEvery      = time.Second      // at what is known of the queue
	// A plan that takes long waits so many times as long: a tenth of a processor.
	renewBusyFactor = 9
)

// Ranking returns the order of the plan at present; nil: there is none.
func (o *LivePlanner) Ranking() *steer.Ranking {
	plan := o.InForce.Plan(o.now())
	if plan == nil {
		return nil
	}
	r := &steer.Ranking{
		Policy: plan.Policy, At: plan.Listed, Until: plan.Until, Without: plan.Without, Trouble: plan.Trouble,
		Place: make(map[slurm.JobID]int, len(plan.Jobs)),
	}
	if plan.Stale != "" {
		r.Trouble, r.Until = plan.Stale, time.Time{}
	}
	if !plan.OrderOnly {
		r.GPUModel, r.HeldOut = make(map[slurm.JobID]string), make(map[slurm.JobID]bool)
		r.Needs, r.CountsDeadlines = plan.Needs, plan.CountsDeadlines
	}
	for i := range plan.Jobs {
		j := &plan.Jobs[i]
		id := slurm.JobID(j.Job)
		if j.HeldOut {
			r.HeldOut[id] = true
			continue
		}
		if _, placed := r.Place[id]; placed {
			continue
		}
		r.Place[id] = len(r.Place)
		if !plan.OrderOnly {
			r.GPUModel[id] = j.GPUModel
		}
	}
	return r
}

// Run makes the plan anew every so often, and when jobs or nodes have changed, until the
// context ends. It never delays whoever asks for it.
func (o *LivePlanner) Run(ctx context.Context) {
	for ctx.Err() == nil {
		o.wait(ctx, o.Renew(ctx))
	}
}

// wait waits for so long, or until what was planned has changed: not before as much time
// has passed as a plan must leave to others.
func (o *LivePlanner) wait(ctx context.Context, most time.Duration) {
	for waited := time.Duration(0); waited < most; {
		rest := most - waited
		if o.Watch != nil {
			rest = min(rest, lookEvery)
		}
		if pause.For(ctx, rest) != nil {
			return
		}
		waited += rest
		if o.Watch != nil && o.hasChanged() && waited >= o.atLeast {
			return
		}
	}
}

// hasChanged looks at the queue: whether another plan is due.
func (o *LivePlanner) hasChanged() bool {
	plan := o.InForce.Plan(o.now())
	if plan == nil || plan.OrderOnly {
		return false
	}
	state := o.Watch()
	o.InForce.Observe(state.Pending)
	return state.Digest != o.seen || !plan.NextEnd.IsZero() && o.now().After(plan.NextEnd.Add(renewSoon))
}

// Renew makes the plan anew and says when to do so again.
func (o *LivePlanner) Renew(ctx context.Context) time.Duration {
	begun := o.now()
	again := o.renew(ctx)
	o.atLeast = renewBusyFactor * o.now().Sub(begun)
	return max(again, o.atLeast)
}

func (o *LivePlanner) renew(ctx context.Context) time.Duration {
	settings, terms := o.Settings()
	wanted, ok := settings.Planning()
	if !ok {
		o.InForce.Drop()
		return min(live.Known(settings.Pick.Every).Duration(), renewSoon) // the settings may change
	}
	every := live.Known(wanted.Every).Duration()
	var state QueueState
	if o.Watch != nil {
		state = o.Watch()
		o.seen = state.Digest
	}
	at := o.now()
	plan, err := o.plan(ctx, terms, &wanted, at)
	switch {
	case err == nil:
		o.last = ""
		plan.TookS = o.now().Sub(at).Seconds()
		o.InForce.Put(plan, state.Pending, wanted.StaleJobs)
		return every
	case ctx.Err() != nil:
		return every
	}
	if before := o.InForce.Plan(at); before == nil || before.Policy != wanted.Policy ||
		before.OrderOnly != wanted.OrderOnly {
		o.InForce.Put(&live.Plan{
			Policy: wanted.Policy, At: at, Listed: at, Until: at.Add(live.Known(wanted.Stale).Duration()),
			Jobs: []live.PlannedJob{}, OrderOnly: wanted.OrderOnly,
		}, nil, wanted.StaleJobs)
	}
	o.InForce.NoteFailure(err.Error())
	if said := wanted.Policy + err.Error(); o.last != said {
		o.last = said
		o.log().Warn("pending jobs can't be planned", "policy", wanted.Policy, "error", err)
	}
	return min(every, renewSoon)
}

// plan makes the plan. A policy that panics is one that failed: jobs are decided without a
// plan.
func (o *LivePlanner) plan(
	ctx context.Context, terms *PlanTerms, wanted *config.Planning, at time.Time,
) (plan *live.Plan, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
			if o.last != wanted.Policy+err.Error() { // else it is in the log
				o.log().Error("a policy panicked", "error", err, "stack", string(debug.Stack()))
			}
		}
	}()
	limit := planTimeLimit
	if wanted.OrderOnly {
		limit = orderTimeLimit
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	q, err := o.Queue(bounded)
	if err != nil {
		return nil, err
	}
	until := queueTime(q, at).Add(live.Known(wanted.Stale).Duration())
	if !until.After(at) {
		return nil, fmt.Errorf("%w from %s", errOldQueue, q.At.UTC().Format(time.RFC3339))
	}
	if plan, err = o.planOf(bounded, q, terms, wanted, at); err == nil {
		plan.Until, plan.Listed = until, cmp.Or(q.At, at)
	}
	return plan, err
}

// errOldQueue tells that Slurm hasn't answered for long.
var errOldQueue = errors.New("the last that is known of Slurm's queue is")

// freshFor is for how long a queue is as good as the present one: within this time Slurm is asked again.
const freshFor = 30 * time.Second

// queueTime returns when the queue was as a plan of now takes it: a plan of an old one is as old.
func queueTime(q *epdapi.Queue, now time.Time) time.Time {
	if q.At.IsZero() || now.Sub(q.At) <= freshFor {
		return now
	}
	return q.At
}

// planOf plans a queue, or its order.
func (o *LivePlanner) planOf(
	ctx context.Context, q *epdapi.Queue, terms *PlanTerms, wanted *config.Planning, at time.Time,
) (*live.Plan, error) {
	if !wanted.OrderOnly {
		return NewPlan(ctx, q, terms, wanted, at)
	}
	policy, err := wanted.Parse()
	if err != nil {
		return nil, err
	}
	order, err := NewOrder(ctx, q, terms, policy)
	if err != nil {
		return nil, err
	}
	plan := &live.Plan{
		Policy: wanted.Policy, At: at, Until: at.Add(live.Known(wanted.Stale).Duration()),
		Jobs: make([]live.PlannedJob, len(order.Jobs)), Without: order.Without, OrderOnly: true,
	}
	for place, id := range order.Jobs {
		plan.Jobs[place].Job = uint32(id)
	}
	return plan, nil
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
