package learn

import (
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
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
	// mostUntold is the part of an adapted run's time that may be in no stay. It counts as
	// if it had been at the sample's clock, and so as maxAbove does.
	mostUntold = 0.02
	// mostTimeDoubt and mostEnergyDoubt are by which parts an adapted run's time and energy
	// at one clock may be off. They are bounds: of simulated jobs those within them are off by
	// up to 1.0 % in time and 0.7 % in energy, and those beyond by up to 13.9 % (docs/epd.md,
	// "What it teaches"). That of the energy is wider: power may go by the clock's cube.
	mostTimeDoubt   = 0.03
	mostEnergyDoubt = 0.1
	// maxMHz and maxWatt, of a GPU, are far beyond all there are, and below what MHz and
	// watts become where a driver answers in kHz or milliwatts. What is less far off is set
	// aside when it arrives (record.Outcome.DropImplausible); older records have it.
	maxMHz  = 20_000
	maxWatt = 1e5
)

// sampleOf is what an outcome says of its workload; false: nothing.
func sampleOf(o *record.Outcome, base dvfsmodel.Setting) (dvfsmodel.Sample, bool) {
	s, why := sampled(o, base)
	return s, why == ""
}

// sampled is what an outcome says of its workload, or why that is nothing.
func sampled(o *record.Outcome, base dvfsmodel.Setting) (s dvfsmodel.Sample, why string) {
	seconds, timed := o.TimeS.Get()
	switch {
	case o.Unmatched:
		return s, "its start wasn't seen"
	case o.ExitState != record.Completed:
		return s, "it didn't complete"
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
	if adapted(o) {
		set, one = nearlyAlways(o.Clocks, set)
	}
	s = dvfsmodel.Sample{Core: set, Mem: o.Setting.Mem, Time: seconds, Power: dvfsmodel.Watt(power)}
	if !one {
		core, took, watts, why := unstepped(o, seconds)
		if why != "" {
			return s, why
		}
		s.Core, s.Time, s.Power, set = core, took, watts, ceiling(o.Stays)
	}
	if s.Core == 0 {
		s.Core = base.Core
	}
	if s.Mem == 0 {
		s.Mem = base.Mem
	}
	seen, above := 0.0, 0.0
	for _, c := range o.Clocks {
		if seen += c.Seconds; set > 0 && c.Core > set*(1+aboveBy) {
			above += c.Seconds
		}
	}
	switch {
	case !(above <= maxAbove*seen):
		why = "it ran at higher clocks than were set for part of the time"
	case !(s.Core > 0) || !(s.Mem > 0) || s.Core > maxMHz || s.Mem > maxMHz:
		why = "its clocks aren't known"
	case !(s.Power > 0) || !(s.Power < maxWatt):
		why = "its power isn't known"
	case !(seconds < record.MaxRunTime) || !(throttled <= maxThrottle*seconds):
		why = "it was throttled for part of the time"
	}
	return s, why
}
