package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/live"
)

// A GPU under a power budget has a power limit whoever runs there, or nobody: a lease of watts that ends, and
// a share that is safe without one. Both are ceilings of what its runs want. The safe share is in the GPU's
// baseline, so that a crash, a restart or a boot puts nothing higher in force.

// Lease is the power limit that a GPU may have until leases end, and then.
type Lease struct {
	UUID        string
	Watts, Safe dvfsmodel.Watt
}

// leases is when those of an agent's GPUs end.
type leases struct {
	setting sync.Mutex // held while leases are put in force
	news    chan struct{}

	mu   sync.Mutex
	ends time.Time
}

// wait returns how long it takes until leases end.
func (l *leases) wait() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends.IsZero() {
		return time.Hour
	}
	return max(0, time.Until(l.ends))
}

// end notes when leases end; the zero time: there are none, or they have ended.
func (l *leases) end(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = at
}

// budgetShare is what a budget leaves a GPU.
type budgetShare struct {
	watts dvfsmodel.Watt // of the lease
	ends  time.Time      // of the lease
	// isReleased tells that the limit was given back by hand, or at the end, whatever is on file.
	isReleased bool
	// isOthers tells that the driver doesn't take the limit, or that somebody else has set another one.
	isOthers bool
}

// ceiling returns the power limit that a budget leaves a GPU, and whether a lease says so; 0: there is none.
func (s *baselines) ceiling(c *managedGPU) (watts dvfsmodel.Watt, leased bool) {
	share := c.ground.now().share
	switch {
	case s.isByHand, share.isReleased, share.isOthers, !c.can(gpu.PowerLimit):
		return 0, false
	case share.watts > 0 && time.Now().Before(share.ends):
		return share.watts, true
	}
	b, err := s.of(c)
	if err != nil {
		return 0, false
	}
	return b.Budget, false
}

// limitUnderBudget returns the power limit at which a budget wants a GPU held; 0: what it had before is low
// enough, or there is no budget. Without a lease no limit rises.
func (s *baselines) limitUnderBudget(c *managedGPU) gpu.Value {
	top, leased := s.ceiling(c)
	if top <= 0 {
		return 0
	}
	v := gpu.Value(math.Floor(float64(top)))
	before, held := s.limitBefore(c)
	if held > 0 && !leased {
		v = min(v, held)
	}
	if bounds := c.limits(); bounds.Min > 0 {
		v = max(v, gpu.Value(bounds.Min))
	}
	if before > 0 && v >= before {
		return 0
	}
	return v
}

// limitBefore returns the power limit that a GPU had before it was set, and the one that it is set to; 0 for
// what isn't known.
func (s *baselines) limitBefore(c *managedGPU) (before, held gpu.Value) {
	if h, ok := c.journalled().held(gpu.PowerLimit); ok {
		return h.PriorValue, h.Value
	}
	b, err := s.of(c)
	if err != nil {
		return 0, 0
	}
	return b.Told[gpu.PowerLimit.Key()], 0
}

// limits returns the power limits that the card takes.
func (c *managedGPU) limits() gpu.PowerRange {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dev.Capability().Limits
}

// noteShare has the baseline name the share of a GPU that is safe without a lease; 0: it is under no budget.
func (s *baselines) noteShare(c *managedGPU, watts dvfsmodel.Watt) error {
	b, err := s.of(c)
	if err != nil || b.Budget == watts {
		return err
	}
	b.Budget = watts
	return s.write(c, b)
}

// isOfRun reports whether an entry has more than a budget's power limit.
func (e *Entry) isOfRun() bool {
	if e == nil {
		return false
	}
	for control, held := range e.Controls {
		if control != gpu.PowerLimit || held.Run != "" {
			return true
		}
	}
	return false
}

// under returns what is wanted of a card with no higher power limit than a budget leaves it.
func (h *holder) under(c *managedGPU, want lock) lock {
	most := dvfsmodel.Watt(h.base.limitUnderBudget(c))
	if most > 0 && (want.Cap == 0 || want.Cap > most) {
		want.Cap = most
	}
	return want
}

// holdLimit sets a budget's power limit on a card, and leaves all else that its entry has. The caller has the
// card's turn.
func (h *holder) holdLimit(c *managedGPU, entry *Entry, limit gpu.Value) error {
	entry = c.inForce(entry)
	next, err := entry.with(dvfsmodel.Setting{Cap: dvfsmodel.Watt(limit)}, time.Now(), c.prior, &live.Run{})
	if err != nil {
		return err
	}
	if err := errors.Join(h.base.noteSet(c, next), h.journal.put(next)); err != nil {
		return err
	}
	c.record(next, false)
	held, _ := next.held(gpu.PowerLimit)
	if err := h.set(c, gpu.PowerLimit, held, false, entry); err != nil {
		return err
	}
	c.recordLock(next, false)
	return nil
}

// inForce returns an entry with the power limit that the driver has of the two that it may have, after a
// write of which nobody knows whether it was done: the next value is then set over that one.
func (c *managedGPU) inForce(entry *Entry) *Entry {
	held, ok := entry.held(gpu.PowerLimit)
	if !ok || held.Was == 0 {
		return entry
	}
	now, err := call(c, gpu.PowerLimit.Prior)
	if err != nil || gpu.PowerLimit.IsAt(now, held.Value) || !gpu.PowerLimit.IsAt(now, held.Was) {
		return entry
	}
	next := entry.without(gpu.PowerLimit)
	held.Value = held.Was
	next.Controls[gpu.PowerLimit] = held
	return next
}

// SetLeases puts leases in force until they end, first those that lower a limit, and gives the limits of all
// other GPUs back. What fails of one GPU keeps no other from being set.
func (a *Agent) SetLeases(ctx context.Context, list []Lease, ends time.Time) error {
	a.leases.setting.Lock()
	defer a.leases.setting.Unlock()
	byUUID := make(map[string]Lease, len(list))
	for _, l := range list {
		byUUID[l.UUID] = l
	}
	var lower, raise []*managedGPU
	var errs []error
	for _, c := range a.gpus.all() {
		if c.ownedByTwin {
			continue
		}
		l, before := byUUID[c.uuid], c.ground.now().share
		errs = append(errs, c.inTurn(ctx, func(c *managedGPU) error { return a.holder.base.noteShare(c, l.Safe) }))
		c.ground.note(func(g *groundState) {
			g.share = budgetShare{watts: l.Watts, ends: ends, isOthers: before.isOthers}
		})
		if l.Watts > 0 && !(l.Watts > before.watts && before.watts > 0) {
			lower = append(lower, c)
		} else {
			raise = append(raise, c)
		}
	}
	if len(list) == 0 {
		ends = time.Time{}
	}
	a.leases.end(ends)
	wake(a.leases.news)
	return errors.Join(append(errs, a.holdLimits(ctx, lower), a.holdLimits(ctx, raise))...)
}

// holdLimits brings cards to their leases. One whose limit the driver doesn't take goes on without.
func (a *Agent) holdLimits(ctx context.Context, cards []*managedGPU) error {
	failed, err := a.reconciler.reconcileEach(ctx, cards)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("hold a power budget: %w", err)
	if isRefusal(err) || errors.Is(err, errLimitChanged) {
		for _, c := range failed {
			c.ground.note(func(g *groundState) { g.share.isOthers = true })
		}
		return errors.Join(err, a.reconciler.reconcile(ctx, failed))
	}
	return err
}

// endLeases brings all GPUs to their safe shares once leases have ended.
func (a *Agent) endLeases(ctx context.Context) error {
	a.leases.setting.Lock()
	defer a.leases.setting.Unlock()
	if a.leases.wait() > 0 {
		return nil
	}
	a.leases.end(time.Time{})
	return a.holdLimits(ctx, a.gpus.all())
}

// releaseShares has the budget's limits of cards given back until there are leases anew; for good, after a
// restart, too, where they are given back by hand.
func (a *Agent) releaseShares(ctx context.Context, cards []*managedGPU, byHand bool) error {
	var errs []error
	for _, c := range cards {
		c.ground.note(func(g *groundState) { g.share.isReleased = true })
		if byHand {
			errs = append(errs, c.inTurn(ctx, func(c *managedGPU) error { return a.holder.base.noteShare(c, 0) }))
		}
	}
	return errors.Join(errs...)
}

// IsUnderBudget reports whether a GPU has a share of a power budget, on file or by a lease.
func (a *Agent) IsUnderBudget() bool {
	return slices.ContainsFunc(a.gpus.all(), func(c *managedGPU) bool {
		watts, _ := a.holder.base.ceiling(c)
		return watts > 0
	})
}

// BudgetShare returns the power limit that a power budget leaves a GPU now; 0: it is under none.
func (a *Agent) BudgetShare(uuid string) dvfsmodel.Watt {
	c := a.gpus.byUUID(uuid)
	if c == nil {
		return 0
	}
	watts, _ := a.holder.base.ceiling(c)
	return watts
}

// LimitState is a GPU's power limit and what it draws; powers that aren't known are 0.
type LimitState struct {
	UUID, Model string
	Limits      gpu.PowerRange // zero where the limit can't be set, or is somebody else's
	InForce     dvfsmodel.Watt // by the driver
	Prior       dvfsmodel.Watt // to which it is given back
	Power       dvfsmodel.Watt
	Used        bool
	Job         uint32 // the last one that began there; 0: there is none
}

// PowerLimits returns the power limits of all GPUs, as the driver has them now. A limit that somebody else
// set in place of the agent's stays.
func (a *Agent) PowerLimits() []LimitState {
	cards := slices.DeleteFunc(a.gpus.all(), func(c *managedGPU) bool { return c.ownedByTwin })
	states := make([]LimitState, len(cards))
	a.gpus.sideBySide(cards, func(i int, c *managedGPU) { states[i] = a.powerLimitOf(c) })
	return states
}

// powerLimitOf returns that of one.
func (a *Agent) powerLimitOf(c *managedGPU) LimitState {
	_, run := a.runs.wanted(c)
	s := LimitState{UUID: c.uuid, Model: c.identity().Model, Job: run.Job, Used: run.Job != 0}
	reading, err := callRenewed(a.gpus, func() (gpu.Reading, error) { return call(c, gpu.Device.Read) })
	if err == nil {
		if gpu.Measured(reading.Power) {
			s.Power = max(0, reading.Power)
		}
		s.Used = s.Used || reading.Utilisation > 0
	}
	limit, err := call(c, gpu.Device.PowerLimit)
	if err != nil || !c.can(gpu.PowerLimit) {
		return s
	}
	s.InForce, s.Prior = limit, limit
	held, isHeld := c.journalled().held(gpu.PowerLimit)
	if isHeld {
		s.Prior = dvfsmodel.Watt(held.PriorValue)
	}
	c.ground.note(func(g *groundState) {
		isBack := !isHeld || held.IsOurs(gpu.PowerLimit, gpu.Value(limit)) ||
			gpu.PowerLimit.IsAt(gpu.Value(limit), held.PriorValue)
		g.share.isOthers = !isBack
		if !g.share.isOthers {
			s.Limits = c.limits()
		}
	})
	if isHeld && !held.IsOurs(gpu.PowerLimit, gpu.Value(limit)) {
		c.forgetLimit()
	}
	return s
}

// forgetLimit notes that the card's limit isn't what its entry says.
func (c *managedGPU) forgetLimit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isEntryTrue = false
}
