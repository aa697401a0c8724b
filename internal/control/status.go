package control

import (
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/internal/decide"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// counters count since the start.
type counters struct {
	submissions, badRequests atomic.Int64
	scripts                  atomic.Int64 // submissions with a script
	foreignComments          atomic.Int64 // submissions whose AdminComment is another tool's
	decisions, applied       atomic.Int64
	heldOut, constant        atomic.Int64
	outcomes, outcomeErrors  atomic.Int64
	implausible, wrongNode   atomic.Int64
	lastImplausible          atomic.Pointer[string]
	adaptedRuns, sharedRuns  atomic.Int64
	notLocked                [maxNotLockedKinds]atomic.Int64 // by place in live.NotLockedKinds
	slowestDecide            atomic.Int64                    // nanoseconds
}

// maxNotLockedKinds is more than there are.
const maxNotLockedKinds = 16

func (c *counters) decided(d *live.Decision) {
	c.decisions.Add(1)
	if d.Apply {
		c.applied.Add(1)
	}
	if d.HoldOut {
		c.heldOut.Add(1)
	}
	if d.Arm == live.ArmConstant {
		c.constant.Add(1)
	}
}

func (c *counters) decideTook(t time.Duration) {
	for {
		slowest := c.slowestDecide.Load()
		if int64(t) <= slowest || c.slowestDecide.CompareAndSwap(slowest, int64(t)) {
			return
		}
	}
}

// countRun counts a run that was recorded for the first time.
func (c *counters) countRun(o *record.Outcome) {
	if _, adapted := o.Slowdown.Get(); adapted {
		c.adaptedRuns.Add(1)
	}
	if o.Shared || !o.Profile.IsZero() && !o.Profile.Alone {
		c.sharedRuns.Add(1)
	}
	if i := slices.Index(live.NotLockedKinds, o.NotLocked.Kind); i >= 0 {
		c.notLocked[i].Add(1)
	}
}

// sleepers counts the nodes with GPUs that sleep, and those that wake.
func sleepers(nodes []slurm.Node) (asleep, waking int) {
	for i := range nodes {
		switch n := &nodes[i]; {
		case n.GPUCount() == 0:
		case n.State.Is("POWERING_UP") || n.State.Is("POWER_UP"):
			waking++
		case n.State.IsPoweredDown():
			asleep++
		}
	}
	return asleep, waking
}

// status returns how the controller fares now, with counts since its start. It asks nobody.
func (c *Controller) status() epdapi.ControllerStatus {
	s := c.settings.Load()
	n := &c.counters
	models, refits, retired := c.learner.Counts()
	status := epdapi.ControllerStatus{
		Cluster: c.options.Cluster, Started: c.started, ConfigVersion: s.Version,
		Mode: s.Live.Mode, Modes: s.Live.Modes, HoldOut: s.Live.HoldOut, ConstantArm: s.Live.ConstantArm,
		Models:      models,
		Submissions: n.submissions.Load(), Decisions: n.decisions.Load(), Applied: n.applied.Load(),
		HeldOut: n.heldOut.Load(), Constant: n.constant.Load(), BadRequests: n.badRequests.Load(),
		Outcomes:      n.outcomes.Load(),
		OutcomeErrors: n.outcomeErrors.Load(), Refits: refits, Retired: retired,
		Implausible: n.implausible.Load(), Elsewhere: n.wrongNode.Load(),
		ForeignComments: n.foreignComments.Load() + c.options.EnergiesForeign(),
		AdaptedRuns:     n.adaptedRuns.Load(), SharedRuns: n.sharedRuns.Load(),
		SlowestDecideS: math.Round(float64(n.slowestDecide.Load())/1e3) / 1e6,
	}
	status.NotLocked = make(map[live.NotLockedKind]int64)
	for i, kind := range live.NotLockedKinds {
		if runs := n.notLocked[i].Load(); runs > 0 {
			status.NotLocked[kind] = runs
		}
	}
	status.Budgets = c.Budget.budgetList()
	status.Jobs, status.Tokens = c.Jobs.Len()
	status.MissedPrologs = c.Jobs.Hooks.MissedPrologs()
	status.TokensSeen, status.TokensMissing = c.Jobs.Hooks.Submissions()
	status.Asleep, status.Waking = sleepers(c.Jobs.Nodes())
	status.Forecasts = c.forecasts.Status()
	status.Decided = c.decider.Len()
	status.Unwritten, status.Lost = c.decider.Unwritten()
	status.Queue, status.Nodes = c.Jobs.Status()
	status.Suspected = decide.SuspectedLimits(c.decider, &s.Settings)
	for _, warning := range s.warnings(c.options.Clock(), c.Jobs.Nodes()) {
		status.ConfigWarnings = append(status.ConfigWarnings, warning.Error())
	}
	if err := c.decider.Trouble(); err != nil {
		status.Trouble, status.Moved = err.Error(), errors.Is(err, store.ErrMoved)
	}
	if last := n.lastImplausible.Load(); last != nil {
		status.LastImplausible = *last
	}
	return status
}
