package learn

import (
	"fmt"
	"math"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// A run whose clock was adapted is a sample of one clock if it was there for
// nearly all of its time, or if its stays say well enough what it would have
// taken there: where it was at work at one clock and waited at others.

// adapted reports whether a run's clock was adapted.
func adapted(o *record.Outcome) bool {
	_, adapted := o.Slowdown.Get()
	return adapted
}

// nearlyAlways is the core clock at which an adapted run was for nearly all of its
// time; the lowest of those it was set to where most of it was no higher than
// that, as a GPU that waits takes a lower one by itself. false: there is none.
func nearlyAlways(clocks []live.Residency, lowest dvfsmodel.MHz) (dvfsmodel.MHz, bool) {
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

// unstepped is what an adapted run would have taken at the one clock of which its
// stays say most, with the mean power of a GPU; or why they don't say it.
func unstepped(o *record.Outcome, seconds float64) (dvfsmodel.MHz, float64, dvfsmodel.Watt, string) {
	if len(o.Stays) == 0 || len(o.GPUs) == 0 {
		return 0, 0, 0, "its clocks were adapted, and it was at none of them for nearly all of the time"
	}
	if dvfsmodel.ResidencySeconds(o.Stays) < (1-mostUntold)*seconds {
		return 0, 0, 0, "its clocks were adapted, " +
			"and it wasn't alone on its GPUs, or wasn't looked at, for part of the time"
	}
	u, err := dvfsmodel.NewEquivalentRun(o.Stays, seconds)
	if err != nil {
		return 0, 0, 0, "its clocks were adapted: " + err.Error()
	}
	if off, unsure := u.Time.RelativeBound(), u.Energy.RelativeBound(); off > mostTimeDoubt ||
		unsure > mostEnergyDoubt {
		return 0, 0, 0, fmt.Sprintf("its clocks were adapted, and it was at work at several: "+
			"at %.0f MHz it may have taken %.0f%% more or less time, and %.0f%% energy", float64(u.Core),
			math.Ceil(100*off), math.Ceil(100*unsure))
	}
	power := u.Energy.Guess / u.Time.Guess / float64(len(o.GPUs))
	return u.Core, u.Time.Guess, dvfsmodel.Watt(power), ""
}

// ceiling is the highest clock of a run's stays.
func ceiling(stays []dvfsmodel.ClockResidency) dvfsmodel.MHz {
	highest := dvfsmodel.MHz(0)
	for i := range stays {
		highest = max(highest, stays[i].Core)
	}
	return highest
}
