package agent

import (
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/live"
)

// residencyTracker tells a run's time and energy apart by the level that it was at, as looks at
// its GPUs show them. Its size is bounded by the levels and by the looks in a
// second.
type residencyTracker struct {
	list []dvfsmodel.ClockResidency // by level
	// The level of the last look; -1 before the first, and while the run isn't alone.
	last  int
	spent dvfsmodel.Joule // by the run's GPUs, up to the last look
	busy  time.Time       // the last look at which something had run
	quiet []idleTime      // looks at which nothing had, not booked as rest yet
}

// idleTime is the time before a look at which nothing had run.
type idleTime struct {
	at      time.Time
	level   int
	seconds float64
	energy  dvfsmodel.Joule
}

func newResidencyTracker(levels []live.AdaptLevel) *residencyTracker {
	s := &residencyTracker{list: make([]dvfsmodel.ClockResidency, len(levels)), last: -1}
	for i := range levels {
		s.list[i].Core = levels[i].Core
	}
	return s
}

// book books the seconds before a look at the level that was in force, of which
// a part counts as work; spent is what the run's GPUs used up to now. Time in
// which others were on them belongs to no level.
func (s *residencyTracker) book(
	now time.Time, level int, seconds, charge float64, spent dvfsmodel.Joule, alone bool,
) {
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
	if now.Sub(s.busy) >= restDelay {
		s.quiet = append(s.quiet, idleTime{now, level, seconds, energy})
	}
	s.bookRest(now)
}

// restDelay is how long after the last work a sensor may still show what that drew.
const restDelay = maxPeriod / 2

// bookRest books quiet time as rest once the driver's sample period is over in which
// something may have run that it hadn't shown yet.
func (s *residencyTracker) bookRest(now time.Time) {
	sure := 0
	for ; sure < len(s.quiet) && now.Sub(s.quiet[sure].at) >= maxPeriod; sure++ {
		q := &s.quiet[sure]
		s.list[q.level].Rest += q.seconds
		s.list[q.level].RestEnergy += q.energy
	}
	s.quiet = slices.Delete(s.quiet, 0, sure)
}

// residencies returns the stays of the levels at which the run was.
func (s *residencyTracker) residencies() []dvfsmodel.ClockResidency {
	return slices.DeleteFunc(slices.Clone(s.list), func(x dvfsmodel.ClockResidency) bool {
		return x.Begun == 0
	})
}
