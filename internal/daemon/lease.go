package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/pause"
	"github.com/epplan/epplan/live"
)

// Bounds of how often leases of watts are asked for, of how long one exchange may take, and of how long an
// agent that stops waits until other GPUs have left it the watts that it gives back.
const (
	leaseSooner    = 200 * time.Millisecond
	leaseLater     = time.Minute
	leaseBound     = time.Second
	leaseStopBound = 5 * time.Second
	leaseStopEvery = 500 * time.Millisecond
)

// leaser exchanges leases of watts with the controller while the node is under a power budget.
type leaser struct {
	daemon *AgentServer
	news   chan struct{} // a budget was told of, or a run began
	said   string        // what went wrong last
}

// trigger has leases asked for now, if the node is under a budget.
func (l *leaser) trigger() {
	select {
	case l.news <- struct{}{}:
	default: // it is told already
	}
}

// loop exchanges leases until the context ends, and then gives them back.
func (l *leaser) loop(ctx context.Context) {
	isUnder := l.daemon.options.Agent.IsUnderBudget() // before a restart
	for ctx.Err() == nil {
		if !isUnder {
			select {
			case <-ctx.Done():
				return
			case <-l.news:
			}
		}
		var every time.Duration
		every, isUnder = l.exchange(ctx, false)
		timer := time.NewTimer(every)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-l.news:
		}
		timer.Stop()
	}
	if isUnder {
		l.stop(context.WithoutCancel(ctx))
	}
}

// stop gives limits back once other GPUs have left the watts, or after a while.
func (l *leaser) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaseStopBound)
	defer cancel()
	for ctx.Err() == nil {
		if _, isUnder := l.exchange(ctx, true); !isUnder {
			return
		}
		isBack := true
		for _, g := range l.daemon.options.Agent.PowerLimits() {
			isBack = isBack && g.InForce >= g.Prior
		}
		if isBack || pause.For(ctx, leaseStopEvery) != nil {
			return
		}
	}
}

// exchange tells of the node's power limits, and puts the leases in force that come back. It returns when to
// ask again, and whether the node is under a budget. Without an answer leases end by themselves.
func (l *leaser) exchange(ctx context.Context, stopping bool) (every time.Duration, isUnder bool) {
	o := &l.daemon.options
	request := &epdapi.LeaseRequest{Node: o.Node, Stopping: stopping, GPUs: []epdapi.LeaseGPU{}}
	for _, g := range o.Agent.PowerLimits() {
		request.GPUs = append(request.GPUs, epdapi.LeaseGPU{
			UUID: g.UUID, Model: g.Model, Min: g.Limits.Min, Max: g.Limits.Max, InForce: g.InForce, Prior: g.Prior,
			Power: g.Power, Used: g.Used, Job: g.Job,
		})
	}
	sent := time.Now()
	asking, cancel := context.WithTimeout(ctx, leaseBound)
	answer, err := o.Controller.Lease(asking, request)
	cancel()
	if err != nil {
		l.say(fmt.Errorf("the controller gives no leases of watts: %w", err))
		return leaseBound, true
	}
	list := make([]agent.Lease, len(answer.Leases))
	for i, lease := range answer.Leases {
		list[i] = agent.Lease(lease)
	}
	l.say(o.Agent.SetLeases(ctx, list, sent.Add(live.Known(answer.ForS).Duration())))
	every = min(max(live.Known(answer.EveryS).Duration(), leaseSooner), leaseLater)
	return every, len(list) > 0
}

// say notes what went wrong, once for as long as it is the same.
func (l *leaser) say(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != l.said && err != nil {
		l.daemon.problems.note(err)
	}
	l.said = text
}
