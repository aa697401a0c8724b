package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/live"
)

// faster is the setting of the greater values of two; the default is the fastest.
func faster(s, t dvfsmodel.Setting) dvfsmodel.Setting {
	for control := range gpu.NumControls {
		v, w := control.Of(s), control.Of(t)
		if v == 0 || w == 0 {
			control.Put(&s, 0)
			continue
		}
		control.Put(&s, max(v, w))
	}
	return s
}

// supports reports whether a table has a setting's clocks, of which the memory clock
// restricts the core clock. One at its default goes with any.
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
	return a.gpus.some(uuids)
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
	next, err := entry.with(want, time.Now(), c.prior, run)
	if err != nil {
		return err
	}
	if !entry.hasExactly(want, run) {
		if err := a.journal.put(next); err != nil {
			return errors.Join(err, a.removeFailedEntry(c))
		}
	}
	c.record(next, false)
	for control := range gpu.NumControls {
		if v := control.Of(want); v != 0 {
			if err := a.set(c, control, v, entry); err != nil {
				c.dropUnset(entry, control+1, gpu.NumControls)
				return err
			}
			continue
		}
		if held, ok := next.held(control); ok {
			if _, err := a.giveBack(c, control, held); err != nil {
				return err
			}
			next = next.without(control)
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

// set sets one control. A refusal leaves it as it was: where it wasn't set before,
// there is nothing to give back.
func (a *Agent) set(c *managedGPU, control gpu.Control, v gpu.Value, before *Entry) error {
	c.noteWrite()
	err := c.callDriver(func(dev gpu.Device) error { return dev.Set(control, v) })
	c.noteAnswer(err)
	if err == nil {
		return nil
	}
	if errors.Is(err, gpu.ErrPermission) || errors.Is(err, gpu.ErrNotSupported) {
		c.dropUnset(before, control, control+1)
	}
	return fmt.Errorf("lock the %s of %s at %v %s: %w", control, c.uuid, float64(v), control.Unit(), err)
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
)

// verify reads whether a card runs no faster than it was locked at. That is
// all that can be read of a lock on a clock.
func verify(c *managedGPU, want dvfsmodel.Setting) error {
	last := time.Now().Add(settleTime)
	for {
		r, err := call(c, gpu.Device.Read)
		if err != nil {
			return fmt.Errorf("look at the clocks of %s: %w", c.uuid, err)
		}
		if !isAbove(&r, want) {
			return nil
		}
		if !time.Now().Before(last) {
			runs, locked := shownValues(&r, want)
			return fmt.Errorf("look at the clocks of %s: run at %s, locked at %s", c.uuid, runs, locked)
		}
		<-time.After(checkEvery)
	}
}

// isAbove reports whether a reading shows a control above what it is set to.
func isAbove(r *gpu.Reading, want dvfsmodel.Setting) bool {
	for control := range gpu.NumControls {
		v, tolerance, ok := control.Shown(r)
		if set := control.Of(want); ok && set > 0 && v > set+tolerance {
			return true
		}
	}
	return false
}

// shownValues are what a reading shows of controls and what they are set to, in words such
// as "945,877 MHz".
func shownValues(r *gpu.Reading, want dvfsmodel.Setting) (runs, set string) {
	var running, wanted strings.Builder
	unit := ""
	for control := range gpu.NumControls {
		v, _, ok := control.Shown(r)
		if !ok {
			continue
		}
		between := ""
		switch {
		case unit == control.Unit():
			between = ","
		case unit != "":
			between = " " + unit + ", "
		}
		unit = control.Unit()
		fmt.Fprintf(&running, "%s%v", between, float64(v))
		fmt.Fprintf(&wanted, "%s%v", between, float64(control.Of(want)))
	}
	return running.String() + " " + unit, wanted.String() + " " + unit
}

// release gives back all controls that the card's entry names, then removes the
// entry. What can't be given back stays in it. The caller has the card's turn.
func (a *Agent) release(c *managedGPU) (note string, err error) {
	entry := c.journalled()
	if entry == nil {
		return "", nil
	}
	c.record(entry, false)
	for control := range gpu.NumControls {
		held, ok := entry.held(control)
		if !ok {
			continue
		}
		said, giving := a.giveBack(c, control, held)
		note, err = joinNotes(note, said), errors.Join(err, giving)
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

// giveBack gives one control back: to the value from before where that is known, else to
// the driver. One that the GPU can't set is free. A stale handle is opened anew, and a
// fault that may mend is tried once more.
func (a *Agent) giveBack(c *managedGPU, control gpu.Control, held Held) (note string, err error) {
	back := func(dev gpu.Device) error { return dev.Release(control) }
	if held.Prior == PriorKnown {
		back = func(dev gpu.Device) error { return dev.Set(control, held.PriorValue) }
	}
	for range 2 {
		c.noteWrite()
		err = c.callDriver(back)
		switch {
		case err == nil:
			return note, nil
		case errors.Is(err, gpu.ErrNotSupported) && !c.can(control):
			return "its " + control.String() + " can't be locked", nil
		case errors.Is(err, gpu.ErrReloaded):
			note = "the driver was reloaded since"
			if opening := a.gpus.open(); opening != nil {
				return note, errors.Join(err, opening)
			}
		case errors.Is(err, gpu.ErrLost), errors.Is(err, gpu.ErrPermission), errors.Is(err, ErrStuck):
			return "", fmt.Errorf("unlock the %s of %s: %w", control, c.uuid, err)
		}
	}
	return note, fmt.Errorf("unlock the %s of %s: %w", control, c.uuid, err)
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
