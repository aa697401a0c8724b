package agent

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/gpu"
)

// ErrExternalChange tells that somebody else sets the GPU's clocks.
var ErrExternalChange = errors.New("somebody else sets the clocks")

const (
	settleTime = 40 * time.Millisecond // that a GPU may take to come down to a lock
	checkEvery = 5 * time.Millisecond  // one look at it and the next
)

// verify reads whether a card runs no faster than it was locked at. That is
// all that can be read of a lock on a clock.
func verify(c *managedGPU, want dvfsmodel.Setting) error {
	last := time.Now().Add(settleTime)
	for {
		r, err := call(c, gpu.Device.Read)
		if err != nil {
			return fmt.Errorf("look at the clocks of %s: %w", c.uuid, err)
		}
		if !isAbove(&r, want) {
			return nil
		}
		if !time.Now().Before(last) {
			runs, locked := shownValues(&r, want)
			return fmt.Errorf("look at the clocks of %s: run at %s, locked at %s", c.uuid, runs, locked)
		}
		<-time.After(checkEvery)
	}
}

// isAbove reports whether a reading shows a control above what it is set to.
func isAbove(r *gpu.Reading, want dvfsmodel.Setting) bool {
	for control := range gpu.NumControls {
		v, tolerance, ok := control.Shown(r)
		if set := control.Of(want); ok && set > 0 && v > set+tolerance {
			return true
		}
	}
	return false
}

// shownValues are what a reading shows of controls and what they are set to, in words such
// as "945,877 MHz". Controls of one unit go together, where any of them is set.
func shownValues(r *gpu.Reading, want dvfsmodel.Setting) (runs, set string) {
	isSet := make(map[string]bool) // by unit
	for control := range gpu.NumControls {
		isSet[control.Unit()] = isSet[control.Unit()] || control.Of(want) > 0
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
		fmt.Fprintf(&wanted, "%s%v", between, float64(control.Of(want)))
	}
	return running.String() + " " + unit, wanted.String() + " " + unit
}

// Clocks count as somebody else's after so many samples in a row, over such a
// time.
const (
	externalSamples = 5
	externalFor     = 4 * time.Second
)

// checkExternalChange says that somebody else sets the card's clocks, once enough samples
// in a row don't fit what it is locked at.
func (c *managedGPU) checkExternalChange(r *gpu.Reading) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entry == nil || !c.isEntryTrue || c.externalChange != "" {
		return nil
	}
	want := c.entry.Setting()
	if !isExternal(r, want) {
		c.strayCount = 0
		return nil
	}
	if c.strayCount++; c.strayCount == 1 {
		c.firstStray = r.At
	}
	if c.strayCount < externalSamples || r.At.Sub(c.firstStray) < externalFor {
		return nil
	}
	runs, locked := shownValues(r, want)
	c.externalChange = fmt.Sprintf("%s runs at %s, was locked at %s", c.uuid, runs, locked)
	return fmt.Errorf("%w: %s", ErrExternalChange, c.externalChange)
}

// isExternal reports whether what a reading shows of a control can't come from the lock: it
// is above it, or below it: of what the GPU runs at, under load without a reason to throttle.
func isExternal(r *gpu.Reading, want dvfsmodel.Setting) bool {
	loaded := r.Utilisation > 0 && r.Throttle&(throttling|gpu.ThrottleIdle) == 0
	for control := range gpu.NumControls {
		v, tolerance, ok := control.Shown(r)
		if ok && (loaded || control.ShowsWhatIsSet()) && v > 0 && v < control.Of(want)-tolerance {
			return true
		}
	}
	return isAbove(r, want)
}
