package gpu

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
)

// milliwatt is power as NVML tells it: whole milliwatts.
type milliwatt uint64

func inMilliwatt(p dvfsmodel.Watt) milliwatt {
	if !(p > 0) {
		return 0
	}
	return milliwatt(math.Round(min(float64(p), maxWatt) * 1000))
}

func (p milliwatt) watt() dvfsmodel.Watt { return dvfsmodel.Watt(p) / 1000 }

// maxWatt bounds what a simulated GPU draws, so that no sum overflows.
const maxWatt = 1e6

// picojoules in a millijoule: a milliwatt over a nanosecond is a picojoule.
const picoPerMilli = 1e9

// Work is a kernel's worth of work that a simulated GPU does at the speed and
// power of a DVFS model.
type Work struct {
	PID int
	// Model takes Model.Time seconds of a GPU that does nothing else.
	Model dvfsmodel.Params
	// Mem is the device memory that it holds, in bytes.
	Mem int64
	// Done is the part of it that is done, 0..1.
	Done float64
	// Phases are gone through again and again until it is done; none: it never
	// waits. Those of the GPU's load are taken where there are none.
	Phases []Phase `json:",omitempty"`

	// How far it is in its phases, and what it came to so far.
	Phase  int       `json:",omitempty"`
	Waits  bool      `json:",omitempty"` // it waits for the host
	Spent  float64   `json:",omitempty"` // seconds of the part it is in, at default clocks
	Waited float64   `json:",omitempty"` // seconds of the parts before
	Energy float64   `json:",omitempty"` // joules of the GPU
	Began  time.Time `json:",omitzero"`
}

// simState is what a simulated GPU remembers. Nothing changes between Since
// and now but by the clock: what is true now follows from it ([simState.advanceTo]),
// so that looking more often changes no sum.
type simState struct {
	UUID       string
	Set        controlValues  `json:",omitzero"`
	Fixed      ControlSet     `json:",omitzero"` // those of Set that don't fall below it
	Limit      dvfsmodel.Watt // of power, unless one is in Set
	Sharing    Sharing
	Lost       bool
	Missing    bool   `json:",omitempty"` // from the machine's bus
	Minor      *int   `json:",omitempty"` // since the machine was booted anew; nil: as the spec says
	Generation uint64 // how often the driver was loaded
	Since      time.Time
	Milli      uint64 // energy at Since, millijoules
	Pico       uint64 // and picojoules beyond them
	// Stuck is what the counter shows for ever, in millijoules; nil: what was used.
	Stuck *uint64 `json:",omitempty"`
	// Unlimited tells that the GPU doesn't keep its power limit.
	Unlimited bool           `json:",omitempty"`
	Work      []Work         // as of Since
	Ended     []FinishedWork `json:",omitempty"` // the last ones
	// Writes are when controls were last set or given back.
	Writes []time.Time `json:",omitempty"`

	// The utilisation that the driver shows, and how long the GPU was in use in
	// the sample period of Since.
	Shown float64       `json:",omitempty"`
	Used  time.Duration `json:",omitempty"`
}

// controlValues are the values that controls are set to. In files they are by the
// controls' keys, without those that aren't set.
type controlValues [NumControls]Value

// MarshalJSON writes them by key.
func (v controlValues) MarshalJSON() ([]byte, error) {
	byKey := make(map[Control]Value)
	for c := range NumControls {
		if v[c] != 0 {
			byKey[c] = v[c]
		}
	}
	return json.Marshal(byKey) //nolint:wrapcheck // the encoder's own
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (v *controlValues) UnmarshalJSON(data []byte) error {
	var byKey map[Control]Value
	if err := json.Unmarshal(data, &byKey); err != nil {
		return err //nolint:wrapcheck // the decoder's own
	}
	*v = controlValues{}
	for c, value := range byKey {
		v[c] = value
	}
	return nil
}

// operatingPoint is how a simulated GPU runs at a moment.
type operatingPoint struct {
	core, mem dvfsmodel.MHz
	setting   dvfsmodel.Scaling
	power     milliwatt
	throttle  Throttle
	busy      bool // something runs
}

// operation follows from the locks, the work and the power limit. Work that
// shares the GPU takes turns in equal parts.
func (s *simState) operation(m *simModel) operatingPoint {
	core, mem := m.def.Core, m.def.Mem
	var o operatingPoint
	if f := s.Set[CoreClock]; f > 0 {
		core, o.throttle = dvfsmodel.MHz(f), o.throttle|ThrottleLocked
	}
	if f := s.Set[MemClock]; f > 0 {
		mem, o.throttle = dvfsmodel.MHz(f), o.throttle|ThrottleLocked
	}
	core = min(core, s.profiles().ceiling(m.def.Core))
	idle := len(s.Work) == 0 && m.baseLoad == nil
	if idle {
		if s.Set[CoreClock] == 0 || !s.Fixed.Has(CoreClock) {
			core = 0 // the lowest there is
		}
		o.throttle |= ThrottleIdle
	}
	near := m.table.Nearest(core, mem)
	o.core, o.mem, o.setting, o.power = near.Core, near.Mem, near.Scaling, m.idle
	switch {
	case idle:
		return o
	case len(s.Work) > 0 && s.activeWork() == 0, s.isIdleByLoad(m):
		o.throttle |= ThrottleIdle
		o.power = s.waitPower(m, o.setting)
		return o
	}
	o.busy = true
	o.power = s.busyPower(m, o.setting)
	for !s.Unlimited && o.power.watt() > s.limitInForce() {
		next, ok := m.nextLowerCore(o.core, o.mem)
		if !ok {
			break
		}
		o.throttle |= ThrottlePowerCap
		o.core, o.setting = next.Core, next.Scaling
		o.power = s.busyPower(m, o.setting)
	}
	return o
}

// limitInForce returns the power limit that the GPU keeps.
func (s *simState) limitInForce() dvfsmodel.Watt {
	if set := s.Set[PowerLimit]; set > 0 {
		return dvfsmodel.Watt(set)
	}
	return s.Limit
}

func (s *simState) busyPower(m *simModel, at dvfsmodel.Scaling) milliwatt {
	if len(s.Work) == 0 {
		return inMilliwatt(m.baseLoad.Power(at))
	}
	var sum dvfsmodel.Watt
	for i := range s.Work {
		if !s.Work[i].Waits {
			sum += s.Work[i].Model.Power(at)
		}
	}
	return inMilliwatt(sum / dvfsmodel.Watt(s.activeWork()))
}

// nextLowerCore returns the next lower core clock at a memory clock.
func (m *simModel) nextLowerCore(core, mem dvfsmodel.MHz) (dvfsmodel.Point, bool) {
	list := m.clocks.Core[slices.Index(m.clocks.Mem, mem)]
	i := slices.Index(list, core) + 1
	if i == len(list) {
		return dvfsmodel.Point{}, false
	}
	return m.table.Nearest(list[i], mem), true
}

// maxStep bounds a step of the clock, so that no duration overflows.
const maxStep = 100 * 365 * 24 * time.Hour

// advanceTo brings the state forward to now, through each end of work and of parts
// of it on the way.
func (s *simState) advanceTo(m *simModel, now time.Time) {
	s.skipCycles(m, min(now.Sub(s.Since), maxStep))
	for {
		elapsed := min(now.Sub(s.Since), maxStep)
		if elapsed <= 0 {
			return
		}
		o := s.operation(m)
		next, i, done := s.nextEvent(m, o)
		if next > elapsed {
			s.advance(m, elapsed, o)
			return
		}
		s.advance(m, next, o)
		switch {
		case i < 0: // the load that never ends begins a part
		case done:
			s.finishWork(m, &s.Work[i])
			s.Work = slices.Delete(slices.Clone(s.Work), i, i+1)
		default:
			s.Work[i].beginNextPart() // pass made a copy
		}
	}
}

// nextEvent returns how long it takes until the first of the running work ends, or
// a part of it does, and its index; -1 where none does.
func (s *simState) nextEvent(m *simModel, o operatingPoint) (after time.Duration, index int, done bool) {
	index = -1
	least := maxStep.Seconds()
	if len(s.Work) == 0 && m.baseLoad != nil && len(m.load.phases) > 0 {
		_, next := m.load.isAtWork(s.Since)
		return next, index, false
	}
	for i := range s.Work {
		w := &s.Work[i]
		if w.Waits {
			if left := (w.partTime() - w.Spent) / m.speed; left < least {
				least, index, done = max(0, left), i, false
			}
			continue
		}
		whole := s.workTime(m, i, o)
		left, ends := (1-w.Done)*whole, true
		if len(w.Phases) > 0 {
			if part := (w.partTime() - w.Spent) * whole / w.Model.Time(1, 1); part < left-10*nanosecond {
				left, ends = part, false
			}
		}
		if left < least {
			least, index, done = max(0, left), i, ends
		}
	}
	return time.Duration(math.Ceil(least * 1e9)), index, done
}

// nanosecond is within what the ends of work are rounded to.
const nanosecond = 1e-9

// workTime returns how long the whole of a work takes at the clocks and the company
// of now, without the parts in which it waits.
func (s *simState) workTime(m *simModel, i int, o operatingPoint) float64 {
	return s.Work[i].Model.Time(o.setting.Fc, o.setting.Fm) * float64(s.activeWork()) / m.speed
}

// bookEnergy books energy.
func (s *simState) bookEnergy(power milliwatt, d time.Duration) {
	hi, lo := bits.Mul64(uint64(power), uint64(d)) //nolint:gosec // d isn't negative
	lo, carry := bits.Add64(lo, s.Pico, 0)
	milli, pico := bits.Div64(hi+carry, lo, picoPerMilli)
	s.Milli, s.Pico = s.Milli+milli, pico
}

func (s *simState) advance(m *simModel, d time.Duration, o operatingPoint) {
	s.bookEnergy(o.power, d)
	if len(m.load.phases) > 0 {
		s.bookUtilisation(d, o.busy)
	}
	work := slices.Clone(s.Work)
	for i := range work {
		w := &work[i]
		w.Energy += float64(o.power.watt()) * d.Seconds()
		if w.Waits {
			w.Spent += d.Seconds() * m.speed
			continue
		}
		part := d.Seconds() / s.workTime(m, i, o)
		w.Done = min(1, w.Done+part)
		if len(w.Phases) > 0 {
			w.Spent += part * w.Model.Time(1, 1)
		}
	}
	s.Work, s.Since = work, s.Since.Add(d)
}

// reading returns what the GPU measures at the moment it was settled to.
func (s *simState) reading(m *simModel, at time.Time) Reading {
	o := s.operation(m)
	r := Reading{
		At: at, Power: o.power.watt(), Energy: dvfsmodel.Joule(math.NaN()),
		Core: o.core, Mem: o.mem, Throttle: o.throttle, MemTotal: simMemory,
		Limit: s.limitInForce(),
	}
	if m.capability.Energy {
		shown := s.Milli
		if s.Stuck != nil {
			shown = *s.Stuck
		}
		r.Energy = dvfsmodel.Joule(shown) / 1000
	}
	switch {
	case len(m.load.phases) > 0:
		r.Utilisation = s.Shown
	case s.activeWork() > 0:
		r.Utilisation = 1
	}
	for i := range s.Work {
		r.MemUsed += s.Work[i].Mem
	}
	return r
}

// simMemory is how much memory a simulated GPU has, whatever its model.
const simMemory = 16 << 30

// resetDriver is what is left of a GPU when its driver goes: no lock, no work, an
// energy counter at zero. Handles opened before are stale.
func (s *simState) resetDriver(m *simModel) {
	s.Set, s.Fixed, s.Limit = controlValues{}, 0, m.limit
	s.Milli, s.Pico, s.Stuck, s.Work, s.Shown, s.Used, s.Unlimited = 0, 0, nil, nil, 0, 0, false
	s.Generation++
}

// validate reports what can't be the state of a GPU of the model.
func (s *simState) validate(m *simModel) error {
	for c := range NumControls {
		v := s.Set[c]
		if v == 0 {
			continue
		}
		if c.IsChoice() {
			if set, ok := profilesIn(v); !ok || set&m.capability.Profiles != set {
				return fmt.Errorf("%v %s, which %s doesn't have", c, c.Words(v), m.name)
			}
			continue
		}
		if !m.clocks.supportsOne(c, v) || c.CheckBounds(m.capability, v) != nil {
			return fmt.Errorf("%v locked at %v %s, which %s doesn't have", c, float64(v), c.Unit(), m.name)
		}
	}
	if !(s.Limit > 0) || s.Limit > maxWatt {
		return fmt.Errorf("power limit %v W, want a positive number", float64(s.Limit))
	}
	if s.Pico >= picoPerMilli {
		return fmt.Errorf("%d pJ beyond whole millijoules, want less than %d", s.Pico, uint64(picoPerMilli))
	}
	if len(s.Work) > maxWorkPieces {
		return fmt.Errorf("%d pieces of work, want at most %d", len(s.Work), maxWorkPieces)
	}
	for i := range s.Work {
		if err := s.Work[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

// maxWorkPieces is how much a GPU does at a time.
const maxWorkPieces = 256

func (w *Work) validate() error {
	if err := w.Model.Validate(); err != nil {
		return fmt.Errorf("work of pid %d: %w", w.PID, err)
	}
	switch {
	case w.PID <= 0:
		return fmt.Errorf("work of pid %d, want a positive number", w.PID)
	case !(w.Done >= 0 && w.Done <= 1):
		return fmt.Errorf("work of pid %d is %v done, want 0 to 1", w.PID, w.Done)
	case w.Mem < 0:
		return fmt.Errorf("work of pid %d holds %d bytes, want 0 or more", w.PID, w.Mem)
	case len(w.Phases) == 0 && w.Waits, w.Phase < 0, w.Phase >= max(1, len(w.Phases)),
		len(w.Phases) > maxPhases, !(w.Spent >= 0):
		return fmt.Errorf("work of pid %d isn't anywhere in its %d phases", w.PID, len(w.Phases))
	}
	for i := range w.Phases {
		if err := w.Phases[i].validate(); err != nil {
			return fmt.Errorf("work of pid %d: %w", w.PID, err)
		}
	}
	return nil
}
