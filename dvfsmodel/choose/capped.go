package choose

import (
	"math"

	"github.com/epplan/epplan/dvfsmodel"
)

// Capped is a model of what clocks and power limits together do to a workload, fitted to runs under
// several limits, and how far it is trusted.
type Capped struct {
	*dvfsmodel.Fitted

	// Low is the lowest clocks and the lowest limit at which runs were measured.
	Low dvfsmodel.Setting
	// Margin is the ratio of run time to prediction, less 1, that runs seldom exceed.
	Margin float64
}

// worthCap is by which part of its cost a setting with a power limit must be better than the one
// without: less is within what models are off by, and one control less is simpler.
const worthCap = 0.01

// BetterUnderCap returns a setting with a power limit that costs less than the point best, which was chosen
// by clocks alone; false: there is none. It is sure to end within the limit, seconds, by the model of
// clocks as much as by that of both. Of limits the caps count, of clocks those that may be set and
// aren't below what was measured.
func (s *SafeResponse) BetterUnderCap(
	m *Capped, caps []dvfsmodel.Watt, best *dvfsmodel.Point, o dvfsmodel.Objective, limit float64,
) (dvfsmodel.Point, bool) {
	return s.betterUnderCap(m, caps, best, o, limit, math.Inf(1))
}

// NoSlowerUnderCap is [SafeResponse.BetterUnderCap] among the settings at which a run takes no longer than it
// is predicted to take at the point best.
func (s *SafeResponse) NoSlowerUnderCap(
	m *Capped, caps []dvfsmodel.Watt, best *dvfsmodel.Point, o dvfsmodel.Objective, limit float64,
) (dvfsmodel.Point, bool) {
	return s.betterUnderCap(m, caps, best, o, limit, best.Time)
}

// betterUnderCap looks among settings at which a run is predicted to take so long at most.
func (s *SafeResponse) betterUnderCap(
	m *Capped, caps []dvfsmodel.Watt, best *dvfsmodel.Point, o dvfsmodel.Objective, limit, longest float64,
) (dvfsmodel.Point, bool) {
	standard, base := &s.Standard, s.Fitted.Base // where a limit is in force, standard is the clock that runs
	predict, ok := s.cappedPredictor(m)
	if !ok {
		return dvfsmodel.Point{}, false
	}
	without := predict(best.Core, best.Mem, s.Limit)
	found, least := dvfsmodel.Point{}, o.Cost(without)*(1-worthCap)
	consider := func(core, mem dvfsmodel.MHz, w dvfsmodel.Watt) {
		if core == standard.Core && core != base.Core { // it runs there anyway, where it isn't asked for
			return
		}
		if core < m.Low.Core || mem < m.Low.Mem || core > m.Base.Core || mem > m.Base.Mem {
			return
		}
		pt := predict(core, mem, w)
		if pt.Cap = w; !IsPossible(&pt) || pt.Time > longest || !s.fitsCapped(m, &pt, limit) {
			return
		}
		under := *s
		under.Cap = w
		if plain := under.At(core, mem); !s.Fitted.Covers(&plain) || !under.Fits(&plain, limit) {
			return
		}
		if cost := o.Cost(pt); cost < least {
			found, least = pt, cost
		}
	}
	for _, w := range caps {
		consider(base.Core, base.Mem, w)
		for _, at := range s.Settings {
			consider(at.Core, at.Mem, w)
		}
	}
	return found, found.Cap > 0 && !math.IsInf(least, 0)
}

// cappedPredictor returns what a run takes at clocks under a power limit by the model of both; false: it can't be
// used.
func (s *SafeResponse) cappedPredictor(
	m *Capped,
) (predict func(core, mem dvfsmodel.MHz, w dvfsmodel.Watt) dvfsmodel.Point, ok bool) {
	standard, base := &s.Standard, s.Fitted.Base
	free := m.Under(s.Limit).At(base.Core, base.Mem)
	if !IsPossible(&free) {
		return nil, false
	}
	// Both models are of the same runs: their default is the same.
	time, power := standard.Time/free.Time, float64(standard.Power/free.Power)
	return func(core, mem dvfsmodel.MHz, w dvfsmodel.Watt) dvfsmodel.Point {
		pt := m.Under(w).At(core, mem)
		pt.Time, pt.Power = pt.Time*time, pt.Power*dvfsmodel.Watt(power)
		if core <= base.Core && mem <= base.Mem {
			pt.Time = max(pt.Time, standard.Time)
		}
		pt.Energy = pt.Power.Over(pt.Time)
		return pt
	}, true
}

// fitsCapped reports whether a run is sure to end within the limit, seconds, by the model of clocks and
// power limit.
func (s *SafeResponse) fitsCapped(m *Capped, pt *dvfsmodel.Point, limit float64) bool {
	margin := max(m.Margin, s.TimeMargin)
	return dvfsmodel.MeetsLimit(pt.Time*(1+max(margin, s.LimitMargin)), limit) &&
		dvfsmodel.MeetsLimit(pt.Time*(1+margin), s.slowestTime())
}

// UnderCap returns the point at clocks that are asked for under a power limit: by the model of both, or
// where m is nil by that of clocks alone. False: a run there isn't sure to end within the limit, seconds,
// by each model that there is.
func (s *SafeResponse) UnderCap(
	m *Capped, at dvfsmodel.Setting, limit float64,
) (dvfsmodel.Point, bool) {
	under := *s
	under.Cap = at.Cap
	pt := under.At(at.Core, at.Mem)
	if !IsPossible(&pt) || !under.Fits(&pt, limit) {
		return pt, false
	}
	if m != nil {
		predict, ok := s.cappedPredictor(m)
		if !ok {
			return pt, false
		}
		pt = predict(at.Core, at.Mem, at.Cap)
		if pt.Cap = at.Cap; !IsPossible(&pt) || !s.fitsCapped(m, &pt, limit) {
			return pt, false
		}
	}
	pt.Core = at.Core // though the limit leaves it a lower one
	return pt, under.Fits(&pt, limit)
}
