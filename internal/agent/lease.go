package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
)

// A GPU under a power budget has a power limit whoever runs there, or nobody: a lease of watts that ends, and
// a share that is safe without one. Both are ceilings of what its runs want. The safe share is in the GPU's
// baseline, so that a crash, a restart or a boot puts nothing higher in force.

// Lease is the power limit that a GPU may have until leases end, and then.
type Lease struct {
	UUID        string
	Watts, Safe dvfsmodel.Watt
}

// Leases are those of a node's GPUs. It brings GPUs to them, and to safe shares once they have ended. Its
// methods may be called by several goroutines.
type Leases struct {
	gpus       *GPUSet
	runs       *RunSet
	base       *baselines
	reconciler *reconciler
	setting    sync.Mutex // held while leases are put in force
	news       chan struct{}

	mu   sync.Mutex
	ends time.Time
}

// wait returns how long it takes until leases end.
func (l *Leases) wait() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends.IsZero() {
		return time.Hour
	}
	return max(0, time.Until(l.ends))
}

// endAt notes when leases end; the zero time: there are none, or they have ended.
func (l *Leases) endAt(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = at
}

// Set puts leases in force until they end, first those that lower a limit, and gives the limits of all
// other GPUs back. What fails of one GPU keeps no other from being set.
func (l *Leases) Set(ctx context.Context, list []Lease, ends time.Time) error {
	l.setting.Lock()
	defer l.setting.Unlock()
	byUUID := make(map[string]Lease, len(list))
	for _, lease := range list {
		byUUID[lease.UUID] = lease
	}
	var lower, raise []*managedGPU
	var errs []error
	for _, c := range l.gpus.all() {
		if c.ownedByTwin {
			continue
		}
		lease := byUUID[c.uuid]
		errs = append(errs, c.inTurn(ctx, func(c *managedGPU) error {
			return errors.Join(l.base.noteShare(c, lease.Safe), l.checkLimit(c))
		}))
		c.ground.note(func(g *groundState) {
			g.share.watts, g.share.ends, g.share.isReleased = lease.Watts, ends, false
		})
		before, held := l.base.limitBefore(c)
		if inForce := cmp.Or(held, before); lease.Watts > 0 && (inForce == 0 || gpu.Value(lease.Watts) < inForce) {
			lower = append(lower, c)
		} else {
			raise = append(raise, c)
		}
	}
	if len(list) == 0 {
		ends = time.Time{}
	}
	l.endAt(ends)
	notify(l.news)
	return errors.Join(append(errs, l.applyLeases(ctx, lower), l.applyLeases(ctx, raise))...)
}

// applyLeases brings cards to their leases. One whose limit the driver refuses keeps the old one, or none.
func (l *Leases) applyLeases(ctx context.Context, cards []*managedGPU) error {
	began := time.Now()
	failed, err := l.reconciler.reconcileEach(ctx, cards)
	if isRefusal(err) {
		err = errors.Join(err, l.reconciler.reconcile(ctx, failed))
	}
	for _, c := range cards {
		if share := c.ground.now().share; !share.refused.Before(began) && !slices.Contains(failed, c) {
			err = errors.Join(err, share.refusal)
		}
	}
	return err
}

// leaseRetry is how soon a fall to safe shares that failed is tried again.
const leaseRetry = time.Second

// end brings all GPUs to their safe shares once leases have ended, and again where that failed.
func (l *Leases) end(ctx context.Context) error {
	l.setting.Lock()
	defer l.setting.Unlock()
	if l.wait() > 0 {
		return nil
	}
	cards := slices.DeleteFunc(l.gpus.all(), func(c *managedGPU) bool { return c.ownedByTwin })
	err := l.applyLeases(ctx, cards)
	var again time.Time
	for _, c := range cards {
		if share := c.ground.now().share; share.isRefused() {
			again = share.refused.Add(refusalPause)
		}
	}
	if err != nil {
		again = time.Now().Add(leaseRetry)
	}
	l.endAt(again)
	return err
}

// release has the budget's limits of cards given back until there are leases anew; for good, after a
// restart, too, where they are given back by hand.
func (l *Leases) release(ctx context.Context, cards []*managedGPU, byHand bool) error {
	var errs []error
	for _, c := range cards {
		c.ground.note(func(g *groundState) { g.share.isReleased = true })
		if byHand {
			errs = append(errs, c.inTurn(ctx, func(c *managedGPU) error { return l.base.noteShare(c, 0) }))
		}
	}
	return errors.Join(errs...)
}

// IsUnderBudget reports whether a GPU has a share of a power budget, on file or by a lease.
func (l *Leases) IsUnderBudget() bool {
	return slices.ContainsFunc(l.gpus.all(), func(c *managedGPU) bool {
		watts, _ := l.base.ceiling(c)
		return watts > 0
	})
}

// Share returns the power limit that a power budget leaves a GPU now; 0: it is under none.
func (l *Leases) Share(uuid string) dvfsmodel.Watt {
	c := l.gpus.byUUID(uuid)
	if c == nil {
		return 0
	}
	watts, _ := l.base.ceiling(c)
	return watts
}

// checkLimit notes whether somebody else has set a card's power limit, or it is what it was before: then it is set
// again.
func (l *Leases) checkLimit(c *managedGPU) error {
	if !c.canSet(gpu.PowerLimit) {
		return nil
	}
	now, err := call(c, gpu.PowerLimit.Prior)
	if err != nil {
		return err
	}
	held, isHeld := c.journalEntry().held(gpu.PowerLimit)
	if !isHeld {
		c.ground.note(func(g *groundState) { g.share.others = 0 })
		if before, _ := l.base.limitBefore(c); gpu.PowerLimit.IsAt(now, before) || c.journalEntry() != nil {
			return nil
		}
		return l.base.noteDriverValues(c)
	}
	isOurs := held.IsOurs(gpu.PowerLimit, now)
	others := now
	if isOurs || gpu.PowerLimit.IsAt(now, held.PriorValue) {
		others = 0
	}
	c.ground.note(func(g *groundState) { g.share.others = others })
	if !isOurs {
		c.record(c.journalEntry(), false)
	}
	return nil
}
