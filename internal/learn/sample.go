package learn

import (
	"fmt"
	"math"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// What a run may have been like to be a sample of one pair of clocks: what remains is to
// be no more than runs of a workload differ by themselves, some 2 % in time
// (pooled.NoiseOf), or than the bounds of predictions allow for.
const (
	// aboveBy is by which part a clock is above the one that was set: drivers list core
	// clocks in steps of 7.5 or 15 MHz, some 1 % of what is set. One step is rounding.
	aboveBy = 0.02
	// maxAbove is the part of the time for which a run may have been above: even at twice
	// the clock its time is off by no more than 2 %.
	maxAbove = 0.02
	// maxThrottle is the part of the time for which a run may have been throttled: at half of
	// its clock meanwhile its time is off by 5 %, half of the margin that predictions have at
	// least (live.time_margin, 0.1).
	maxThrottle = 0.1
	// maxOtherLimit is the part of the time for which a run may have been under another power limit,
	// or held down by a limit that isn't today's: as maxAbove.
	maxOtherLimit = 0.02
	// limitTolerance is by how many watts limits may differ that are the same: drivers round them.
	limitTolerance = 1
	// maxSpread is the standard deviation of the clock at work, as a part of the mean, up to
	// which a run was at one clock: under a power cap, and by voltage and temperature, it goes up
	// and down by some steps. A tenth of the time at half of the clock makes .16.
	maxSpread = 0.05
	// ranStep is to what the clock that ran is rounded, so that runs at the same one are: the
	// step of most tables.
	ranStep = 15
	// maxUntoldPart is the part of an adapted run's time that may be in no stay. It counts as
	// if it had been at the sample's clock, and so as maxAbove does.
	maxUntoldPart = 0.02
	// maxTimeError and maxEnergyError are by which parts an adapted run's time and energy
	// at one clock may be off. They are bounds: of simulated jobs those within them are off by
	// up to 1.0 % in time and 0.7 % in energy, and those beyond by up to 13.9 %
	// (docs/how-to/adapt-clocks.md). That of the energy is wider: power may go by the clock's cube.
	maxTimeError   = 0.03
	maxEnergyError = 0.1
	// maxMHz and maxWatt, of a GPU, are far beyond all there are, and below what MHz and
	// watts become where a driver answers in kHz or milliwatts. What is less far off is set
	// aside when it arrives (record.Outcome.DropImplausible).
	maxMHz  = 20_000
	maxWatt = 1e5
)

// sampled returns what an outcome says of its workload, or why that is nothing.
func sampled(o *record.Outcome, base dvfsmodel.Setting) (s dvfsmodel.Sample, why string) {
	seconds, timed := o.TimeS.Get()
	switch {
	case o.Unmatched:
		return s, "its start wasn't seen"
	case o.Shared:
		return s, "others may have used its GPUs, too"
	case o.NotLocked.IsPartly():
		return s, "its clocks were given back before its end, or not set, and nobody says when"
	case o.ExitState != record.Completed:
		return s, "it didn't complete"
	case record.ProfileOf(o.Workload) != o.Setting.Profile:
		return s, "it didn't get the power profile that it was decided to be under, or not to its end"
	case !timed || !(seconds > 0):
		return s, "how long it took isn't known"
	}
	throttled := 0.0
	for _, t := range o.ThrottledS {
		throttled += t
	}
	power := o.MeanPowerW.Or(0)
	if energy, ok := o.GPUEnergyJ.Get(); ok {
		power = energy / seconds
	}
	power /= float64(max(1, len(o.GPUs)))
	set, one := o.Setting.Core, true
	if isAdapted(o) {
		set, one = mostlyRanAt(o.Clocks, set)
	}
	s = dvfsmodel.Sample{Core: set, Mem: o.Setting.Mem, Time: seconds, Power: dvfsmodel.Watt(power)}
	if !one {
		core, took, watts, why := equivalentRunOf(o, seconds)
		if why != "" {
			return s, why
		}
		s.Core, s.Time, s.Power, set = core, took, watts, highestClock(o.Stays)
	}
	if s.Core == 0 {
		s.Core = base.Core
	}
	if s.Mem == 0 {
		s.Mem = base.Mem
	}
	ran := false
	isThrottled := !(throttled <= maxThrottle*seconds)
	if !isAdapted(o) && (o.Setting.Core > 0 || isThrottled) { // else the default stands for what ran by default
		s.Core, ran = clockThatRan(o, s.Core)
	}
	switch {
	case !ran && wasAbove(o.Clocks, set):
		why = "it ran at higher clocks than were set for part of the time"
	case !(s.Core > 0) || !(s.Mem > 0) || s.Core > maxMHz || s.Mem > maxMHz:
		why = "its clocks aren't known"
	case !(s.Power > 0) || !(s.Power < maxWatt):
		why = "its power isn't known"
	case !(seconds < record.MaxRunTime) || isThrottled && !ran:
		why = "it was throttled for part of the time"
	case o.OtherCapsS.Or(0) > maxOtherLimit*seconds:
		why = "its power limit was changed while it ran"
	}
	return s, why
}

// wasAbove reports whether a run was at higher clocks than were set for too long; 0: none was.
func wasAbove(clocks []live.Residency, set dvfsmodel.MHz) bool {
	seen, above := 0.0, 0.0
	for _, c := range clocks {
		if seen += c.Seconds; set > 0 && c.Core > set*(1+aboveBy) {
			above += c.Seconds
		}
	}
	return !(above <= maxAbove*seen)
}

// limitOfToday returns the power limit of the newest of some runs, which go from new to old; 0: not known. A
// limit that epd set for one run says nothing of the others.
func limitOfToday(outcomes []record.Outcome) float64 {
	for i := range outcomes {
		if limit, known := outcomes[i].CapW.Get(); known && outcomes[i].Setting.Cap == 0 {
			return limit
		}
	}
	return 0
}

// checkLimit says why a run under another limit than today's isn't taken together with those under it:
// that limit held it down. A run that no limit held down is the same under all that are no lower.
func checkLimit(o *record.Outcome, today float64) (why string) {
	limit, known := o.CapW.Get()
	if !known || today == 0 || o.Setting.Cap != 0 || math.Abs(limit-today) <= limitTolerance ||
		o.ThrottledS[powerCapped] <= maxOtherLimit*o.TimeS.Or(0) {
		return ""
	}
	return fmt.Sprintf("a power limit of %.0f W held it down, today it is %.0f W", limit, today)
}

// powerCapped is the reason of outcomes for clocks below what was set that is the power limit.
const powerCapped = "power-cap"

// clockThatRan returns the core clock at which a run did its work, where that is known, was one
// clock, and isn't the one that was set; true then. What kept a GPU from what was set, such
// as its power cap, doesn't matter at that clock.
func clockThatRan(o *record.Outcome, set dvfsmodel.MHz) (dvfsmodel.MHz, bool) {
	mean, known := o.WorkClock.CoreMHz.Get()
	if !known {
		return heldAt(o, set)
	}
	if !(mean > 0) || o.WorkClock.SpreadMHz.Or(0) > maxSpread*mean ||
		math.Abs(mean-float64(set)) <= aboveBy*float64(set) {
		return set, false
	}
	return dvfsmodel.MHz(max(1, math.Round(mean/ranStep)) * ranStep), true
}

// heldAt returns the core clock at which a power limit held a run for nearly all of its time, below what
// was set; true then. Its GPUs don't say when they were at work, or its agent doesn't.
func heldAt(o *record.Outcome, set dvfsmodel.MHz) (dvfsmodel.MHz, bool) {
	clock, one := mostlyRanAt(o.Clocks, 0)
	if one && clock > 0 && clock < set && o.ThrottledS[powerCapped] > maxThrottle*o.TimeS.Or(0) {
		return clock, true
	}
	return set, false
}

// A run whose clock was adapted is a sample of one clock if it was there for
// nearly all of its time, or if its stays say well enough what it would have
// taken there: where it was at work at one clock and waited at others.

// isAdapted reports whether a run's clock was adapted.
func isAdapted(o *record.Outcome) bool {
	_, adapted := o.Slowdown.Get()
	return adapted
}

// mostlyRanAt returns the core clock at which an adapted run was for nearly all of its
// time; the lowest of those it was set to where most of it was no higher than
// that, as a GPU that waits takes a lower one by itself. false: there is none.
func mostlyRanAt(clocks []live.Residency, lowest dvfsmodel.MHz) (dvfsmodel.MHz, bool) {
	var longest live.Residency
	for _, c := range clocks {
		if c.Seconds > longest.Seconds {
			longest = c
		}
	}
	near, above, seen := 0.0, 0.0, 0.0
	for _, c := range clocks {
		if seen += c.Seconds; math.Abs(float64(c.Core-longest.Core)) <= aboveBy*float64(longest.Core) {
			near += c.Seconds
		}
		if lowest > 0 && c.Core > lowest*(1+aboveBy) {
			above += c.Seconds
		}
	}
	if seen > 0 && near >= (1-maxAbove)*seen && longest.Core > lowest {
		return longest.Core, true
	}
	return lowest, above <= maxAbove*seen
}

// equivalentRunOf returns what an adapted run would have taken at the one clock of which its
// stays say most, with the mean power of a GPU; or why they don't say it.
func equivalentRunOf(o *record.Outcome, seconds float64) (dvfsmodel.MHz, float64, dvfsmodel.Watt, string) {
	if len(o.Stays) == 0 || len(o.GPUs) == 0 {
		return 0, 0, 0, "its clocks were adapted, and it was at none of them for nearly all of the time"
	}
	if dvfsmodel.ResidencySeconds(o.Stays) < (1-maxUntoldPart)*seconds {
		return 0, 0, 0, "its clocks were adapted, " +
			"and it wasn't alone on its GPUs, or wasn't looked at, for part of the time"
	}
	u, err := dvfsmodel.NewEquivalentRun(o.Stays, seconds)
	if err != nil {
		return 0, 0, 0, "its clocks were adapted: " + err.Error()
	}
	if off, unsure := u.Time.RelativeBound(), u.Energy.RelativeBound(); off > maxTimeError ||
		unsure > maxEnergyError {
		return 0, 0, 0, fmt.Sprintf("its clocks were adapted, and it was at work at several: "+
			"at %.0f MHz it may have taken %.0f%% more or less time, and %.0f%% energy", float64(u.Core),
			math.Ceil(100*off), math.Ceil(100*unsure))
	}
	power := u.Energy.Guess / u.Time.Guess / float64(len(o.GPUs))
	return u.Core, u.Time.Guess, dvfsmodel.Watt(power), ""
}

// highestClock returns the highest clock of a run's stays.
func highestClock(stays []dvfsmodel.ClockResidency) dvfsmodel.MHz {
	highest := dvfsmodel.MHz(0)
	for i := range stays {
		highest = max(highest, stays[i].Core)
	}
	return highest
}
