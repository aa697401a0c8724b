package agent

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/statedir"
)

// holder sets controls of GPUs and gives them back, each by the journal: nothing is ever
// set that isn't in it. It knows nothing of runs. What it knows of one GPU is in its
// [managedGPU], which it changes in the GPU's turn alone.
type holder struct {
	gpus    *GPUSet
	journal journal
	// boot and driver tell this boot of the machine and this load of the driver.
	boot, driver string
	base         *baselines
	// inUse reports whether a GPU's clocks are to stay as they are. It may be called in the
	// GPU's turn, and locks the runs' set.
	inUse func(*managedGPU) bool

	replayed atomic.Bool // the journal was read since the start
}

// lockAt journals a setting, and locks the card at it. Whether it runs so is seen by its
// readings at work ([managedGPU.checkLock]). The
// journal always names at least what is locked: it is written before a clock is
// locked, and again after one was given back. Whether it is still there is looked at
// before a lock and after it: another process may have given the clocks back. A control
// that the driver refuses is left alone and returned, if it isn't the first one. The caller has
// the card's turn, and releases the card after an error.
func (h *holder) lockAt(c *managedGPU, want lock, run *live.Run) (refused gpu.ControlSet, err error) {
	if err := h.adopt(c); err != nil {
		return 0, err
	}
	entry := c.journalEntry()
	if entry == nil {
		id := c.identity()
		entry = &Entry{
			Schema: schema, UUID: c.uuid, Bus: id.Bus, Model: id.Model,
			Boot: h.boot, Driver: h.driver, Site: h.base.siteOf(c),
		}
	} else {
		if err := h.journal.checkPresent(c.uuid); err != nil {
			return 0, err
		}
		if !c.isAtEntry() {
			entry = entryInForce(c, entry)
		}
	}
	if entry, err = h.giveBackOther(c, &want, entry); err != nil {
		return 0, err
	}
	unreadable, err := c.dropUnreadable(&want, entry)
	if err != nil {
		return 0, err
	}
	next, err := entry.with(want.Setting, time.Now(), c.prior, run)
	if err != nil {
		return 0, err
	}
	if b := c.ground.now().base; b != nil {
		next.Budget = b.Budget
	}
	if !entry.hasExactly(want.Setting, run) || next.Budget != entry.Budget {
		if err := h.base.noteSet(c, next); err != nil {
			return 0, err
		}
		if err := h.journal.put(next); err != nil {
			return 0, errors.Join(err, h.removeFailedEntry(c))
		}
	}
	c.record(next, false)
	next, refused, err = h.setControls(c, &want, entry, next)
	if err != nil {
		return 0, err
	}
	if err := h.journal.checkPresent(c.uuid); err != nil {
		return 0, err
	}
	c.recordLock(next, want.exact)
	return refused | unreadable, nil
}

// giveBackOther gives back what the entry has of controls that are set beside what is there, such as a power
// profile, where another value is wanted, and returns the entry without. The journal has it until the next
// one is written.
func (h *holder) giveBackOther(c *managedGPU, want *lock, entry *Entry) (*Entry, error) {
	for control := range gpu.NumControls {
		v := control.ValueIn(want.Setting)
		held, isHeld := entry.held(control)
		if !isHeld || v == 0 || v == held.Value || !control.IsChoice() {
			continue
		}
		if _, err := h.giveBack(c, control, held); err != nil {
			return nil, err
		}
		entry = entry.without(control)
	}
	return entry, nil
}

// dropUnreadable takes controls out of what is wanted whose driver would tell what they are at and
// refuses to: what can't be given back isn't set.
func (c *managedGPU) dropUnreadable(want *lock, entry *Entry) (refused gpu.ControlSet, err error) {
	for control := range gpu.NumControls {
		if _, held := entry.held(control); held || control.ValueIn(want.Setting) == 0 || !control.TellsPrior() {
			continue
		}
		if _, _, err := c.prior(control); err != nil {
			if !isRefusal(err) || !c.doWithout(control, want) {
				return 0, err
			}
			refused |= gpu.ControlsOf(control)
		}
	}
	return refused, nil
}

// setControls sets the controls that are wanted and gives the others back that the next
// entry has. It returns the entry of what is set then. What the driver refuses is taken out
// of what is wanted, unless it is the first control.
func (h *holder) setControls(
	c *managedGPU, want *lock, entry, next *Entry,
) (_ *Entry, refused gpu.ControlSet, err error) {
	todo := h.base.settingOrder(c)
	for i, control := range todo {
		held, isHeld := next.held(control)
		switch v := control.ValueIn(want.Setting); {
		case v != 0:
			err := h.setControl(c, control, held, want.exact, entry)
			if err == nil {
				continue
			}
			kept, without, ok := h.continueWithout(c, control, want, entry, next, err)
			if !ok {
				c.dropUnset(entry, todo[i+1:]...)
				return nil, 0, err
			}
			next, refused = kept, refused|without
		case isHeld:
			if _, err := h.giveBack(c, control, held); err != nil {
				return nil, 0, err
			}
			next = next.without(control)
		default:
			continue
		}
		if err := h.journal.put(next); err != nil {
			return nil, 0, err
		}
		c.record(next, false)
	}
	return next, refused, nil
}

// continueWithout returns what a card's entry is where one control failed to be set, and what a run is without; false:
// the card doesn't go on. A power budget's limit that the driver refuses leaves the one that was in force.
func (h *holder) continueWithout(
	c *managedGPU, control gpu.Control, want *lock, entry, next *Entry, failed error,
) (kept *Entry, without gpu.ControlSet, ok bool) {
	was, wasHeld := entry.held(control)
	share := h.base.limitUnderBudget(c)
	isBudgets := share > 0 && control == gpu.PowerLimit
	kept = next.without(control)
	switch {
	case !isRefusal(failed):
		return nil, 0, false
	case isBudgets && share == control.ValueIn(want.Setting):
		c.ground.note(func(g *groundState) { g.share.refused, g.share.refusal = time.Now(), failed })
		ok = true
	default:
		without = gpu.ControlsOf(control)
		ok = (isBudgets || !wasHeld) && c.doWithout(control, want)
	}
	if wasHeld {
		kept.Controls[control] = was
	}
	return kept, without, ok && len(kept.Controls) > 0
}

// adopt makes an entry from before the agent had the GPU the card's: its clocks may still
// be set, and what was there before them stands nowhere else. One that can't be
// understood may list other GPUs, and keeps this one from being locked.
func (h *holder) adopt(c *managedGPU) error {
	if c.journalEntry() != nil {
		return nil
	}
	entry, err := h.journal.read(c.uuid)
	switch {
	case err != nil:
		return statedir.IgnoreMissing(err)
	case !h.base.isOfOtherBoot(entry.Boot): // else nothing is set
		c.record(entry, false)
	}
	return nil
}

// removeFailedEntry removes what a failed write may have left where nothing is locked.
func (h *holder) removeFailedEntry(c *managedGPU) error {
	if c.journalEntry() != nil {
		return nil
	}
	return h.journal.retire(c.uuid)
}

// setControl sets one control to what the next entry has, exactly. If it was unset, a refusal leaves it so.
func (h *holder) setControl(
	c *managedGPU, control gpu.Control, next Held, exact bool, before *Entry,
) error {
	c.noteWrite()
	v := next.Value
	err := c.callDriver(func(dev gpu.Device) error {
		if err := next.checkUnchanged(control, dev); err != nil {
			return err
		}
		if exact {
			return dev.Fix(control, v)
		}
		return dev.Set(control, v)
	})
	c.noteAnswer(err)
	if err == nil {
		return nil
	}
	if isRefusal(err) {
		c.dropUnset(before, control)
	}
	return fmt.Errorf("lock the %s of %s at %s: %w", control, c.uuid, control.Words(v), err)
}

// release gives back all controls that the card's entry names, then removes the
// entry. What can't be given back stays in it, and a power budget's limit. The caller has the card's turn.
func (h *holder) release(c *managedGPU) (note string, err error) {
	entry := c.journalEntry()
	if entry == nil {
		return "", nil
	}
	c.record(entry, false)
	share, rest := h.base.limitUnderBudget(c), entry
	for control := range gpu.NumControls {
		held, ok := entry.held(control)
		if !ok || share > 0 && control == gpu.PowerLimit {
			continue
		}
		said, giving := h.giveBack(c, control, held)
		note, err = joinNotes(note, said), errors.Join(err, giving)
		rest = rest.without(control)
	}
	if err != nil {
		return note, err
	}
	if share > 0 {
		return note, h.holdLimit(c, rest, share)
	}
	if entry.Driver != "" && entry.Driver != h.driver {
		note = joinNotes(note, "the driver was reloaded since")
	}
	if err := errors.Join(h.journal.retire(c.uuid), h.base.noteReleased(c)); err != nil {
		return note, err
	}
	c.record(nil, true)
	return note, nil
}

// giveBackReported gives back what the driver tells to be still as the card's entry has it, such as a power
// limit, of a card with somebody else's clocks. The caller has the card's turn.
func (h *holder) giveBackReported(c *managedGPU) error {
	entry := c.journalEntry()
	for control := range gpu.NumControls {
		held, ok := entry.held(control)
		if !ok || held.Prior != PriorKnown {
			continue
		}
		if share := h.base.limitUnderBudget(c); share > 0 && control == gpu.PowerLimit {
			if err := h.holdLimit(c, entry, share); err != nil {
				return err
			}
			continue
		}
		if _, err := h.giveBack(c, control, held); err != nil {
			return err
		}
		next := entry.without(control)
		if next.Setting() == (dvfsmodel.Setting{}) {
			continue // the last one: it stays in the entry, and is found changed
		}
		if err := h.journal.put(next); err != nil {
			return err
		}
		c.record(next, c.isAtEntry())
		entry = next
	}
	return nil
}

// giveBack gives one control back. A clock goes back to the site's range, or is released. A control whose
// value the driver tells goes back to its prior value, unless somebody else has changed it since. One that
// the GPU can't set is free. A stale handle is opened anew, and a fault that may mend is tried once more.
func (h *holder) giveBack(c *managedGPU, control gpu.Control, held Held) (note string, err error) {
	back := func(dev gpu.Device) (string, error) { return "", dev.Release(control) }
	if v := h.base.siteValue(c, control); v != 0 {
		back = func(dev gpu.Device) (string, error) { return "", dev.Set(control, v) }
	}
	if control.TellsPrior() {
		if held.Prior != PriorKnown {
			return "", nil
		}
		back = held.giveBackOn(control)
	}
	reloaded := ""
	for range 2 {
		c.noteWrite()
		note, err = call(c, back)
		note = joinNotes(reloaded, note)
		switch {
		case err == nil:
			return note, nil
		case errors.Is(err, gpu.ErrNotSupported) && !c.canSet(control):
			return "its " + control.String() + " can't be locked", nil
		case errors.Is(err, gpu.ErrReloaded):
			reloaded = "the driver was reloaded since"
			if opening := h.gpus.open(); opening != nil {
				return reloaded, errors.Join(err, opening)
			}
		case errors.Is(err, gpu.ErrLost), errors.Is(err, gpu.ErrPermission), errors.Is(err, ErrStuck):
			return "", fmt.Errorf("unlock the %s of %s: %w", control, c.uuid, err)
		}
	}
	return note, fmt.Errorf("unlock the %s of %s: %w", control, c.uuid, err)
}

// giveBackOn returns how a control of which the driver tells is given back on a device.
func (h *Held) giveBackOn(control gpu.Control) func(gpu.Device) (note string, err error) {
	return func(dev gpu.Device) (string, error) {
		now, err := control.Prior(dev)
		switch {
		case err != nil:
			return "", err //nolint:wrapcheck // names the GPU
		case h.IsOurs(control, now):
			return "", control.GiveBack(dev, h.Value, h.PriorValue) //nolint:wrapcheck // names the GPU
		case control.IsAt(now, h.PriorValue):
			return "", nil
		}
		return fmt.Sprintf("somebody else set its %s to %s, and so it stays", control, control.Words(now)), nil
	}
}

// checkUnchanged fails if a control of which the driver tells isn't as it was before the run, or as the agent set
// it: no value is set over somebody else's.
func (h *Held) checkUnchanged(control gpu.Control, dev gpu.Device) error {
	if !control.TellsPrior() {
		return nil
	}
	now, err := control.Prior(dev)
	if err != nil {
		return err //nolint:wrapcheck // names the GPU
	}
	if !h.IsOurs(control, now) && !control.IsAt(now, h.PriorValue) {
		return fmt.Errorf("%w: its %s is %s", errLimitChanged, control, control.Words(now))
	}
	return nil
}

// joinNotes returns two notes in one, without saying anything twice.
func joinNotes(first, second string) string {
	switch {
	case first == "" || first == second:
		return second
	case second == "":
		return first
	}
	return first + "; " + second
}

// giveBackAll gives back all clocks of the card, as what no entry names may be locked nevertheless, and what
// the driver tells by the card's entry or its baseline.
func (h *holder) giveBackAll(c *managedGPU) error {
	entry := c.journalEntry()
	b, err := h.base.baselineOf(c)
	share := h.base.limitUnderBudget(c)
	for control := range gpu.NumControls {
		held, ok := entry.held(control)
		if !ok {
			held, _ = b.set.held(control)
		}
		if share > 0 && control == gpu.PowerLimit {
			continue
		}
		_, giving := h.giveBack(c, control, held)
		err = errors.Join(err, giving)
	}
	return err
}

// holdLimit sets a budget's power limit on a card, and leaves all else that its entry has. The caller has the
// card's turn.
func (h *holder) holdLimit(c *managedGPU, entry *Entry, limit gpu.Value) error {
	entry = entryInForce(c, entry)
	next, err := entry.with(dvfsmodel.Setting{Cap: dvfsmodel.Watt(limit)}, time.Now(), c.prior, &live.Run{})
	if err != nil {
		return err
	}
	if err := errors.Join(h.base.noteSet(c, next), h.journal.put(next)); err != nil {
		return err
	}
	c.record(next, false)
	held, _ := next.held(gpu.PowerLimit)
	if err := h.setControl(c, gpu.PowerLimit, held, false, entry); err != nil {
		return err
	}
	c.recordLock(next, false)
	return nil
}

// entryInForce returns an entry with the power limit that the driver has of the two that it may have, after a
// write of which nobody knows whether it was done: the next value is then set over that one.
func entryInForce(c *managedGPU, entry *Entry) *Entry {
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
