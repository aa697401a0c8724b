package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/internal/statedir"
)

// baselineSuffix ends the names of baselines, which lie beside the entries of their GPUs.
const baselineSuffix = ".baseline"

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
	return control.Of(dvfsmodel.Setting{Core: s.Core, Mem: s.Mem})
}

// readBaseline reads the baseline of a GPU. It returns nil if there is none or it isn't epd's.
func (j journal) readBaseline(uuid string) (*baseline, error) {
	data, err := j.folder.ReadFile(uuid + baselineSuffix)
	switch {
	case errors.Is(err, statedir.ErrForeign), err != nil && ignoreMissing(err) == nil:
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, fmt.Errorf("baseline of %s: %w", uuid, err)
	}
	b := new(baseline)
	if decode(data, b) != nil || b.Schema != schema || b.UUID != uuid || !(b.Site.Core >= 0) || !(b.Site.Mem >= 0) {
		return nil, nil //nolint:nilnil // it says nothing
	}
	if b.Set != nil {
		if b.set, err = decodeEntry(uuid, b.Set); err != nil {
			return nil, nil //nolint:nilnil,nilerr // it says nothing
		}
	}
	return b, nil
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
		err = putFile(j.folder, b.UUID+baselineSuffix, data)
	}
	if err != nil {
		return fmt.Errorf("baseline of %s: %w", b.UUID, err)
	}
	return nil
}

// told returns the entry's controls of which the driver tells, nil if it has none.
func (e *Entry) told() *Entry {
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

// isOurs reports whether a control is at what the agent set it to. Between the entry of a new value and its
// setting it is still at the value before.
func (h *Held) isOurs(control gpu.Control, now gpu.Value) bool {
	return control.IsAt(now, h.Value) || h.Was != 0 && control.IsAt(now, h.Was)
}

// baseline returns what is known of a GPU without epd: as read or written last. Of another boot only the
// site's clocks count.
func (h *holder) baseline(c *managedGPU) (baseline, error) {
	if known := c.ground.baseline(); known != nil {
		return *known, nil
	}
	b, err := h.journal.readBaseline(c.uuid)
	if err != nil || b == nil {
		return baseline{Schema: schema, UUID: c.uuid}, err
	}
	if b.Boot != "" && h.boot != "" && b.Boot != h.boot {
		b = &baseline{Schema: schema, UUID: c.uuid, Site: b.Site}
	}
	c.ground.setBaseline(b)
	return *b, nil
}

// writeBaseline writes a baseline of this boot down, unless it is as written last.
func (h *holder) writeBaseline(c *managedGPU, b baseline) error {
	b.Boot, b.Driver = h.boot, h.driver
	if known := c.ground.baseline(); known != nil && known.isSame(&b) {
		return nil
	}
	if err := h.journal.putBaseline(&b); err != nil {
		return err
	}
	c.ground.setBaseline(&b)
	return nil
}

// isSame reports whether two baselines say the same.
func (b *baseline) isSame(other *baseline) bool {
	same := func(x, y *Entry) bool {
		return x == y || x != nil && y != nil && maps.Equal(x.Controls, y.Controls)
	}
	return b.Boot == other.Boot && b.Driver == other.Driver && b.Site == other.Site && b.Unsure == other.Unsure &&
		b.Suspected == other.Suspected &&
		maps.Equal(b.Told, other.Told) && same(b.set, other.set)
}

// site returns the clocks that the site wants in force on a GPU: by the configuration if it is known, else as
// the baseline or the GPU's entry has them.
func (h *holder) site(c *managedGPU) siteClocks {
	if h.siteClocks != nil {
		if s, known := h.siteClocks(c.identity()); known {
			return siteClocks{Core: s.Core, Mem: s.Mem}
		}
	}
	if b, err := h.baseline(c); err == nil && b.Site != (siteClocks{}) {
		return b.Site
	}
	if entry := c.journalled(); entry != nil {
		return entry.Site
	}
	return siteClocks{}
}

// noteSet has the baseline name all that an entry is about to set, and what the driver tells of a GPU that had
// no entry.
func (h *holder) noteSet(c *managedGPU, next *Entry) error {
	b, err := h.baseline(c)
	if err != nil {
		return err
	}
	b.set, b.Unsure = next.told(), ""
	for control, held := range next.Controls {
		if control.TellsPrior() {
			b.Told = maps.Clone(b.Told)
			if b.Told == nil {
				b.Told = make(map[string]gpu.Value)
			}
			b.Told[control.Key()] = held.PriorValue
		}
	}
	return h.writeBaseline(c, b)
}

// noteReleased has the baseline name nothing that is set.
func (h *holder) noteReleased(c *managedGPU) error {
	b, err := h.baseline(c)
	if err != nil || b.set == nil {
		return err
	}
	b.set = nil
	return h.writeBaseline(c, b)
}

// settle brings a GPU without an entry to what the site wants of it, and writes its baseline down. What a
// baseline names that no entry does is given back first: the entry is lost. The caller has the GPU's turn.
func (h *holder) settle(c *managedGPU) error {
	if c.journalled() != nil {
		return nil
	}
	if h.isSettled(c) {
		return nil
	}
	if err := h.giveBackLost(c); err != nil {
		return err
	}
	if err := h.noteTold(c); err != nil {
		return err
	}
	return h.setSite(c)
}

// isSettled reports whether there is nothing to do for a GPU without an entry.
func (h *holder) isSettled(c *managedGPU) bool {
	b, want := c.ground.baseline(), h.site(c)
	return b != nil && c.ground.isAsked() && b.set == nil && b.Site == want && c.ground.site() == want &&
		b.Suspected == c.ground.suspected()
}

// giveBackLost gives back what a baseline names of a GPU whose entry is gone. The caller has the GPU's turn.
func (h *holder) giveBackLost(c *managedGPU) error {
	b, err := h.baseline(c)
	if c.journalled() != nil || err != nil || b.set == nil {
		return err
	}
	if err := h.giveBackAll(c); err != nil {
		return err
	}
	return h.noteReleased(c)
}

// noteTold writes down what the driver tells of a GPU that has no entry. A value of unknown origin is said for as
// long as it is there.
func (h *holder) noteTold(c *managedGPU) error {
	b, err := h.baseline(c)
	if err != nil {
		return err
	}
	told := make(map[string]gpu.Value)
	for control := range gpu.NumControls {
		if !control.TellsPrior() || !c.can(control) {
			continue
		}
		now, err := callRenewed(h.gpus, func() (gpu.Value, error) { return call(c, control.Prior) })
		switch {
		case isRefusal(err):
			continue
		case err != nil:
			return fmt.Errorf("read the %s of %s: %w", control, c.uuid, err)
		}
		told[control.Key()] = now
	}
	if b.Unsure != "" && b.Told != nil && !maps.Equal(told, b.Told) {
		b.Unsure = ""
	}
	b.Told, b.Suspected = told, c.ground.suspected()
	c.ground.setAsked()
	return h.writeBaseline(c, b)
}

// noteUnsure notes that a GPU's entry couldn't be understood, and that no baseline tells what is set: what
// the driver tells stays as it is.
func (h *holder) noteUnsure(c *managedGPU) (string, error) {
	b, err := h.baseline(c)
	if err != nil || b.set != nil {
		return "", err
	}
	words := ""
	for control := range gpu.NumControls {
		if !control.TellsPrior() || !c.can(control) {
			continue
		}
		now, err := callRenewed(h.gpus, func() (gpu.Value, error) { return call(c, control.Prior) })
		if before, known := b.Told[control.Key()]; err != nil || known && control.IsAt(now, before) {
			continue
		}
		if control.IsChoice() && now == 0 {
			continue
		}
		words = joinNotes(words, fmt.Sprintf("its %s stays at %s, as nobody knows who set it", control, control.Words(now)))
	}
	if words == "" {
		return "", nil
	}
	if err := h.noteTold(c); err != nil {
		return words, err
	}
	b, err = h.baseline(c)
	if err != nil {
		return words, err
	}
	b.Unsure = words
	return words, h.writeBaseline(c, b)
}

// setSite sets the site's clocks on a GPU on which nothing else is set, and releases those that the site doesn't
// want any more. The baseline names them before.
func (h *holder) setSite(c *managedGPU) error {
	want := h.site(c)
	b, err := h.baseline(c)
	if err != nil {
		return err
	}
	before := b.Site
	if want == before && c.ground.site() == want {
		return nil
	}
	b.Site = siteClocks{Core: cmp.Or(want.Core, before.Core), Mem: cmp.Or(want.Mem, before.Mem)}
	if err := h.writeBaseline(c, b); err != nil {
		return err
	}
	for control := range gpu.NumControls {
		if want.of(control) == 0 && before.of(control) == 0 || !c.can(control) {
			continue
		}
		if _, err := h.giveBack(c, control, Held{}); err != nil {
			return err
		}
	}
	c.ground.setSite(want)
	b.Site = want
	return h.writeBaseline(c, b)
}

// siteValue returns the value at which a control is set to keep a GPU within its site's range: the greatest
// in its table that isn't above; 0: the site wants nothing of it, or the table has nothing below.
func (h *holder) siteValue(c *managedGPU, control gpu.Control) gpu.Value {
	most := h.site(c).of(control)
	if most == 0 {
		return 0
	}
	table, err := c.clocks()
	if err != nil {
		return most
	}
	return table.Highest(control, most)
}

// ground is what is known of a GPU without runs.
type ground struct {
	mu      sync.Mutex
	base    *baseline     // as read or written last; nil: neither yet
	asked   bool          // the driver told, since the GPU's handle was opened
	limit   dvfsmodel.MHz // the clock that the GPU never exceeds, of this or a former agent; 0: none
	siteSet siteClocks    // the site's clocks that were set with the GPU's handle
}

func (g *ground) baseline() *baseline {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.base
}

func (g *ground) setBaseline(b *baseline) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.base == nil {
		g.limit = b.Suspected
	}
	g.base = b
}

// suspect notes which clock the GPU never exceeds; 0: none is known. What is on file is kept until a higher
// clock is seen.
func (g *ground) suspect(limit dvfsmodel.MHz, seen dvfsmodel.MHz) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if limit > 0 || seen > g.limit {
		g.limit = limit
	}
}

// suspected returns the clock that the GPU never exceeds although the site told of no limit, 0 for none.
func (g *ground) suspected() dvfsmodel.MHz {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.siteSet.Core > 0 {
		return 0
	}
	return g.limit
}

func (g *ground) site() siteClocks {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.siteSet
}

func (g *ground) setSite(s siteClocks) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.siteSet = s
}

// reopened notes that the GPU has a new handle: its driver may have been reloaded.
func (g *ground) reopened() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.siteSet, g.asked = siteClocks{}, false
}

func (g *ground) setAsked() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = true
}

func (g *ground) isAsked() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked
}

// unsure returns which value was found of which nobody knows who set it.
func (g *ground) unsure() string {
	if b := g.baseline(); b != nil {
		return b.Unsure
	}
	return ""
}
