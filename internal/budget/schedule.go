package budget

import (
	"math"
	"slices"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
)

// Schedule is a budget over time: a standing one, and events that lower it.
type Schedule struct {
	// Steps are the standing budget, ascending by time: each holds until the next one's time, the
	// first one also before, the last one for good. None: the budget isn't limited.
	Steps  []Step
	Events []Event
}

// Step is a budget from a time on.
type Step struct {
	From  time.Time
	Watts dvfsmodel.Watt
}

// Event lowers the budget from one time until another.
type Event struct {
	Watts       dvfsmodel.Watt
	From, Until time.Time
	// Ramp is how long before From the budget begins to fall in a straight line, and how long
	// after Until it takes to rise.
	Ramp time.Duration
}

// unlimited is the budget where there is none.
var unlimited = dvfsmodel.Watt(math.Inf(1))

// At returns the budget at a time, +Inf where there is none. A ramp begins at the standing
// budget; without one there is nothing to come down from, and the event's watts hold for all of it.
func (s *Schedule) At(at time.Time) dvfsmodel.Watt {
	standing := s.standingAt(at)
	watts := standing
	for i := range s.Events {
		watts = min(watts, s.Events[i].budgetAt(at, standing))
	}
	return watts
}

// Least returns the least budget from one time until another, both included.
func (s *Schedule) Least(from, until time.Time) dvfsmodel.Watt {
	least := min(s.At(from), s.At(until))
	consider := func(at time.Time) {
		if at.After(from) && at.Before(until) {
			// Just before a step up the lower budget holds.
			least = min(least, s.At(at), s.At(at.Add(-time.Nanosecond)))
		}
	}
	for _, step := range s.Steps {
		consider(step.From)
	}
	for i := range s.Events {
		e := &s.Events[i]
		for _, at := range []time.Time{e.From.Add(-e.Ramp), e.From, e.Until, e.Until.Add(e.Ramp)} {
			consider(at)
		}
	}
	return least
}

// standingAt returns the standing budget at a time.
func (s *Schedule) standingAt(at time.Time) dvfsmodel.Watt {
	if len(s.Steps) == 0 {
		return unlimited
	}
	next := slices.IndexFunc(s.Steps, func(step Step) bool { return step.From.After(at) })
	switch next {
	case 0:
		return s.Steps[0].Watts
	case -1:
		next = len(s.Steps)
	}
	return s.Steps[next-1].Watts
}

// budgetAt returns the budget that an event leaves of a standing one.
func (e *Event) budgetAt(at time.Time, standing dvfsmodel.Watt) dvfsmodel.Watt {
	switch before, after := e.From.Sub(at), at.Sub(e.Until); {
	case before >= e.Ramp && before > 0, after >= e.Ramp:
		return standing
	case before <= 0 && after < 0, standing <= e.Watts, math.IsInf(float64(standing), 1):
		return e.Watts
	default:
		part := dvfsmodel.Watt(max(before, after)) / dvfsmodel.Watt(e.Ramp)
		return e.Watts + part*(standing-e.Watts)
	}
}

// LeastEver returns the least budget from a time on.
func (s *Schedule) LeastEver(from time.Time) dvfsmodel.Watt {
	last := from
	for _, step := range s.Steps {
		last = later(last, step.From)
	}
	for i := range s.Events {
		last = later(last, s.Events[i].Until.Add(s.Events[i].Ramp))
	}
	return s.Least(from, last)
}

// later returns the later one of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
