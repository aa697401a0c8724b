package agent

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/statedir"
)

// baselines know what GPUs are at without epd.
type baselines struct {
	gpus         *GPUSet
	journal      journal
	boot, driver string // as of the holder
	// siteClocks returns the clocks that the site wants in force on a GPU; nil, or false: only the GPU's
	// baseline tells.
	siteClocks func(gpu.Identity) (dvfsmodel.Setting, bool)
	// isByHand tells that everything is given back, a power budget's limits, too.
	isByHand bool
}

// SiteInBaselines returns the site's clocks as the baselines of a journal have them, for [Options.SiteClocks]
// of an agent with another journal.
func SiteInBaselines(folder statedir.FS) func(gpu.Identity) (dvfsmodel.Setting, bool) {
	return func(id gpu.Identity) (dvfsmodel.Setting, bool) {
		b, err := journal{folder}.readBaseline(id.UUID)
		if err != nil || b == nil {
			return dvfsmodel.Setting{}, false
		}
		return dvfsmodel.Setting{Core: b.Site.Core, Mem: b.Site.Mem}, true
	}
}

// baselineOf returns what is known of a GPU without epd: as read or written last. Of another boot only the
// site's clocks count.
func (s *baselines) baselineOf(c *managedGPU) (baseline, error) {
	if known := c.ground.now().base; known != nil {
		return *known, nil
	}
	b, err := s.journal.readBaseline(c.uuid)
	if err != nil || b == nil {
		return baseline{Schema: schema, UUID: c.uuid}, err
	}
	if s.isOfOtherBoot(b.Boot) {
		b = &baseline{Schema: schema, UUID: c.uuid, Site: b.Site, Budget: b.Budget}
	}
	c.ground.note(func(g *groundState) { g.base, g.limit = b, cmp.Or(g.limit, b.Suspected) })
	return *b, nil
}

// isOfOtherBoot reports whether the machine was booted since a file of a boot was written.
func (s *baselines) isOfOtherBoot(boot string) bool {
	return boot != "" && s.boot != "" && boot != s.boot
}

// write writes a baseline of this boot down, unless it is as written last.
func (s *baselines) write(c *managedGPU, b baseline) error {
	b.Boot, b.Driver = s.boot, s.driver
	if known := c.ground.now().base; known != nil && known.isSame(&b) {
		return nil
	}
	if err := s.journal.putBaseline(&b); err != nil {
		return err
	}
	c.ground.note(func(g *groundState) { g.base = &b })
	return nil
}

// siteOf returns the clocks that the site wants in force on a GPU: by the configuration if it is known, else
// as the baseline or the GPU's entry has them.
func (s *baselines) siteOf(c *managedGPU) siteClocks {
	if s.siteClocks != nil {
		if top, known := s.siteClocks(c.identity()); known {
			return siteClocks{Core: top.Core, Mem: top.Mem}
		}
	}
	if b, err := s.baselineOf(c); err == nil && b.Site != (siteClocks{}) {
		return b.Site
	}
	if entry := c.journalEntry(); entry != nil {
		return entry.Site
	}
	return siteClocks{}
}

// noteSet has the baseline name all that an entry is about to set, and what the driver told of a GPU that
// had no entry.
func (s *baselines) noteSet(c *managedGPU, next *Entry) error {
	b, err := s.baselineOf(c)
	if err != nil {
		return err
	}
	b.set, b.Unsure = next.reported(), ""
	for control, held := range next.Controls {
		if control.TellsPrior() {
			b.Told = maps.Clone(b.Told)
			if b.Told == nil {
				b.Told = make(map[string]gpu.Value)
			}
			b.Told[control.Key()] = held.PriorValue
		}
	}
	return s.write(c, b)
}

// noteReleased has the baseline name nothing that is set.
func (s *baselines) noteReleased(c *managedGPU) error {
	b, err := s.baselineOf(c)
	if err != nil || b.set == nil && !(s.isByHand && b.Budget > 0) {
		return err
	}
	if b.set = nil; s.isByHand {
		b.Budget = 0
	}
	return s.write(c, b)
}

// readDriverValues returns what the driver tells of the controls of a GPU, by key.
func (s *baselines) readDriverValues(c *managedGPU) (map[string]gpu.Value, error) {
	told := make(map[string]gpu.Value)
	for control := range gpu.NumControls {
		if !control.TellsPrior() || !c.canSet(control) {
			continue
		}
		now, err := callRenewed(s.gpus, func() (gpu.Value, error) { return call(c, control.Prior) })
		switch {
		case isRefusal(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("read the %s of %s: %w", control, c.uuid, err)
		}
		told[control.Key()] = now
	}
	return told, nil
}

// noteDriverValues writes down what the driver tells of a GPU that has no entry. A value of unknown origin is
// said as long as it is there.
func (s *baselines) noteDriverValues(c *managedGPU) error {
	b, err := s.baselineOf(c)
	if err != nil {
		return err
	}
	told, err := s.readDriverValues(c)
	if err != nil {
		return err
	}
	if b.Unsure != "" && b.Told != nil && !maps.Equal(told, b.Told) {
		b.Unsure = ""
	}
	return s.writeDriverValues(c, b, told)
}

// writeDriverValues writes a baseline down with what the driver tells.
func (s *baselines) writeDriverValues(c *managedGPU, b baseline, told map[string]gpu.Value) error {
	c.ground.note(func(g *groundState) { b.Told, b.Suspected, g.asked = told, g.suspected(), true })
	return s.write(c, b)
}

// noteUnsure notes that a GPU's entry couldn't be understood, and that no baseline tells what is set: what
// the driver tells stays as it is.
func (s *baselines) noteUnsure(c *managedGPU) (note string, err error) {
	b, err := s.baselineOf(c)
	if err != nil || b.set != nil {
		return "", err
	}
	told, err := s.readDriverValues(c)
	if err != nil {
		return "", err
	}
	for control := range gpu.NumControls {
		now, tells := told[control.Key()]
		before, known := b.Told[control.Key()]
		if !tells || known && control.IsAt(now, before) || control.IsChoice() && now == 0 {
			continue
		}
		note = joinNotes(note, fmt.Sprintf("its %s stays at %s, as nobody knows who set it", control,
			control.Words(now)))
	}
	if note == "" {
		return "", nil
	}
	b.Unsure = note
	return note, s.writeDriverValues(c, b, told)
}

// siteValue returns the value at which a control is set to keep a GPU within its site's range: the greatest
// in its table that isn't above, or else the lowest; 0: the site wants nothing of it.
func (s *baselines) siteValue(c *managedGPU, control gpu.Control) gpu.Value {
	most := s.siteOf(c).of(control)
	if most == 0 {
		return 0
	}
	table, err := c.clocks()
	if err != nil {
		return most
	}
	return table.Highest(control, most)
}

// ceiling returns the power limit that a budget leaves a GPU, and whether a lease says so; 0: there is none.
func (s *baselines) ceiling(c *managedGPU) (watts dvfsmodel.Watt, leased bool) {
	share := c.ground.now().share
	switch {
	case s.isByHand, share.isReleased, share.others != 0, !c.canSet(gpu.PowerLimit):
		return 0, false
	case share.watts > 0 && time.Now().Before(share.ends):
		return share.watts, true
	}
	b, err := s.baselineOf(c)
	if err != nil {
		return 0, false
	}
	return b.Budget, false
}

// refusalPause is how long a limit that the driver refused isn't tried again.
const refusalPause = time.Minute

// limitUnderBudget returns the power limit at which a budget wants a GPU held; 0: what it had before is low
// enough, or there is no budget. Without a lease no limit rises. One that the driver refused stays as it is
// for a while.
func (s *baselines) limitUnderBudget(c *managedGPU) gpu.Value {
	top, leased := s.ceiling(c)
	if top <= 0 {
		return 0
	}
	v := gpu.Value(math.Floor(float64(top)))
	before, held := s.limitBefore(c)
	share := c.ground.now().share
	switch {
	case share.isRefused():
		return held
	case held > 0 && !leased:
		v = min(v, held)
	}
	if bounds := limitsOf(c); bounds.Min > 0 {
		v = max(v, gpu.Value(bounds.Min))
	}
	if before > 0 && v >= before {
		return 0
	}
	return v
}

// limitBefore returns the power limit that a GPU had before it was set, and the one that it is set to; 0 for
// what isn't known.
func (s *baselines) limitBefore(c *managedGPU) (before, held gpu.Value) {
	entry := c.journalEntry()
	h, ok := entry.held(gpu.PowerLimit)
	b, err := s.baselineOf(c)
	if entry == nil && err == nil { // its entry may be lost
		h, ok = b.set.held(gpu.PowerLimit)
	}
	if ok {
		return h.PriorValue, h.Value
	}
	return b.Told[gpu.PowerLimit.Key()], 0
}

// limitsOf returns the power limits that a card takes.
func limitsOf(c *managedGPU) gpu.PowerRange {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dev.Capability().Limits
}

// noteShare has the baseline, and the entry that there is, name the share of a GPU that is safe without a
// lease; 0: it is under no budget.
func (s *baselines) noteShare(c *managedGPU, watts dvfsmodel.Watt) error {
	b, err := s.baselineOf(c)
	if err == nil && b.Budget != watts {
		b.Budget = watts
		err = s.write(c, b)
	}
	if err != nil {
		return err
	}
	entry := c.journalEntry()
	if entry == nil || len(entry.Controls) == 0 || entry.Budget == watts {
		return nil
	}
	if s.journal.checkPresent(c.uuid) != nil {
		return nil //nolint:nilerr // the next lock finds that it isn't there
	}
	next := *entry
	next.Budget = watts
	if err := s.journal.put(&next); err != nil {
		return err
	}
	c.record(&next, c.isAtEntry())
	return nil
}

// recoverShare has a baseline that is lost name the share that an entry repeats.
func (s *baselines) recoverShare(c *managedGPU, entry *Entry) (note string, err error) {
	if b, err := s.journal.readBaseline(c.uuid); b != nil || err != nil || entry.Budget == 0 {
		return "", err
	}
	return "its baseline was lost: its share of a power budget is as its entry has it",
		s.noteShare(c, entry.Budget)
}

// limitToBudget returns what is wanted of a card with no higher power limit than a budget leaves it.
func (s *baselines) limitToBudget(c *managedGPU, want lock) lock {
	most := dvfsmodel.Watt(s.limitUnderBudget(c))
	if most > 0 && (want.Cap == 0 || want.Cap > most) {
		want.Cap = most
	}
	return want
}

// settingOrder returns all controls in the order in which they are set: a power budget's limit is first, so
// that nothing else keeps it from being set.
func (s *baselines) settingOrder(c *managedGPU) []gpu.Control {
	var order []gpu.Control
	for control := range gpu.NumControls {
		at := len(order)
		if control == gpu.PowerLimit && s.limitUnderBudget(c) > 0 {
			at = 0
		}
		order = slices.Insert(order, at, control)
	}
	return order
}
