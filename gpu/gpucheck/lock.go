package gpucheck

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/live"
)

// backTime is how long a GPU may take to run above a lock again that was given back, backEvery how
// often that is looked at.
const (
	backTime  = 2 * time.Second
	backEvery = 10 * time.Millisecond
)

// loadedPart is how far below the clock of a GPU at work it is locked, so that the difference is seen.
const loadedPart = 0.85

// trialSetting returns the setting that is tried: a memory clock, which is the catalogue's default or else the
// highest; one of its core clocks, in the middle of them or well below the one at which the GPU works;
// a power limit between the least and the one in force; and the profile Max-Q, where the GPU has it.
func (c *checker) trialSetting(d gpu.Device, g *GPU) (dvfsmodel.Setting, error) {
	var at dvfsmodel.Setting
	if len(g.Clocks) == 0 {
		return at, errors.New("it has no table of clocks")
	}
	can := d.Capability()
	row := g.Clocks[0]
	if p, err := c.Boards(g.Model); err == nil { // some boards never work at their highest
		isDefault := func(r ClockRow) bool { return r.MemMHz == p.Default.Mem }
		if i := slices.IndexFunc(g.Clocks, isDefault); i >= 0 {
			row = g.Clocks[i]
		}
	}
	if can.Can(gpu.CoreClock) {
		at.Core = row.Core[len(row.Core)/2]
		if g.Load != nil {
			bound := dvfsmodel.MHz(loadedPart * g.Load.CoreMHz.Or(0))
			at.Core = row.Core[len(row.Core)-1]
			if below := slices.IndexFunc(row.Core, func(f dvfsmodel.MHz) bool { return f <= bound }); below >= 0 {
				at.Core = row.Core[below]
			}
		}
		if can.Can(gpu.MemClock) {
			at.Mem = row.MemMHz
		}
	}
	if limit, known := g.LimitW.Get(); known && can.Can(gpu.PowerLimit) {
		low := float64(can.Limits.Min)
		at.Cap = dvfsmodel.Watt(int(low + (limit-low)/2))
	}
	if can.Can(gpu.WorkloadProfile) {
		if free, err := gpu.AdmissibleProfiles(d); err == nil && free.Has(dvfsmodel.MaxQ) {
			at.Profile = dvfsmodel.MaxQ
		}
	}
	if at == (dvfsmodel.Setting{}) {
		return at, errors.New("nothing of it can be set")
	}
	return at, nil
}

// state is all of a GPU that a lock may change and that its driver tells.
type state struct {
	capability gpu.Capability
	clocks     gpu.Clocks
	limit      dvfsmodel.Watt
	sharing    gpu.Sharing
	profiles   gpu.Profiles
}

// stateOf asks a device that was opened anew: what one knows from before proves nothing.
func (c *checker) stateOf(uuid string) (gpu.Device, state, error) {
	devices, err := c.Library.Devices()
	for _, d := range devices {
		if d == nil || d.Identity().UUID != uuid {
			continue
		}
		s := state{capability: d.Capability()}
		var limiting, listing, sharing, profiling error
		s.clocks, listing = d.Clocks()
		if s.limit, limiting = d.PowerLimit(); errors.Is(limiting, gpu.ErrNotSupported) {
			limiting = nil
		}
		s.sharing, sharing = d.Sharing()
		if s.capability.Can(gpu.WorkloadProfile) {
			s.profiles, profiling = gpu.ProfilesOn(d)
		}
		return d, s, errors.Join(listing, limiting, sharing, profiling)
	}
	return nil, state{}, errors.Join(errors.New("the GPU isn't there any more"), err)
}

// tryLock locks a GPU in a process, kills that process, gives back by its journal, and looks at each step.
func (c *checker) tryLock(ctx context.Context, g *GPU, d gpu.Device) {
	uuid := d.Identity().UUID
	at, err := c.trialSetting(d, g)
	if err != nil {
		g.addRemark("no lock was tried: %v", err)
		return
	}
	_, before, err := c.stateOf(uuid)
	running, reading := d.Read()
	if err := errors.Join(err, reading); err != nil {
		g.addFault("before the lock: %v", err)
		return
	}
	g.Lock = &Lock{Wanted: settingText(at)}
	took, kill, err := c.Locker.Lock(ctx, uuid, at)
	if err != nil {
		g.addFault("the lock: %v", err)
	} else {
		g.Lock.TookMS = live.Known(milliseconds(took))
		g.Lock.Shown, _ = readingText(d, at)
		if err := kill(); err != nil {
			g.addFault("the process that had locked it: %v", err)
		}
		var wrong string
		if _, wrong = readingText(d, at); wrong != "" {
			g.addFault("after the process that had locked it was killed: %s", wrong)
		}
		g.Lock.Held = wrong == ""
	}
	began := time.Now()
	restoring := c.Locker.Restore(context.WithoutCancel(ctx))
	g.Lock.RestoreMS = live.Known(milliseconds(time.Since(began)))
	if restoring != nil {
		g.addFault("giving back: %v", restoring)
	}
	fresh, after, err := c.stateOf(uuid)
	switch {
	case err != nil:
		g.addFault("after the lock: %v", err)
		return
	case !reflect.DeepEqual(before, after):
		g.addFault("after the lock it isn't as before: %+v, it was %+v", after, before)
		return
	}
	g.Lock.Restored = restoring == nil && c.awaitClockBack(g, fresh, at, &running)
}

// awaitClockBack waits until the core clock is above the lock again, if it was before.
func (c *checker) awaitClockBack(g *GPU, d gpu.Device, at dvfsmodel.Setting, before *gpu.Reading) bool {
	_, tolerance, _ := gpu.CoreClock.Shown(before)
	bound := at.Core + dvfsmodel.MHz(tolerance)
	if at.Core == 0 || !(before.Core > bound) {
		g.addRemark("the core clock was at %.0f MHz before the lock: whether it may rise above it again wasn't seen",
			float64(before.Core))
		return true
	}
	for began := time.Now(); ; {
		r, err := d.Read()
		took := time.Since(began)
		switch {
		case err != nil:
			g.addFault("after the lock: %v", err)
			return false
		case r.Core > bound:
			g.Lock.BackMS = live.Known(milliseconds(took))
			return true
		case took > backTime:
			g.addFault("the core clock is at %.0f MHz %s after it was given back, it was at %.0f before",
				float64(r.Core), backTime, float64(before.Core))
			return false
		}
		<-time.After(backEvery)
	}
}

// readingText returns what a reading shows of a setting, and what of it can't be.
func readingText(d gpu.Device, at dvfsmodel.Setting) (text, wrong string) {
	r, err := d.Read()
	if err != nil {
		return "?", err.Error()
	}
	var parts []string
	for control := range gpu.NumControls {
		v, tolerance, ok := control.Shown(&r)
		set := control.ValueIn(at)
		if !ok || set == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("%.0f %s", float64(v), control.Unit()))
		low := control.ShowsWhatIsSet() && v < set-tolerance
		if v > set+tolerance || low {
			wrong = fmt.Sprintf("the %s is at %.0f %s, it was set to %.0f", control, float64(v), control.Unit(),
				float64(set))
		}
	}
	if at.Profile != 0 {
		now, err := gpu.ProfilesOn(d)
		parts = append(parts, "power profile "+now.Enforced.String())
		if err != nil || !now.Enforced.Has(at.Profile) {
			wrong = fmt.Sprintf("power profile %v was requested, but %v is in force (%v)", at.Profile,
				now.Enforced, err)
		}
	}
	return strings.Join(parts, ", "), wrong
}

// settingText returns a setting in words.
func settingText(at dvfsmodel.Setting) string {
	var parts []string
	for control := range gpu.NumControls {
		switch v := control.ValueIn(at); {
		case v == 0:
		case control.IsChoice():
			parts = append(parts, fmt.Sprintf("%s %s", control, control.Words(v)))
		default:
			parts = append(parts, fmt.Sprintf("%s %.0f %s", control, float64(v), control.Unit()))
		}
	}
	return strings.Join(parts, ", ")
}
