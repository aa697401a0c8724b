package daemon

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
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
	leaseJitter    = 0.1 // exchanges come sooner by up to this part, so that nodes don't ask all at once
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
	if l.daemon.options.Lease == nil {
		return
	}
	isUnder := l.daemon.options.Agent.Leases().IsUnderBudget() // before a restart
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
		early := leaseJitter * rand.Float64() //nolint:gosec // a pause is no secret
		timer := time.NewTimer(time.Duration(float64(every) * (1 - early)))
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
		for _, g := range l.powerLimits() {
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
	request := &epdapi.LeaseRequest{Node: o.Node, Stopping: stopping, GPUs: l.powerLimits()}
	sent := time.Now()
	asking, cancel := context.WithTimeout(ctx, leaseBound)
	answer, err := o.Lease(asking, request)
	cancel()
	if err != nil {
		l.logProblem(fmt.Errorf("the controller gives no leases of watts: %w", err))
		return leaseBound, true
	}
	list := make([]agent.Lease, len(answer.Leases))
	for i, lease := range answer.Leases {
		list[i] = agent.Lease(lease)
	}
	l.logProblem(o.Agent.Leases().Set(ctx, list, sent.Add(live.Known(answer.ForS).Duration())))
	every = min(max(live.Known(answer.EveryS).Duration(), leaseSooner), leaseLater)
	return every, len(list) > 0
}

// logProblem notes what went wrong, once for as long as it is the same.
func (l *leaser) logProblem(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != l.said && err != nil {
		l.daemon.problems.note(err)
	}
	l.said = text
}

// powerLimits returns what the GPUs' drivers keep and what they draw, side by side.
func (l *leaser) powerLimits() []epdapi.LeaseGPU {
	a := l.daemon.options.Agent
	state := a.State()
	jobs := make(map[string]uint32)
	for i := range state.Runs {
		if r := &state.Runs[i]; !r.Ended {
			for _, uuid := range r.GPUs {
				jobs[uuid] = r.Job
			}
		}
	}
	uuids := make([]string, len(state.GPUs))
	for i := range state.GPUs {
		uuids[i] = state.GPUs[i].Identity.UUID
	}
	limits, errs := agent.CallGPUs(a.GPUs(), uuids, settableOf)
	list := make([]epdapi.LeaseGPU, len(state.GPUs))
	for i := range state.GPUs {
		g := epdapi.LeaseGPU{UUID: uuids[i], Model: state.GPUs[i].Identity.Model, Job: jobs[uuids[i]]}
		if reading, err := agent.CallGPU(a.GPUs(), uuids[i], gpu.Device.Read); err == nil {
			g.Power, g.Used = max(0, measuredOrZero(reading.Power)), g.Job != 0 || reading.Utilisation > 0
		}
		if s := limits[i]; errs[i] == nil && s.limit > 0 {
			g.Min, g.Max, g.InForce, g.Prior = s.can.Limits.Min, s.can.Limits.Max, s.limit, s.limit
			if entry := state.GPUs[i].Entry; entry != nil {
				if held, ok := entry.Controls[gpu.PowerLimit]; ok {
					g.Prior = dvfsmodel.Watt(held.PriorValue)
				}
			}
		}
		list[i] = g
	}
	return list
}
