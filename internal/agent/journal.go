package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/internal/statedir"
	"github.com/epplan/epplan/live"
)

// schema is the version of the journal's files.
const schema = 1

// Prior is what is known of a control from before it was set.
type Prior string

// NVML doesn't tell what a clock is locked at, so that it is known to have been free
// only where this agent freed it.
const (
	PriorUnlocked Prior = "unlocked"
	PriorUnknown  Prior = "unknown"
	PriorKnown    Prior = "known" // the driver told the value
)

// Held is one control that the agent may have set.
type Held struct {
	Value      gpu.Value `json:"-"`
	Prior      Prior     `json:"prior"`
	PriorValue gpu.Value `json:"prior_value,omitzero"` // where it is known
	// Was is the value before Value of a control of which the driver tells; 0: none. After a crash it may
	// still be in force.
	Was   gpu.Value `json:"was,omitzero"`
	Since time.Time `json:"since"` // when it was first set
	// When it was set to Value. Later changes of a clock for the same run aren't written down.
	At  time.Time `json:"at"`
	Run string    `json:"run"`
	Job uint32    `json:"job"`
}

// Entry is the journal's file of one GPU. While it is there, the controls named
// in it may be set.
type Entry struct {
	Schema int    `json:"schema"`
	UUID   string `json:"uuid"`
	Bus    string `json:"bus"`
	Model  string `json:"model"`
	Boot   string `json:"boot_id"`
	Driver string `json:"driver"`
	// Site repeats the site's clocks of the baseline.
	Site     siteClocks           `json:"site,omitzero"`
	Controls map[gpu.Control]Held `json:"-"`
}

// held is what the entry says of a control.
func (e *Entry) held(control gpu.Control) (Held, bool) {
	if e == nil {
		return Held{}, false
	}
	h, ok := e.Controls[control]
	return h, ok
}

// with is the entry after the controls of a setting were set, too. What was
// there before they were first set is kept, and asked for where it isn't known yet. Above
// that none is set: no value at all, which leaves it there, counts as the greatest.
func (e *Entry) with(
	want dvfsmodel.Setting, at time.Time, prior func(gpu.Control) (Prior, gpu.Value, error), run *live.Run,
) (*Entry, error) {
	next := *e
	next.Controls = make(map[gpu.Control]Held, gpu.NumControls)
	maps.Copy(next.Controls, e.Controls)
	for control := range gpu.NumControls {
		v := control.Of(want)
		if v == 0 {
			continue
		}
		h, held := e.held(control)
		if !held {
			var err error
			if h.Prior, h.PriorValue, err = prior(control); err != nil {
				return nil, err
			}
			h.Since = at
		}
		if h.Prior == PriorKnown && control.IsAbove(v, h.PriorValue) {
			return nil, fmt.Errorf("%w: %s %v %s, it was at %v before", ErrSetting, control, float64(v),
				control.Unit(), float64(h.PriorValue))
		}
		if held && control.TellsPrior() && h.Value != v {
			h.Was = h.Value
		}
		h.Value, h.At, h.Run, h.Job = v, at, run.ID, run.Job
		next.Controls[control] = h
	}
	return &next, nil
}

// hasExactly reports whether the entry has exactly the controls that a setting sets, for
// this run. Then it need not be written again when clocks only change their values:
// a restart gives them back whatever these are. A power limit is given back only if it is as written.
func (e *Entry) hasExactly(want dvfsmodel.Setting, run *live.Run) bool {
	for control := range gpu.NumControls {
		h, held := e.held(control)
		v := control.Of(want)
		if held != (v != 0) || held && (h.Run != run.ID || control.TellsPrior() && h.Value != v) {
			return false
		}
	}
	return true
}

// without is the entry less one control.
func (e *Entry) without(control gpu.Control) *Entry {
	next := *e
	next.Controls = maps.Clone(e.Controls)
	delete(next.Controls, control)
	return &next
}

// Setting is what the entry's controls are set to.
func (e *Entry) Setting() dvfsmodel.Setting {
	var s dvfsmodel.Setting
	for control, h := range e.Controls {
		control.Put(&s, h.Value)
	}
	return s
}

// entryFile is an entry as its file has it: the controls are "domains", by their keys.
type entryFile struct {
	Entry
	Domains map[string]heldFile `json:"domains"`
}

// heldFile is a control in the file. Clocks, of which alone there were journals at first,
// have their value under a key of their own.
type heldFile struct {
	LockedMHz gpu.Value `json:"locked_mhz,omitzero"`
	Value     gpu.Value `json:"value,omitzero"` // of other controls, in their units
	Held
}

// value is where the file has a control's value.
func (h *heldFile) value(control gpu.Control) *gpu.Value {
	if control.Unit() == "MHz" {
		return &h.LockedMHz
	}
	return &h.Value
}

// encode writes the journal's file of a GPU.
func (e *Entry) encode() ([]byte, error) {
	file := entryFile{Entry: *e, Domains: make(map[string]heldFile, len(e.Controls))}
	for control, h := range e.Controls {
		one := heldFile{Held: h}
		*one.value(control) = h.Value
		file.Domains[control.Key()] = one
	}
	data, err := json.Marshal(file)
	if err != nil {
		return nil, fmt.Errorf("journal of %s: %w", e.UUID, err)
	}
	return data, nil
}

// decodeEntry reads the journal's file of a GPU. Fields that aren't known are passed over; a control
// that isn't makes the file foreign, as what it was before can't be given back.
func decodeEntry(uuid string, data []byte) (*Entry, error) {
	var file entryFile
	if err := decode(data, &file); err != nil {
		return nil, fmt.Errorf("journal of %s: %w: %w", uuid, statedir.ErrForeign, err)
	}
	e := &file.Entry
	switch {
	case e.Schema != schema:
		return nil, fmt.Errorf("journal of %s: %w: schema %d", uuid, statedir.ErrForeign, e.Schema)
	case e.UUID != uuid:
		return nil, fmt.Errorf("journal of %s: %w: names another GPU", uuid, statedir.ErrForeign)
	}
	e.Controls = make(map[gpu.Control]Held, len(file.Domains))
	for control := range gpu.NumControls {
		one, ok := file.Domains[control.Key()]
		if !ok {
			continue
		}
		h := one.Held
		h.Value = *one.value(control)
		if !h.isValid(control) || h.Value != max(one.LockedMHz, one.Value) {
			return nil, fmt.Errorf("journal of %s: %w: %s", uuid, statedir.ErrForeign, control)
		}
		e.Controls[control] = h
	}
	if len(e.Controls) == 0 || len(e.Controls) != len(file.Domains) {
		return nil, fmt.Errorf("journal of %s: %w: domains", uuid, statedir.ErrForeign)
	}
	return e, nil
}

// isValid reports whether an agent can have written it: of what the driver doesn't tell, nothing is known from
// before.
func (h *Held) isValid(control gpu.Control) bool {
	switch h.Prior {
	case PriorUnlocked, PriorUnknown:
		return !control.TellsPrior() && h.Value > 0 && h.PriorValue == 0 && h.Was == 0
	case PriorKnown:
		return control.TellsPrior() && h.Value > 0 && h.Was >= 0 && control.IsPrior(h.PriorValue)
	}
	return false
}

// journal is the folder of entries.
type journal struct{ folder FS }

// put writes an entry, durably when it returns without an error.
func (j journal) put(e *Entry) error {
	data, err := e.encode()
	if err != nil {
		return err
	}
	if err := putFile(j.folder, e.UUID+current, data); err != nil {
		return fmt.Errorf("journal of %s: %w", e.UUID, err)
	}
	return nil
}

// retire removes a GPU's entry.
func (j journal) retire(uuid string) error {
	if err := retireFile(j.folder, uuid); err != nil {
		return fmt.Errorf("clear the journal of %s: %w", uuid, err)
	}
	return nil
}

// read reads a GPU's entry. An error that is statedir.ErrForeign says that there is one
// which can't be read.
func (j journal) read(uuid string) (*Entry, error) {
	data, err := j.folder.ReadFile(uuid + current)
	if err != nil {
		return nil, fmt.Errorf("journal of %s: %w", uuid, err)
	}
	return decodeEntry(uuid, data)
}

// errReturned tells that somebody gave a GPU's clocks back beside the agent.
var errReturned = errors.New("another process gave its clocks back")

// checkPresent reports whether the journal still has a GPU's entry, as it must while a clock
// may be locked: another process may have removed it, or left word that it gave the
// clocks back.
func (j journal) checkPresent(uuid string) error {
	switch _, err := j.folder.ReadFile(uuid + returnedSuffix); {
	case err == nil:
		return fmt.Errorf("%s: %w", uuid, errReturned)
	case ignoreMissing(err) != nil:
		return fmt.Errorf("journal of %s: %w", uuid, err)
	}
	switch _, err := j.read(uuid); {
	case err != nil && ignoreMissing(err) == nil:
		return fmt.Errorf("%s: %w, and removed their entry from the journal", uuid, errReturned)
	case err != nil:
		return err
	}
	return nil
}

// noteReturned tells the agent whose journal this is that a GPU's clocks are given back.
func (j journal) noteReturned(uuid string) error {
	f, err := j.folder.Create(uuid + returnedSuffix)
	if err == nil {
		err = errors.Join(f.Close(), j.folder.Sync())
	}
	if err != nil {
		return fmt.Errorf("journal of %s: %w", uuid, err)
	}
	return nil
}

// returnedGPUs are the GPUs whose clocks other processes gave back.
func (j journal) returnedGPUs() ([]string, error) {
	all, err := j.folder.Names()
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	var uuids []string
	for _, name := range all {
		if uuid, ok := strings.CutSuffix(name, returnedSuffix); ok {
			uuids = append(uuids, uuid)
		}
	}
	return uuids, nil
}

// removeReturned removes such a word.
func (j journal) removeReturned(uuid string) error {
	if err := ignoreMissing(j.folder.Remove(uuid + returnedSuffix)); err != nil {
		return fmt.Errorf("journal of %s: %w", uuid, err)
	}
	return nil
}
