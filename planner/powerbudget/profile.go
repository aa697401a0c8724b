package powerbudget

import (
	"cmp"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// span is power over a time.
type span struct {
	planner.Interval

	Watts dvfsmodel.Watt
}

// profile is power over time, ascending, each step from its time on.
type profile []Step

// index returns the step that holds at a time.
func (l profile) index(at float64) int {
	i, found := slices.BinarySearchFunc(l, at, func(s Step, at float64) int { return cmp.Compare(s.From, at) })
	if found {
		return i
	}
	return i - 1
}

func (l profile) at(at float64) dvfsmodel.Watt { return l[l.index(at)].Watts }

// split makes a step begin at a time, and returns its index.
func (l *profile) split(at float64) int {
	i := l.index(at)
	if (*l)[i].From == at {
		return i
	}
	*l = slices.Insert(*l, i+1, Step{From: at, Watts: (*l)[i].Watts})
	return i + 1
}

// add adds a span.
func (l *profile) add(s span) {
	if s.From >= s.To {
		return
	}
	from, to := l.split(s.From), l.split(s.To)
	for i := from; i < to; i++ {
		(*l)[i].Watts += s.Watts
	}
}

// over returns the mean and the highest power in a window.
func (l profile) over(window planner.Interval) (mean, peak dvfsmodel.Watt) {
	for i := max(0, l.index(window.From)); i < len(l) && l[i].From < window.To; i++ {
		until := window.To
		if i+1 < len(l) {
			until = min(until, l[i+1].From)
		}
		mean += l[i].Watts * dvfsmodel.Watt((until-max(l[i].From, window.From))/(window.To-window.From))
		peak = max(peak, l[i].Watts)
	}
	return mean, peak
}
