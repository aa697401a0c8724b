package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/live"
)

// clockOf is a setting's clock of a domain.
func clockOf(s dvfsmodel.Setting, d gpu.Domain) dvfsmodel.MHz {
	if d == gpu.Mem {
		return s.Mem
	}
	return s.Core
}

// faster is the setting of the faster clocks of two; the default is the fastest.
func faster(s, t dvfsmodel.Setting) dvfsmodel.Setting {
	return dvfsmodel.Setting{Core: fasterClock(s.Core, t.Core), Mem: fasterClock(s.Mem, t.Mem)}
}

// fasterClock is the faster of two clocks, of which 0 is the default.
func fasterClock(f, g dvfsmodel.MHz) dvfsmodel.MHz {
	if f == 0 || g == 0 {
		return 0
	}
	return max(f, g)
}

// supports reports whether a table has a setting. A clock at its default goes with
// any.
func supports(table *gpu.Clocks, s dvfsmodel.Setting) bool {
	for i, mem := range table.Mem {
		if s.Mem != 0 && s.Mem != mem {
			continue
		}
		if s.Core == 0 || slices.Contains(table.Core[i], s.Core) {
			return true
		}
	}
	return false
}

// target is what a card's open runs come to, and the run that is named in the
// journal for it, the youngest.
func (a *Agent) target(c *managedGPU) (want dvfsmodel.Setting, run live.Run) {
	table, err := c.clocks()
	a.mu.Lock()
	defer a.mu.Unlock()
	runs := a.runsOn(c)
	markSharedRuns(runs)
	for i, r := range runs {
		if i == 0 {
			want, run = r.wants(), r.Run
			continue
		}
		want = faster(want, r.wants())
		if r.Started.After(run.Started) {
			run = r.Run
		}
	}
	if err != nil || !supports(table, want) {
		want = dvfsmodel.Setting{}
	}
	return want, run
}

// settleAll brings cards to what their runs want. Where that fails, every run
// on the card is put to default clocks, on all its GPUs.
func (a *Agent) settleAll(ctx context.Context, cards []*managedGPU) error {
	failed, err := a.settleEach(ctx, cards)
	if len(failed) == 0 {
		return nil
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.options.UndoTimeout)
	defer cancel()
	_, undoing := a.settleEach(undo, a.giveUp(failed, err.Error()))
	return errors.Join(err, undoing)
}

// settleEach settles cards side by side and names those where it failed.
func (a *Agent) settleEach(ctx context.Context, cards []*managedGPU) (failed []*managedGPU, err error) {
	errs := make([]error, len(cards))
	var group errgroup.Group
	group.SetLimit(a.maxParallel)
	for i, c := range cards {
		group.Go(func() error {
			errs[i] = a.settle(ctx, c)
			return nil
		})
	}
	_ = group.Wait() // errors are in errs
	for i, c := range cards {
		if errs[i] != nil {
			failed = append(failed, c)
		}
	}
	return failed, errors.Join(errs...)
}

// giveUp puts the runs on cards to default clocks and returns all their cards
// with the given ones.
func (a *Agent) giveUp(cards []*managedGPU, reason string) []*managedGPU {
	var uuids []string
	a.mu.Lock()
	for _, c := range cards {
		uuids = append(uuids, c.uuid)
		for _, r := range a.runsOn(c) {
			if r.wants() != (dvfsmodel.Setting{}) {
				r.handsOff = reason
				uuids = append(uuids, r.GPUs...)
			}
		}
	}
	a.mu.Unlock()
	return a.gpusOf(uuids)
}

// settle brings one card to what its runs want.
func (a *Agent) settle(ctx context.Context, c *managedGPU) error {
	if err := c.acquire(ctx); err != nil {
		return err
	}
	defer c.releaseTurn()
	want, run := a.target(c)
	switch {
	case c.externalReason() != "" && a.hasOpenRun(c):
		return nil // somebody else's clocks stay while the runs last
	case want == (dvfsmodel.Setting{}):
		_, err := a.release(c)
		return err
	case c.isLockedAt(want):
		return nil
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("lock %s: %w", c.uuid, context.Cause(ctx))
	}
	return a.lockAt(c, want, &run)
}

// isUntouchable reports whether the card's clocks are to stay as they are: a run wants
// it locked, or somebody else set them and runs last.
func (a *Agent) isUntouchable(c *managedGPU) bool {
	want, _ := a.target(c)
	return want != (dvfsmodel.Setting{}) || c.externalReason() != "" && a.hasOpenRun(c)
}

// hasOpenRun reports whether a run is open on the card.
func (a *Agent) hasOpenRun(c *managedGPU) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.runsOn(c)) > 0
}

// lockAt journals a setting, locks the card at it and looks whether it runs so. The
// journal always names at least what is locked: it is written before a clock is
// locked, and again after one was given back. Whether it is still there is looked at
// before a lock and after it: another process may have given the clocks back. The
// caller has the card's turn, and releases the card after an error.
func (a *Agent) lockAt(c *managedGPU, want dvfsmodel.Setting, run *live.Run) error {
	entry := c.journalled()
	if entry == nil {
		id := c.identity()
		entry = &Entry{
			Schema: schema, UUID: c.uuid, Bus: id.Bus, Model: id.Model,
			Boot: a.options.Boot, Driver: a.options.Driver,
		}
	}
	if c.journalled() != nil {
		if err := a.journal.checkPresent(c.uuid); err != nil {
			return err
		}
	}
	next := entry.with(want, time.Now(), c.prior(), run)
	if !entry.hasExactly(want, run) {
		if err := a.journal.put(next); err != nil {
			return errors.Join(err, a.removeFailedEntry(c))
		}
	}
	c.record(next, false)
	for i, d := range domains {
		if clockOf(want, d) != 0 {
			if err := a.lock(c, d, clockOf(want, d), entry); err != nil {
				c.dropUnlocked(entry, domains[i+1:]...)
				return err
			}
			continue
		}
		if _, locked := next.held(d); locked {
			if _, err := a.unlock(c, d); err != nil {
				return err
			}
			next = next.without(d)
			if err := a.journal.put(next); err != nil {
				return err
			}
			c.record(next, false)
		}
	}
	if err := errors.Join(a.journal.checkPresent(c.uuid), verify(c, want)); err != nil {
		return err
	}
	c.record(next, true)
	return nil
}

// removeFailedEntry removes what a failed write may have left where nothing is locked.
func (a *Agent) removeFailedEntry(c *managedGPU) error {
	if c.journalled() != nil {
		return nil
	}
	return a.journal.retire(c.uuid)
}

// lock locks one clock. A refusal leaves the clock as it was: where it wasn't
// locked before, there is nothing to give back.
func (a *Agent) lock(c *managedGPU, d gpu.Domain, f dvfsmodel.MHz, before *Entry) error {
	c.noteWrite()
	err := c.callDriver(func(dev gpu.Device) error { return dev.Lock(d, f) })
	c.noteAnswer(err)
	if err == nil {
		return nil
	}
	if errors.Is(err, gpu.ErrPermission) || errors.Is(err, gpu.ErrNotSupported) {
		c.dropUnlocked(before, d)
	}
	return fmt.Errorf("lock the %s clock of %s at %v MHz: %w", d, c.uuid, float64(f), err)
}

// noteAnswer notes what the driver said to a lock.
func (c *managedGPU) noteAnswer(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = ""
	if errors.Is(err, gpu.ErrPermission) {
		c.refused = err.Error()
	}
}

const (
	settleTime = 40 * time.Millisecond // that a GPU may take to come down to a lock
	checkEvery = 5 * time.Millisecond  // one look at it and the next
	tolerance  = dvfsmodel.MHz(20)     // by which a running clock may read above a lock
)

// verify reads whether a card runs no faster than it was locked at. That is
// all that can be read of a lock.
func verify(c *managedGPU, want dvfsmodel.Setting) error {
	last := time.Now().Add(settleTime)
	for {
		r, err := call(c, gpu.Device.Read)
		if err != nil {
			return fmt.Errorf("look at the clocks of %s: %w", c.uuid, err)
		}
		if !isAbove(r.Core, want.Core) && !isAbove(r.Mem, want.Mem) {
			return nil
		}
		if !time.Now().Before(last) {
			return fmt.Errorf("look at the clocks of %s: run at %v,%v MHz, locked at %v,%v MHz",
				c.uuid, float64(r.Core), float64(r.Mem), float64(want.Core), float64(want.Mem))
		}
		<-time.After(checkEvery)
	}
}

// isAbove reports whether a running clock is above a locked one.
func isAbove(running, locked dvfsmodel.MHz) bool { return locked > 0 && running > locked+tolerance }

// release gives back all clocks that the card's entry names, then removes the
// entry. What can't be given back stays in it. The caller has the card's turn.
func (a *Agent) release(c *managedGPU) (note string, err error) {
	entry := c.journalled()
	if entry == nil {
		return "", nil
	}
	c.record(entry, false)
	for _, d := range domains {
		if _, locked := entry.held(d); !locked {
			continue
		}
		said, unlocking := a.unlock(c, d)
		note, err = joinNotes(note, said), errors.Join(err, unlocking)
	}
	if err != nil {
		return note, err
	}
	if entry.Driver != "" && entry.Driver != a.options.Driver {
		note = joinNotes(note, "the driver was reloaded since")
	}
	if err := errors.Join(a.journal.retire(c.uuid), a.journal.removeReturned(c.uuid)); err != nil {
		return note, err
	}
	c.record(nil, true)
	return note, nil
}

// unlock gives one clock back. One that the GPU can't lock is free. A stale
// handle is opened anew, and a fault that may mend is tried once more.
func (a *Agent) unlock(c *managedGPU, d gpu.Domain) (note string, err error) {
	for range 2 {
		c.noteWrite()
		err = c.callDriver(func(dev gpu.Device) error { return dev.Unlock(d) })
		switch {
		case err == nil:
			return note, nil
		case errors.Is(err, gpu.ErrNotSupported) && !c.canLock(d):
			return "its " + d.String() + " clock can't be locked", nil
		case errors.Is(err, gpu.ErrReloaded):
			note = "the driver was reloaded since"
			if opening := a.open(); opening != nil {
				return note, errors.Join(err, opening)
			}
		case errors.Is(err, gpu.ErrLost), errors.Is(err, gpu.ErrPermission), errors.Is(err, ErrStuck):
			return "", fmt.Errorf("unlock the %s clock of %s: %w", d, c.uuid, err)
		}
	}
	return note, fmt.Errorf("unlock the %s clock of %s: %w", d, c.uuid, err)
}

// joinNotes are two notes in one, without saying anything twice.
func joinNotes(first, second string) string {
	switch {
	case first == "" || first == second:
		return second
	case second == "":
		return first
	}
	return first + "; " + second
}
