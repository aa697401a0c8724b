package agent

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/epplan/epplan/statedir"
)

// What lies in the journal and can't be understood may be that of an epd to come, to
// which somebody went back: the GPUs that it lists may be locked. They are given back
// as far as this epd can lock them; those that a run holds have an entry of their own.

// replayForeign treats a GPU's file that can't be understood as one of all clocks of
// that GPU, and moves it aside unless one that it lists couldn't be freed. The caller has
// the GPU's turn, so that no run's entry takes the file's place and is moved in its stead.
func (h *holder) replayForeign(c *managedGPU, uuid string, why, listed error) Restored {
	if c == nil && isGPU(uuid) {
		err := fmt.Errorf("%s: %w: its clocks can't be given back before it is: %w", uuid, ErrNoGPU, why)
		return Restored{UUID: uuid, Result: EntryKept, Err: errors.Join(err, listed)}
	}
	err := listed
	note := why.Error()
	if c != nil {
		unsure, freeing := h.giveBackUnknown(c)
		note, err = joinNotes(note, unsure), errors.Join(freeing, err)
	}
	if err == nil {
		err = statedir.SetAside(h.journal.folder, uuid+current)
	}
	if err != nil {
		return Restored{UUID: uuid, Result: EntryKept, Note: note, Err: err}
	}
	return Restored{UUID: uuid, Result: EntrySetAside, Note: note}
}

// replayForeignFiles gives back what files list that have no ending of ours, and moves
// them aside.
func (h *holder) replayForeignFiles(ctx context.Context, files []string, report *Report) {
	for _, name := range files {
		if err := h.giveBackListed(ctx, name); err != nil {
			report.GPUs = append(report.GPUs, Restored{UUID: name, Result: EntryKept, Err: err})
			continue
		}
		note := fmt.Sprintf("the journal's file %q is foreign: moved aside", name)
		if err := statedir.SetAside(h.journal.folder, name); err != nil {
			note = fmt.Sprintf("the journal's file %q is foreign and can't be moved aside: %v", name, err)
		}
		report.Notes = append(report.Notes, note)
	}
}

// giveBackListed gives back the clocks of the GPUs whose UUIDs stand in a file of the
// journal, whatever its form. It is an error where one of them isn't there.
func (h *holder) giveBackListed(ctx context.Context, file string) error {
	data, err := h.journal.folder.ReadFile(file)
	switch {
	case errors.Is(err, statedir.ErrForeign), err != nil && statedir.IgnoreMissing(err) == nil:
		return nil // no epd wrote it, or it was given back meanwhile
	case err != nil:
		return fmt.Errorf("the journal's file %q: %w", file, err)
	}
	words := slices.Compact(slices.Sorted(strings.FieldsFuncSeq(strings.ToLower(string(data)),
		func(r rune) bool {
			return r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		})))
	var errs []error
	for _, c := range h.gpus.all() {
		uuid := strings.ToLower(c.uuid)
		if !slices.Contains(words, uuid) {
			continue
		}
		words = slices.DeleteFunc(words, func(word string) bool { return word == uuid })
		errs = append(errs, h.giveBackUnheld(ctx, c))
	}
	for _, word := range words {
		if nvmlUUID.MatchString(word) && !strings.EqualFold(strings.TrimSuffix(file, current), word) {
			errs = append(errs,
				fmt.Errorf("%s: %w: its clocks can't be given back before it is, and the journal's file "+
					"%q lists it", word, ErrNoGPU, file))
		}
	}
	return errors.Join(errs...)
}

// giveBackUnheld gives back whatever the card can lock, unless a run holds it.
func (h *holder) giveBackUnheld(ctx context.Context, c *managedGPU) error {
	if err := c.acquire(ctx); err != nil {
		return err
	}
	defer c.releaseTurn()
	if c.journalEntry() != nil || h.inUse(c) {
		return nil
	}
	_, err := h.giveBackUnknown(c)
	return err
}

// giveBackUnknown gives back the card's clocks, and what its baseline says is set. If another agent of this journal
// lives, it is told. The note says what stays as nobody knows who set it. The caller has the card's turn.
func (h *holder) giveBackUnknown(c *managedGPU) (note string, err error) {
	if c.ownedByTwin {
		if err := h.journal.noteReturned(c.uuid); err != nil {
			return "", err
		}
	}
	if note, err = h.base.noteUnsure(c); err != nil {
		return note, err
	}
	if err := h.giveBackAll(c); err != nil {
		return note, err
	}
	if !c.ownedByTwin && h.base.limitUnderBudget(c) == 0 {
		if err := h.base.noteReleased(c); err != nil {
			return note, err
		}
	}
	c.record(nil, true)
	return note, nil
}

// nvmlUUID is what NVML calls a GPU, in small letters.
var nvmlUUID = regexp.MustCompile(`^gpu-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// isGPU reports whether the name of an entry is meant for a GPU.
func isGPU(uuid string) bool {
	rest, ok := strings.CutPrefix(uuid, "GPU-")
	return ok && rest != ""
}
