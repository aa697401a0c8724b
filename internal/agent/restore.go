package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/epplan/epplan/internal/gpu"
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

// Restore gives back the clocks of the named GPUs, of all where none is named,
// by what the journal's files say. Open runs on them stay at default clocks
// for the rest of their time, for the given reason. The error says what
// prevented the journal from being read; what couldn't be given back is in the
// report.
func (a *Agent) Restore(ctx context.Context, reason string, uuids ...string) (Report, error) {
	cards := a.gpus.all()
	if len(uuids) > 0 {
		cards = a.gpus.some(uuids)
	}
	affected := a.giveUp(cards, reason)
	for _, c := range cards {
		c.clearExternalChange()
	}
	report, err := a.replay(ctx, uuids)
	return report, errors.Join(err, a.settleAll(ctx, affected))
}

// RestoreJournal gives back all clocks that a journal names, without an agent and its
// runs. Beside an agent that lives, or hangs, it leaves the entries to it, with word that
// the clocks are given back: the agent puts its runs to default clocks. A GPU that
// another agent looks after isn't touched. A GPU that can't be opened keeps no other from
// being given back, and is a note where the journal doesn't name it.
func RestoreJournal(ctx context.Context, options Options) (Report, error) {
	a := New(options)
	defer a.Close()
	a.gpus.restoreOnly = true
	opening := a.gpus.open()
	report, err := a.replay(ctx, nil)
	if opening != nil && len(a.gpus.all()) > 0 && report.Clean() {
		report.Notes = append(report.Notes, opening.Error())
		opening = nil
	}
	return report, errors.Join(opening, err)
}

// replay gives back what the journal's files name, of all GPUs or some.
func (a *Agent) replay(ctx context.Context, uuids []string) (Report, error) {
	a.mu.Lock()
	first := !a.replayed
	a.mu.Unlock()
	names, foreign, err := liveFiles(a.journal.folder, first)
	if err != nil && names == nil {
		return Report{}, fmt.Errorf("read the journal: %w", err)
	}
	var report Report
	a.replayForeignFiles(ctx, foreign, &report)
	if err != nil {
		report.Notes = append(report.Notes, err.Error())
	}
	for _, uuid := range names {
		if len(uuids) == 0 || slices.Contains(uuids, uuid) {
			report.GPUs = append(report.GPUs, a.replayOne(ctx, uuid, false))
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.replayed = true
	return report, nil
}

// replayOne gives back what one entry names. With spare, it leaves a GPU alone
// that is locked for a run, and says nothing.
func (a *Agent) replayOne(ctx context.Context, uuid string, spare bool) Restored {
	if _, err := a.journal.read(uuid); errors.Is(err, errForeign) {
		return a.replayForeign(ctx, uuid, spare, err)
	}
	c := a.gpus.byUUID(uuid)
	if c != nil {
		if err := c.acquire(ctx); err != nil {
			return Restored{UUID: uuid, Result: EntryKept, Err: err}
		}
		defer c.releaseTurn()
		if spare && a.isUntouchable(c) {
			return Restored{}
		}
	}
	entry, err := a.journal.read(uuid)
	switch {
	case err != nil && ignoreMissing(err) == nil:
		return Restored{UUID: uuid, Result: EntryRestored, Note: "meanwhile"}
	case err != nil:
		return a.replayUnread(c, uuid, err)
	case entry.Boot != "" && a.options.Boot != "" && entry.Boot != a.options.Boot:
		return a.dropEntry(c, uuid)
	case c == nil:
		err := fmt.Errorf("%s: %w: its clocks can't be given back before it is", uuid, ErrNoGPU)
		return Restored{UUID: uuid, Result: EntryKept, Err: err}
	}
	c.record(entry, false)
	if c.ownedByTwin {
		return a.replayBeside(c)
	}
	note, err := a.release(c)
	if err != nil {
		return Restored{UUID: uuid, Result: EntryKept, Note: note, Err: err}
	}
	return Restored{UUID: uuid, Result: EntryRestored, Note: note}
}

// replayBeside gives back what an agent locked that lives or hangs. The entry stays:
// the agent may be about to lock again, and a lock must not be without one. Word of it
// is left first, so that the agent, which looks after each lock, finds it.
func (a *Agent) replayBeside(c *managedGPU) Restored {
	err := errors.Join(a.journal.noteReturned(c.uuid), a.giveBackAll(c))
	if err != nil {
		return Restored{UUID: c.uuid, Result: EntryKept, Err: err}
	}
	return Restored{UUID: c.uuid, Result: EntryReturned, Note: "its agent is told"}
}

// applyReturned puts runs to default clocks whose GPUs' clocks another process gave back, of all
// GPUs or some, and names those GPUs.
func (a *Agent) applyReturned(ctx context.Context, uuids []string) (heeded []string, err error) {
	words, err := a.journal.returnedGPUs()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, uuid := range words {
		if uuids != nil && !slices.Contains(uuids, uuid) {
			continue
		}
		cards := a.gpus.some([]string{uuid})
		affected := a.giveUp(cards, errReturned.Error())
		for _, c := range cards {
			c.clearExternalChange() // nobody else set them
		}
		err := a.settleAll(ctx, affected)
		if err == nil {
			err = a.journal.removeReturned(uuid)
		}
		heeded, errs = append(heeded, uuid), append(errs, err)
	}
	return heeded, errors.Join(errs...)
}

// dropEntry removes an entry of before the machine was booted.
func (a *Agent) dropEntry(c *managedGPU, uuid string) Restored {
	const note = "the machine was booted since: nothing is locked"
	if err := a.journal.retire(uuid); err != nil {
		return Restored{UUID: uuid, Result: EntryKept, Note: note, Err: err}
	}
	if c != nil {
		c.record(nil, false)
	}
	return Restored{UUID: uuid, Result: EntryDropped, Note: note}
}

// replayUnread treats an entry that the disk doesn't yield as one of all clocks, and
// keeps the file: it may be read the next time.
func (a *Agent) replayUnread(c *managedGPU, uuid string, err error) Restored {
	if c != nil {
		err = errors.Join(err, a.giveBackAll(c))
	}
	return Restored{UUID: uuid, Result: EntryKept, Err: err}
}

// giveBackAll gives back whatever the card can set, to what its entry has of before. What
// the entry doesn't name may be locked nevertheless, unless the driver would have told.
func (a *Agent) giveBackAll(c *managedGPU) error {
	entry := c.journalled()
	var err error
	for control := range gpu.NumControls {
		held, ok := entry.held(control)
		if entry != nil && !ok && control.TellsPrior() {
			continue
		}
		_, giving := a.giveBack(c, control, held)
		err = errors.Join(err, giving)
	}
	return err
}
