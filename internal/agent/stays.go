package agent

import (
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/live"
)

// stays tells a run's time and energy apart by the level that it was at, as looks at
// its GPUs show them. Its size is bounded by the levels and by the looks in a
// second.
type stays struct {
	list  []dvfsmodel.ClockResidency // by level
	last  int                        // the level of the last look; -1 before the first, and while the run isn't alone
	spent dvfsmodel.Joule            // by the run's GPUs, up to the last look
	busy  time.Time                  // the last look at which something had run
	quiet []quiet                    // looks at which nothing had, not booked as rest yet
}

// quiet is the time before a look at which nothing had run.
type quiet struct {
	at      time.Time
	level   int
	seconds float64
	energy  dvfsmodel.Joule
}

func newStays(levels []live.AdaptLevel) *stays {
	s := &stays{list: make([]dvfsmodel.ClockResidency, len(levels)), last: -1}
	for i := range levels {
		s.list[i].Core = levels[i].Core
	}
	return s
}

// look books the seconds before a look at the level that was in force, of which
// a part counts as work; spent is what the run's GPUs used up to now. Time in
// which others were on them belongs to no level.
func (s *stays) look(now time.Time, level int, seconds, charge float64, spent dvfsmodel.Joule, alone bool) {
	energy := max(0, spent-s.spent)
	s.spent = spent
	if !alone {
		s.last, s.quiet = -1, nil
		return
	}
	at := &s.list[level]
	if level != s.last {
		at.Begun++
		s.last = level
	}
	at.Seconds += seconds
	at.Work += seconds * charge
	at.Energy += energy
	if charge > 0 {
		s.quiet, s.busy = s.quiet[:0], now
		return
	}
	if now.Sub(s.busy) >= calming {
		s.quiet = append(s.quiet, quiet{now, level, seconds, energy})
	}
	s.rest(now)
}

// calming is how long after the last work a sensor may still show what that drew.
const calming = longestPeriod / 2

// rest books quiet time as rest once the driver's sample period is over in which
// something may have run that it hadn't shown yet.
func (s *stays) rest(now time.Time) {
	sure := 0
	for ; sure < len(s.quiet) && now.Sub(s.quiet[sure].at) >= longestPeriod; sure++ {
		q := &s.quiet[sure]
		s.list[q.level].Rest += q.seconds
		s.list[q.level].RestEnergy += q.energy
	}
	s.quiet = slices.Delete(s.quiet, 0, sure)
}

// told are the stays of the levels at which the run was.
func (s *stays) told() []dvfsmodel.ClockResidency {
	return slices.DeleteFunc(slices.Clone(s.list), func(x dvfsmodel.ClockResidency) bool { return x.Begun == 0 })
}

// SoFar is what the run's GPUs used since their first readings. It grows reading by
// reading; believed is false where that isn't what they are thought to have used in
// the end: one of them told nothing, or its counter turned out to be wrong.
func (s *Sampler) SoFar() (sum dvfsmodel.Joule, believed bool) {
	believed = true
	for _, t := range s.gpus {
		joules := t.energy.SoFar()
		sum += joules
		e := t.energy.Sum()
		believed = believed && e.Source != gpu.FromNoMeasures && e.Joules == joules
	}
	return sum, believed
}
