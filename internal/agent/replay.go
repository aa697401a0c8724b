package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/statedir"
)

// EntryResult is what became of a journal entry.
type EntryResult string

// An entry whose clocks couldn't be given back is kept, and tried again.
const (
	EntryRestored EntryResult = "restored" // clocks given back, entry removed
	EntryReturned EntryResult = "returned" // clocks given back, entry left to the agent that lives
	EntryKept     EntryResult = "kept"     // not given back
	EntryDropped  EntryResult = "dropped"  // the machine was booted since: nothing is locked
	EntrySetAside EntryResult = "aside"    // unreadable: clocks given back, file moved aside
)

// Restored is what became of one GPU's entry.
type Restored struct {
	UUID   string
	Result EntryResult
	Note   string
	Err    error // why it was kept
}

// Report is what a restore did.
type Report struct {
	GPUs  []Restored
	Notes []string // beside GPUs: files that can't be read
}

// Clean reports whether no entry is left.
func (r *Report) Clean() bool {
	return !slices.ContainsFunc(r.GPUs, func(g Restored) bool { return g.Result == EntryKept })
}

// Err is why entries were kept; nil when none was.
func (r *Report) Err() error {
	errs := make([]error, 0, len(r.GPUs))
	for _, g := range r.GPUs {
		errs = append(errs, g.Err)
	}
	return errors.Join(errs...)
}

// replay gives back what the journal's files name, of all GPUs or some.
func (h *holder) replay(ctx context.Context, uuids []string) (Report, error) {
	names, foreign, err := liveFiles(h.journal.folder, !h.replayed.Load())
	if err != nil && names == nil {
		return Report{}, fmt.Errorf("read the journal: %w", err)
	}
	var report Report
	h.replayForeignFiles(ctx, foreign, &report)
	if err != nil {
		report.Notes = append(report.Notes, err.Error())
	}
	wanted := slices.DeleteFunc(slices.Clone(names), func(uuid string) bool {
		return len(uuids) > 0 && !slices.Contains(uuids, uuid)
	})
	results := make([]Restored, len(wanted))
	h.gpus.atOnce(len(wanted), func(i int) { results[i] = h.replayOne(ctx, wanted[i], false) })
	report.GPUs = append(report.GPUs, results...)
	h.replayed.Store(true)
	return report, h.replayLost(ctx, names)
}

// replayOne gives back what one entry names. With spare, it leaves a GPU alone
// that is locked for a run, and says nothing.
func (h *holder) replayOne(ctx context.Context, uuid string, spare bool) Restored {
	_, reading := h.journal.read(uuid)
	foreign := errors.Is(reading, statedir.ErrForeign)
	var listed error
	if foreign { // before the GPU's turn, as the others have turns, too
		listed = h.giveBackListed(ctx, uuid+current)
	}
	c := h.gpus.byUUID(uuid)
	if c != nil {
		if err := c.acquire(ctx); err != nil {
			return Restored{UUID: uuid, Result: EntryKept, Err: err}
		}
		defer c.releaseTurn()
		if spare && h.inUse(c) {
			return Restored{}
		}
	}
	entry, err := h.journal.read(uuid)
	switch {
	case err != nil && statedir.IgnoreMissing(err) == nil && (c == nil || c.journalEntry() == nil):
		return Restored{UUID: uuid, Result: EntryRestored, Note: "meanwhile"}
	case err != nil && statedir.IgnoreMissing(err) == nil: // its removal failed half-way, or was somebody else's
		entry = c.journalEntry()
	case foreign && errors.Is(err, statedir.ErrForeign): // still: no run was locked meanwhile
		return h.replayForeign(c, uuid, err, listed)
	case err != nil:
		return h.replayUnread(c, uuid, err)
	case h.base.isOfOtherBoot(entry.Boot):
		return h.dropEntry(c, uuid)
	case c == nil:
		err := fmt.Errorf("%s: %w: its clocks can't be given back before it is", uuid, ErrNoGPU)
		return Restored{UUID: uuid, Result: EntryKept, Err: err}
	}
	c.record(entry, false)
	if c.ownedByTwin {
		return h.replayFromOutside(c)
	}
	lost, err := h.base.recoverShare(c, entry)
	if err != nil {
		return Restored{UUID: uuid, Result: EntryKept, Err: err}
	}
	note, err := h.release(c)
	note = joinNotes(lost, note)
	if err == nil {
		err = h.journal.removeReturned(uuid)
	}
	if err != nil {
		return Restored{UUID: uuid, Result: EntryKept, Note: note, Err: err}
	}
	return Restored{UUID: uuid, Result: EntryRestored, Note: note}
}

// replayFromOutside gives back what an agent locked that lives or hangs. The entry stays:
// the agent may be about to lock again, and a lock must not be without one. Word of it
// is left first, so that the agent, which looks after each lock, finds it.
func (h *holder) replayFromOutside(c *managedGPU) Restored {
	err := errors.Join(h.journal.noteReturned(c.uuid), h.giveBackAll(c))
	if err != nil {
		return Restored{UUID: c.uuid, Result: EntryKept, Err: err}
	}
	return Restored{UUID: c.uuid, Result: EntryReturned, Note: "its agent is told"}
}

// dropEntry removes an entry of before the machine was booted.
func (h *holder) dropEntry(c *managedGPU, uuid string) Restored {
	const note = "the machine was booted since: nothing is locked"
	if err := h.journal.retire(uuid); err != nil {
		return Restored{UUID: uuid, Result: EntryKept, Note: note, Err: err}
	}
	if c != nil {
		c.record(nil, false)
	}
	return Restored{UUID: uuid, Result: EntryDropped, Note: note}
}

// replayUnread treats an entry that the disk doesn't yield as one of all clocks, and
// keeps the file: it may be read the next time.
func (h *holder) replayUnread(c *managedGPU, uuid string, err error) Restored {
	if c != nil {
		err = errors.Join(err, h.giveBackAll(c))
	}
	return Restored{UUID: uuid, Result: EntryKept, Err: err}
}

// replayLost gives back what baselines name of GPUs whose entries are gone.
func (h *holder) replayLost(ctx context.Context, names []string) error {
	cards := h.gpus.all()
	errs := make([]error, len(cards))
	h.gpus.inParallel(cards, func(i int, c *managedGPU) {
		if !c.ownedByTwin && !slices.Contains(names, c.uuid) {
			errs[i] = c.inTurn(ctx, h.giveBackLost)
		}
	})
	return errors.Join(errs...)
}

// settle brings a GPU without an entry to what the site wants of it, and writes its baseline down. What a
// baseline names that no entry does is given back first, but a budget's limit: the entry is lost. The caller
// has the GPU's turn.
func (h *holder) settle(c *managedGPU) error {
	if entry := c.journalEntry(); entry != nil {
		if entry.isOfRun() {
			return nil
		}
		return h.setSite(c) // a budget holds its power limit
	}
	if h.isSettled(c) {
		if c.ground.now().siteSet == (siteClocks{}) {
			return nil
		}
		// A driver that was reloaded, or a GPU that was lost, has forgotten them and says so when it is asked.
		_, _ = callRenewed(h.gpus, func() (gpu.Sharing, error) { return call(c, gpu.Device.Sharing) })
		if h.isSettled(c) {
			return nil
		}
	}
	if err := h.giveBackLost(c); err != nil {
		return err
	}
	if err := h.base.noteDriverValues(c); err != nil {
		return err
	}
	if err := h.setSite(c); err != nil {
		return err
	}
	if want := h.base.limitToBudget(c, lock{}); want != (lock{}) {
		_, err := h.lockAt(c, want, &live.Run{})
		return err
	}
	return nil
}

// isSettled reports whether there is nothing to do for a GPU without an entry.
func (h *holder) isSettled(c *managedGPU) bool {
	want, now := h.base.siteOf(c), c.ground.now()
	b := now.base
	return b != nil && now.asked && b.set == nil && h.base.limitUnderBudget(c) == 0 && b.Site == want &&
		now.siteSet == want &&
		b.Suspected == now.suspected()
}

// giveBackLost gives back what a baseline names of a GPU whose entry is gone. The caller has the GPU's turn.
func (h *holder) giveBackLost(c *managedGPU) error {
	b, err := h.base.baselineOf(c)
	if c.journalEntry() != nil || err != nil || b.set == nil {
		return err
	}
	if err := h.giveBackAll(c); err != nil {
		return err
	}
	held, ok := b.set.held(gpu.PowerLimit)
	if share := h.base.limitUnderBudget(c); ok && share > 0 {
		if err := h.adopt(c); err != nil || c.journalEntry() != nil {
			return err
		}
		entry := *b.set
		entry.Controls = map[gpu.Control]Held{gpu.PowerLimit: held}
		return h.holdLimit(c, &entry, share)
	}
	return h.base.noteReleased(c)
}

// setSite sets the site's clocks on a GPU on which nothing else is set, and releases those that the site
// doesn't want any more. The baseline names them before.
func (h *holder) setSite(c *managedGPU) error {
	want := h.base.siteOf(c)
	b, err := h.base.baselineOf(c)
	if err != nil {
		return err
	}
	before := b.Site
	if want == before && c.ground.now().siteSet == want {
		return nil
	}
	b.Site = siteClocks{Core: cmp.Or(want.Core, before.Core), Mem: cmp.Or(want.Mem, before.Mem)}
	if err := h.base.write(c, b); err != nil {
		return err
	}
	for control := range gpu.NumControls {
		if want.of(control) == 0 && before.of(control) == 0 || !c.canSet(control) {
			continue
		}
		if _, err := h.giveBack(c, control, Held{}); err != nil {
			return err
		}
	}
	c.ground.note(func(g *groundState) { g.siteSet = want })
	b.Site = want
	return h.base.write(c, b)
}

// settleAll settles all GPUs without an entry.
func (h *holder) settleAll(ctx context.Context) error {
	cards := h.gpus.all()
	errs := make([]error, len(cards))
	h.gpus.inParallel(cards, func(i int, c *managedGPU) {
		if !c.ownedByTwin {
			errs[i] = c.inTurn(ctx, h.settle)
		}
	})
	return errors.Join(errs...)
}

// sweep replays the entries of GPUs that no run wants locked, with fresh
// handles: a GPU may have come back.
func (h *holder) sweep(ctx context.Context) (Report, error) {
	if !h.replayed.Load() {
		opening := h.gpus.open()
		report, err := h.replay(ctx, nil)
		return report, errors.Join(opening, err, h.settleAll(ctx))
	}
	names, foreign, err := liveFiles(h.journal.folder, false)
	if err != nil {
		return Report{}, fmt.Errorf("read the journal: %w", err)
	}
	for _, c := range h.gpus.all() {
		if c.journalEntry() != nil && !slices.Contains(names, c.uuid) {
			names = append(names, c.uuid)
		}
	}
	var report Report
	opened := false
	for _, uuid := range names {
		if c := h.gpus.byUUID(uuid); c != nil && h.inUse(c) {
			continue
		}
		if !opened {
			opened, err = true, h.gpus.open()
		}
		if item := h.replayOne(ctx, uuid, true); item.Result != "" {
			report.GPUs = append(report.GPUs, item)
		}
	}
	h.replayForeignFiles(ctx, foreign, &report)
	return report, errors.Join(err, h.settleAll(ctx))
}
