package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/statedir"
)

// ErrSetting tells that the GPU can't run at the setting of a run, or must not. It is one of [Agent.Apply].
var ErrSetting = errors.New("clocks that this GPU may not be locked at")

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
	Value      gpu.Value `json:"value"`
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
	// Site and Budget repeat those of the baseline.
	Site     siteClocks           `json:"site,omitzero"`
	Budget   dvfsmodel.Watt       `json:"budget_w,omitzero"`
	Controls map[gpu.Control]Held `json:"domains"`
}

// held returns what the entry says of a control.
func (e *Entry) held(control gpu.Control) (Held, bool) {
	if e == nil {
		return Held{}, false
	}
	h, ok := e.Controls[control]
	return h, ok
}

// with returns the entry after the controls of a setting were set, too. What was
// there before they were first set is kept, and asked for where it isn't known yet. Above
// that none is set: no value at all, which leaves it there, counts as the greatest.
func (e *Entry) with(
	want dvfsmodel.Setting, at time.Time, prior func(gpu.Control) (Prior, gpu.Value, error), run *live.Run,
) (*Entry, error) {
	next := *e
	next.Controls = make(map[gpu.Control]Held, gpu.NumControls)
	maps.Copy(next.Controls, e.Controls)
	for control := range gpu.NumControls {
		v := control.ValueIn(want)
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
		v := control.ValueIn(want)
		if held != (v != 0) || held && (h.Run != run.ID || control.TellsPrior() && h.Value != v) {
			return false
		}
	}
	return true
}

// without returns the entry less one control.
func (e *Entry) without(control gpu.Control) *Entry {
	next := *e
	next.Controls = maps.Clone(e.Controls)
	delete(next.Controls, control)
	return &next
}

// reported returns the entry's controls of which the driver tells, nil if it has none.
func (e *Entry) reported() *Entry {
	if e == nil {
		return nil
	}
	next := *e
	next.Controls = make(map[gpu.Control]Held)
	for control, held := range e.Controls {
		if control.TellsPrior() {
			next.Controls[control] = held
		}
	}
	if len(next.Controls) == 0 {
		return nil
	}
	return &next
}

// Setting returns what the entry's controls are set to.
func (e *Entry) Setting() dvfsmodel.Setting {
	var s dvfsmodel.Setting
	for control, h := range e.Controls {
		control.SetIn(&s, h.Value)
	}
	return s
}

// encode writes the journal's file of a GPU.
func (e *Entry) encode() ([]byte, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("journal of %s: %w", e.UUID, err)
	}
	return data, nil
}

// decodeEntry reads the journal's file of a GPU. Fields that aren't known are passed over; a control
// that isn't makes the file foreign, as what it was before can't be given back.
func decodeEntry(uuid string, data []byte) (*Entry, error) {
	e := new(Entry)
	err := decodeJSON(data, e)
	switch {
	case err != nil:
	case e.Schema != schema:
		err = fmt.Errorf("schema %d", e.Schema)
	case e.UUID != uuid:
		err = errors.New("names another GPU")
	case len(e.Controls) == 0:
		err = errors.New("no controls")
	}
	if err != nil {
		return nil, fmt.Errorf("journal of %s: %w: %w", uuid, statedir.ErrForeign, err)
	}
	for control, h := range e.Controls {
		if !h.isValid(control) {
			return nil, fmt.Errorf("journal of %s: %w: %s", uuid, statedir.ErrForeign, control)
		}
	}
	return e, nil
}

// isValid reports whether an agent can have written it: of what the driver doesn't tell, nothing is known
// from before.
func (h *Held) isValid(control gpu.Control) bool {
	switch h.Prior {
	case PriorUnlocked, PriorUnknown:
		return !control.TellsPrior() && h.Value > 0 && h.PriorValue == 0 && h.Was == 0
	case PriorKnown:
		return control.TellsPrior() && h.Value > 0 && h.Was >= 0 && control.IsPrior(h.PriorValue)
	}
	return false
}

// IsOurs reports whether a control is at what the agent set it to. Between the entry of a new value and its
// setting it is still at the value before.
func (h *Held) IsOurs(control gpu.Control, now gpu.Value) bool {
	return control.IsAt(now, h.Value) || h.Was != 0 && control.IsAt(now, h.Was)
}

// journal is the folder of entries.
type journal struct{ folder statedir.FS }

// put writes an entry, durably when it returns without an error.
func (j journal) put(e *Entry) error {
	data, err := e.encode()
	if err != nil {
		return err
	}
	if err := writeFile(j.folder, e.UUID+current, data); err != nil {
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
	case statedir.IgnoreMissing(err) != nil:
		return fmt.Errorf("journal of %s: %w", uuid, err)
	}
	switch _, err := j.read(uuid); {
	case err != nil && statedir.IgnoreMissing(err) == nil:
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

// returnedGPUs returns the GPUs whose clocks other processes gave back.
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
	if err := statedir.IgnoreMissing(j.folder.Remove(uuid + returnedSuffix)); err != nil {
		return fmt.Errorf("journal of %s: %w", uuid, err)
	}
	return nil
}

// baseline holds what a GPU is at without epd, in a file of its own: an entry that is lost or can't be read
// never means that a power limit is raised above what the site has. It counts for one boot of the machine,
// except for Site.
type baseline struct {
	Schema int    `json:"schema"`
	UUID   string `json:"uuid"`
	Boot   string `json:"boot_id"`
	Driver string `json:"driver"`
	// Told is what the driver told of each control, by key, when the GPU was last seen without an entry.
	Told map[string]gpu.Value `json:"told"`
	// Set repeats the entry's controls of which the driver tells; null: none is set.
	Set json.RawMessage `json:"set,omitempty"`
	// Site is the range of clocks that the site wants in force when no run wants another one. It stays
	// across boots: it is the administrator's word.
	Site siteClocks `json:"site,omitzero"`
	// Budget is the power limit that a power budget leaves the GPU without a lease; 0: it is under none. It
	// stays across boots.
	Budget dvfsmodel.Watt `json:"budget_w,omitzero"`
	// Suspected is the clock that the GPU never exceeded at work although the site told of no limit; 0: none.
	Suspected dvfsmodel.MHz `json:"suspected_core_mhz,omitzero"`
	// Unsure says which value was found of which nobody knows who set it; "" if none was.
	Unsure string `json:"unsure,omitempty"`

	set *Entry // Set, decoded
}

// siteClocks are the highest clocks that a site allows on a GPU; 0: any.
type siteClocks struct {
	Core dvfsmodel.MHz `json:"core_max_mhz,omitzero"`
	Mem  dvfsmodel.MHz `json:"mem_max_mhz,omitzero"`
}

// of returns the highest value of a control that the site allows; 0: any.
func (s siteClocks) of(control gpu.Control) gpu.Value {
	return control.ValueIn(dvfsmodel.Setting{Core: s.Core, Mem: s.Mem})
}

// readBaseline reads the baseline of a GPU. It returns nil if there is none or it isn't epd's.
func (j journal) readBaseline(uuid string) (*baseline, error) {
	data, err := j.folder.ReadFile(uuid + baselineSuffix)
	switch {
	case errors.Is(err, statedir.ErrForeign), err != nil && statedir.IgnoreMissing(err) == nil:
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, fmt.Errorf("baseline of %s: %w", uuid, err)
	}
	b := new(baseline)
	if decodeJSON(data, b) != nil || !b.isOf(uuid) {
		return nil, nil //nolint:nilnil,nilerr // it says nothing
	}
	return b, nil
}

// isOf reports whether an agent can have written it of a GPU.
func (b *baseline) isOf(uuid string) bool {
	if b.Schema != schema || b.UUID != uuid || !(b.Site.Core >= 0) || !(b.Site.Mem >= 0) || !(b.Budget >= 0) {
		return false
	}
	if b.Set == nil {
		return true
	}
	var err error
	b.set, err = decodeEntry(uuid, b.Set)
	return err == nil
}

// putBaseline writes the baseline of a GPU, durably when it returns without an error.
func (j journal) putBaseline(b *baseline) error {
	b.Set = nil
	if b.set != nil {
		data, err := b.set.encode()
		if err != nil {
			return err
		}
		b.Set = data
	}
	data, err := json.Marshal(b)
	if err == nil {
		err = writeFile(j.folder, b.UUID+baselineSuffix, data)
	}
	if err != nil {
		return fmt.Errorf("baseline of %s: %w", b.UUID, err)
	}
	return nil
}

// isSame reports whether two baselines say the same.
func (b *baseline) isSame(other *baseline) bool {
	same := func(x, y *Entry) bool {
		return x == y || x != nil && y != nil && maps.Equal(x.Controls, y.Controls)
	}
	return b.Boot == other.Boot && b.Driver == other.Driver && b.Site == other.Site &&
		b.Budget == other.Budget && b.Unsure == other.Unsure && b.Suspected == other.Suspected &&
		maps.Equal(b.Told, other.Told) &&
		same(b.set, other.set)
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
