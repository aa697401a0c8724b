package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
)

// What the readings of a locked GPU come to, wrapped with what they show.
var (
	// ErrExternalChange tells that somebody else sets the GPU's clocks, again and again.
	ErrExternalChange = errors.New("somebody else sets the clocks")
	// errNotKept tells that the GPU runs faster than it is locked at. It may have been given
	// back beside the agent.
	errNotKept = errors.New("the lock isn't kept")
	// errLockLost tells that the lock is still gone some time later, and is to be set again.
	errLockLost = errors.New("the lock was lost")
	// errNoEffect tells that the driver takes locks and doesn't heed them.
	errNoEffect = errors.New("locks have no effect")
	// errForeignClocks tells that somebody set clocks of their own above the lock. They are
	// left alone for as long as they are seen.
	errForeignClocks = errors.New("somebody set other clocks")
	// errLimitChanged tells that somebody set what the driver tells, the power limit, to another
	// value: it stays.
	errLimitChanged = errors.New("somebody else set the power limit")
	// errFarBelow tells that the GPU runs far below its lock and doesn't say why.
	errFarBelow = errors.New("the clocks are far below the lock")
)

// isLockError reports whether an error is one of these.
func isLockError(err error) bool {
	return slices.ContainsFunc([]error{
		ErrExternalChange, errNotKept, errLockLost, errNoEffect, errForeignClocks, errLimitChanged, errFarBelow,
	}, func(one error) bool { return errors.Is(err, one) })
}

// isAbove reports whether a reading shows that a GPU runs above what a control is set to.
func isAbove(r *gpu.Reading, want dvfsmodel.Setting) bool {
	for control := range gpu.NumControls {
		v, tolerance, ok := control.Shown(r)
		if set := control.ValueIn(want); ok && set > 0 && v > set+tolerance && !control.ShowsWhatIsSet() {
			return true
		}
	}
	return false
}

// isChanged reports whether a reading shows another value of a control than it was set to: of one
// that tells what it is set to.
func isChanged(r *gpu.Reading, want dvfsmodel.Setting) bool {
	for control := range gpu.NumControls {
		v, tolerance, ok := control.Shown(r)
		if set := control.ValueIn(want); ok && set > 0 && v > 0 && control.ShowsWhatIsSet() &&
			(v > set+tolerance || v < set-tolerance) {
			return true
		}
	}
	return false
}

// shownValues returns what a reading shows of controls and what they are set to, in words such
// as "945,877 MHz". Controls of one unit go together, where any of them is set.
func shownValues(r *gpu.Reading, want dvfsmodel.Setting) (runs, set string) {
	isSet := make(map[string]bool) // by unit
	for control := range gpu.NumControls {
		isSet[control.Unit()] = isSet[control.Unit()] || control.ValueIn(want) > 0
	}
	var running, wanted strings.Builder
	unit := ""
	for control := range gpu.NumControls {
		v, _, ok := control.Shown(r)
		if !ok || !isSet[control.Unit()] {
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
		fmt.Fprintf(&wanted, "%s%v", between, float64(control.ValueIn(want)))
	}
	return running.String() + " " + unit, wanted.String() + " " + unit
}

// A lock counts as lost after so many readings above it, over such a time: GPUs take
// 20 ms to come down to a lock in the median, and 48 ms were seen. A step of Slurm's with
// --gpu-freq of its own loses it, as the driver's clocks are reset at the step's end.
const (
	lostReadings = 5
	lostFor      = 4 * time.Second
)

// A lost lock is set again after a pause, in which whoever measures or profiles something is
// done, and only so often an hour: whoever takes it away more often means it.
const (
	relockPause = time.Minute
	relockSpan  = time.Hour
	maxRelocks  = 5
)

// farBelow is the part of a lock below which a GPU at work runs that doesn't throttle, in as
// many readings as a lost lock takes. Down to 0.87 was seen for voltage and temperature,
// without a reason by the driver.
const farBelow = 0.8

// lockWatch follows by a GPU's readings whether it keeps its lock. Only a clock above the
// lock is proof of anything. One below is normal.
type lockWatch struct {
	since     time.Time // when the lock was set
	wasKept   bool      // since the GPU was locked first
	above     int       // readings above it since it was kept last
	first     time.Time // the first of them
	low, high gpu.Value // the core clock in them
	below     int       // readings far below it in a row
	changed   int       // readings in a row of another value than was set
	changedAt time.Time // the first of them
	isForeign bool      // the clocks are somebody's own
	toldAbove bool      // of this loss
	toldBelow bool
	relocks   []time.Time // of the last hour
}

// begin notes that a lock was set.
func (w *lockWatch) begin(now time.Time) {
	*w = lockWatch{since: now, wasKept: w.wasKept, toldBelow: w.toldBelow, relocks: w.relocks}
}

// observe takes a reading of a GPU that runs at a core clock when nobody sets one. The error is one
// of those above, once for each thing that comes to pass.
func (w *lockWatch) observe(r *gpu.Reading, want dvfsmodel.Setting, unlocked gpu.Value) error {
	if isChanged(r, want) {
		if w.changed++; w.changed == 1 {
			w.changedAt = r.At
		}
		if w.changed < lostReadings || r.At.Sub(w.changedAt) < lostFor {
			return nil
		}
		return errLimitChanged
	}
	w.changed = 0
	if !isAbove(r, want) {
		return w.observeKept(r, want)
	}
	core := gpu.Value(r.Core)
	if w.above++; w.above == 1 {
		w.first, w.low, w.high = r.At, core, core
	}
	w.low, w.high = min(w.low, core), max(w.high, core)
	if w.above < lostReadings || r.At.Sub(w.first) < lostFor {
		return nil
	}
	theirs := w.isTheirs(r, want, unlocked)
	switch {
	case !w.toldAbove:
		w.toldAbove = true
		return errNotKept
	case theirs && !w.isForeign:
		w.isForeign = true
		return errForeignClocks
	case theirs, r.At.Sub(w.first) < relockPause, r.At.Sub(w.since) < relockPause:
		return nil
	}
	w.isForeign = false
	w.relocks = slices.DeleteFunc(w.relocks, func(at time.Time) bool { return r.At.Sub(at) >= relockSpan })
	switch {
	case len(w.relocks) > 0 && !w.wasKept:
		return errNoEffect
	case len(w.relocks) >= maxRelocks:
		return ErrExternalChange
	}
	w.relocks = append(w.relocks, r.At)
	return errLockLost
}

// observeKept takes a reading that isn't above the lock. That of a GPU with nothing to do says
// nothing, as its clock is low anyway.
func (w *lockWatch) observeKept(r *gpu.Reading, want dvfsmodel.Setting) error {
	if r.Utilisation == 0 || r.Throttle&gpu.ThrottleIdle != 0 {
		return nil
	}
	w.above, w.wasKept, w.isForeign, w.toldAbove = 0, true, false, false
	if r.Throttle&throttling != 0 || !(r.Utilisation > 0 && r.Core > 0 && r.Core < farBelow*want.Core) {
		w.below = 0
		return nil
	}
	if w.below++; w.below < lostReadings || w.toldBelow {
		return nil
	}
	w.toldBelow = true
	return errFarBelow
}

// isTheirs reports whether the readings show one core clock between the lock and the one at
// which the GPU runs when nobody sets any, if that is known: a person's or a program's choice.
func (w *lockWatch) isTheirs(r *gpu.Reading, want dvfsmodel.Setting, unlocked gpu.Value) bool {
	_, tolerance, _ := gpu.CoreClock.Shown(r)
	return want.Core > 0 && unlocked > 0 && r.Throttle&throttling == 0 && w.high-w.low <= tolerance &&
		w.low > gpu.Value(want.Core)+tolerance && w.high < nearly*unlocked
}

// nearly is the part of the clock at which a GPU runs when nobody sets any from which on it
// may be that clock: it varies by temperature.
const nearly = 0.97

// standing follows whether a GPU without a lock of ours never exceeds one clock: NVML doesn't tell of a lock.
type standing struct {
	core   dvfsmodel.MHz // the highest seen at work
	first  time.Time     // when
	count  int           // readings at it
	varied bool          // others were below it
}

// A standing limit is suspected after so many readings at work, at one clock, over such a time.
const (
	flatReadings = 5
	flatFor      = 10 * time.Second
)

// observe takes a reading of a GPU at work that doesn't throttle, and returns the clock that seems to be its
// limit, 0 for none. The usual clock is the one at which such GPUs run when nobody sets any.
func (s *standing) observe(r *gpu.Reading, usual dvfsmodel.MHz) dvfsmodel.MHz {
	if r.Throttle&(throttling|gpu.ThrottleIdle) != 0 || !(r.Utilisation > 0 && r.Core > 0) {
		return s.limit(r.At, usual)
	}
	switch {
	case r.Core > s.core:
		*s = standing{core: r.Core, first: r.At, count: 1, varied: s.count > 0}
	case r.Core == s.core:
		s.count++
	default:
		s.varied = true
	}
	return s.limit(r.At, usual)
}

func (s *standing) limit(now time.Time, usual dvfsmodel.MHz) dvfsmodel.MHz {
	if s.varied || s.count < flatReadings || now.Sub(s.first) < flatFor || s.core >= nearly*usual {
		return 0
	}
	return s.core
}

// checkLock says whether the card keeps its lock, by one more reading.
func (c *managedGPU) checkLock(r *gpu.Reading) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entry == nil && r.Throttle&throttling == 0 && r.Core > c.unlockedCore {
		c.unlockedCore = r.Core
	}
	if c.entry == nil {
		c.ground.note(func(g *groundState) {
			if isAbove(r, dvfsmodel.Setting{Core: g.siteSet.Core, Mem: g.siteSet.Mem}) {
				g.siteSet = siteClocks{} // somebody reset them: a sweep sets them again
			}
			if c.usualCore > 0 {
				g.suspect(c.standing.observe(r, c.usualCore), c.standing.core)
			}
		})
	}
	if c.entry == nil || !c.isEntryTrue || c.externalChange != "" && !c.watch.isForeign {
		return nil
	}
	want := c.entry.Setting()
	found := c.watch.observe(r, want, gpu.Value(c.unlockedCore))
	runs, locked := shownValues(r, want)
	words := fmt.Sprintf("%s runs at %s, was locked at %s", c.uuid, runs, locked)
	switch {
	case errors.Is(found, ErrExternalChange), errors.Is(found, errForeignClocks):
		c.externalChange = words
	case !c.watch.isForeign:
		c.externalChange = ""
	}
	if found == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", found, words)
}
