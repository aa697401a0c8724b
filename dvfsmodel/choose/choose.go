// Package choose is the choice of clocks where a prediction that is a little wrong
// breaks a promise: of the settings that may be set, the one that costs least among
// those whose run is sure to end in time. It answers as a [dvfsmodel.Response], as
// what plans ask does: a plan that goes by predictions alone asks a
// [dvfsmodel.Frontier] of the same model instead.
//
// The two differ in what they are told, not in how they choose: without margins,
// stretch and bounds of what was measured, both choose the same clocks.
package choose

import (
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
)

// Model is a fitted model of a workload on a GPU model, and how far it is trusted.
type Model struct {
	*dvfsmodel.Fitted

	// Low and High are the clocks between which runs were measured.
	Low, High dvfsmodel.Setting
	// Margin is the ratio of run time to prediction, less 1, that runs seldom exceed.
	Margin float64
}

// NoFaster returns the prediction at clocks, where no lower ones than the standard ones make a
// run faster, whatever curves through a few samples say.
func (m *Model) NoFaster(core, mem dvfsmodel.MHz, standard *dvfsmodel.Point) dvfsmodel.Point {
	pt := m.At(core, mem)
	if core <= standard.Core && mem <= standard.Mem && pt.Time < standard.Time {
		pt.Time = standard.Time
		pt.Energy = pt.Power.Over(pt.Time)
	}
	return pt
}

// Covers reports whether a prediction can be used: it is possible, and no guess is made
// about memory clocks beyond the measured ones.
func (m *Model) Covers(pt *dvfsmodel.Point) bool {
	return pt.Mem >= m.Low.Mem && pt.Mem <= m.High.Mem && IsPossible(pt)
}

// maxJoules is far above what any job takes, joules; NaN and infinity aren't below it.
const maxJoules = 1e18

// IsPossible reports whether a prediction is one of positive, finite numbers.
func IsPossible(pt *dvfsmodel.Point) bool {
	return pt.Time > 0 && pt.Power > 0 && pt.Energy > 0 && float64(pt.Energy) < maxJoules
}

// UpperTime returns the time that a run at a point takes at most, seconds, with at least such a
// margin. Below the measured clocks it is that of a run that follows the clocks
// altogether: nothing can be slowed down more by them.
func (m *Model) UpperTime(pt *dvfsmodel.Point, margin float64) float64 {
	edge := m.clampToMeasured(pt)
	slower := float64(max(1, edge.Core/pt.Core) * max(1, edge.Mem/pt.Mem))
	return max(pt.Time, edge.Time*slower) * (1 + max(m.Margin, margin))
}

// LowerTime returns the time that a run at a point takes at least, seconds.
func (m *Model) LowerTime(pt *dvfsmodel.Point, margin float64) float64 {
	edge := m.clampToMeasured(pt)
	faster := float64(min(1, edge.Core/pt.Core) * min(1, edge.Mem/pt.Mem))
	return min(pt.Time, edge.Time*faster) / (1 + max(m.Margin, margin))
}

// clampToMeasured returns the nearest point within the measured clocks.
func (m *Model) clampToMeasured(pt *dvfsmodel.Point) dvfsmodel.Point {
	core := min(max(pt.Core, m.Low.Core), m.High.Core)
	mem := min(max(pt.Mem, m.Low.Mem), m.High.Mem)
	if core == pt.Core && mem == pt.Mem {
		return *pt
	}
	return m.At(core, mem)
}

// SafeResponse responds by the upper bounds of a model.
type SafeResponse struct {
	Fitted   *Model
	Settings []dvfsmodel.Setting // that may be set
	Standard dvfsmodel.Point     // predicted at the default clocks, which are always allowed
	// TimeMargin is the least margin of upper bounds, LimitMargin that of predictions:
	// a run time × (1 + LimitMargin) must fit, too.
	TimeMargin, LimitMargin float64
	// Stretch is how many times as long as at default clocks a run may take, both at most.
	Stretch float64

	// Limit is the power limit that GPUs are under anyway, and Cap one that is set for the run; 0:
	// none. Above the clock that a limit allows a GPU runs at that clock.
	Limit, Cap dvfsmodel.Watt
	// Ladder is the clocks that a GPU under a limit may run at, up by memory clock and then by
	// core clock.
	Ladder []dvfsmodel.Setting
	// ByCap, if it isn't zero, is the range of power limits that hold a GPU at a clock in place
	// of a lock, each of as much as a run draws there by prediction.
	ByCap dvfsmodel.CapRange
}

var _ dvfsmodel.Response = (*SafeResponse)(nil)

// Default returns the point at the default clocks.
func (s *SafeResponse) Default() dvfsmodel.Point { return s.Standard }

// Model predicts as the fitted model does, and no lower clocks as faster.
func (s *SafeResponse) Model() dvfsmodel.Model {
	return dvfsmodel.NoFaster(s.Fitted.Fitted, s.Standard.Scaling)
}

// UpperTime returns the time that a run at a point takes at most, seconds. Where a power limit is set,
// it is that of the clock that the limit leaves a run which draws more than predicted, by as large
// a part as its time may be longer.
func (s *SafeResponse) UpperTime(pt *dvfsmodel.Point) float64 {
	upper := s.Fitted.UpperTime(pt, s.TimeMargin)
	if pt.Cap > 0 {
		more := 1 + max(s.Fitted.Margin, s.TimeMargin)
		slowest := s.Under(pt.Core, pt.Mem, pt.Cap/dvfsmodel.Watt(more))
		upper = max(upper, s.Fitted.UpperTime(&slowest, s.TimeMargin))
	}
	return upper
}

// RequiredTime returns the time that a run at a point must fit into, seconds.
func (s *SafeResponse) RequiredTime(pt *dvfsmodel.Point) float64 {
	return max(s.UpperTime(pt), pt.Time*(1+s.LimitMargin))
}

// Fits reports whether a run at a point is sure to end within so many seconds, and not
// much later than at default clocks. The margin of limits is none of run times: default clocks
// are never too slow.
func (s *SafeResponse) Fits(pt *dvfsmodel.Point, limit float64) bool {
	return dvfsmodel.MeetsLimit(s.RequiredTime(pt), limit) &&
		dvfsmodel.MeetsLimit(s.UpperTime(pt), s.slowestTime())
}

// LongestTime returns how long a run may take that must end within so many seconds.
func (s *SafeResponse) LongestTime(limit float64) float64 { return min(limit, s.slowestTime()) }

// slowestTime returns how long a run may take whatever its limit.
func (s *SafeResponse) slowestTime() float64 {
	return s.Fitted.UpperTime(&s.Standard, s.TimeMargin) * s.Stretch
}

// Admits reports whether a run may be at a point: it can be set, its prediction can be used, and
// the run is sure to end within so many seconds.
func (s *SafeResponse) Admits(pt *dvfsmodel.Point, limit float64) bool {
	return s.Fitted.Covers(pt) && s.canSet(pt) && s.Fits(pt, limit)
}

// At returns the prediction at clocks, under the power limits that there are.
func (s *SafeResponse) At(core, mem dvfsmodel.MHz) dvfsmodel.Point {
	limit := s.Limit
	if s.Cap > 0 && (limit == 0 || s.Cap < limit) {
		limit = s.Cap
	}
	pt := s.Under(core, mem, limit)
	pt.Cap = s.Cap
	if s.ByCap != (dvfsmodel.CapRange{}) && (core != s.Standard.Core || mem != s.Standard.Mem) {
		pt.Cap = dvfsmodel.Watt(math.Ceil(float64(pt.Power)))
	}
	return pt
}

// Under returns the prediction at clocks, or at the highest core clock below at which a run keeps a power
// limit, or at the lowest if it keeps it nowhere; 0: no limit.
func (s *SafeResponse) Under(core, mem dvfsmodel.MHz, limit dvfsmodel.Watt) dvfsmodel.Point {
	pt := s.Fitted.NoFaster(core, mem, &s.Standard)
	if !(limit > 0) {
		return pt
	}
	for _, at := range slices.Backward(s.Ladder) {
		if pt.Power <= limit {
			break
		}
		if at.Mem == mem && at.Core < pt.Core {
			pt = s.Fitted.NoFaster(at.Core, mem, &s.Standard)
		}
	}
	return pt
}

// canSet reports whether a point can be set: where caps hold clocks, the board takes its cap.
func (s *SafeResponse) canSet(pt *dvfsmodel.Point) bool {
	return s.ByCap == (dvfsmodel.CapRange{}) || pt.Cap == 0 || pt.Cap >= s.ByCap.Min && pt.Cap < s.ByCap.Max
}

// MinTime returns the shortest time that a run must fit into, seconds.
func (s *SafeResponse) MinTime() float64 {
	shortest := s.RequiredTime(&s.Standard)
	for _, at := range s.Settings {
		if pt := s.At(at.Core, at.Mem); s.Fitted.Covers(&pt) && s.canSet(&pt) {
			shortest = min(shortest, s.RequiredTime(&pt))
		}
	}
	return shortest
}

// Optimum returns the cheapest point whose run is sure to end within the limit, seconds; of
// those that cost the same the fastest.
func (s *SafeResponse) Optimum(o dvfsmodel.Objective, limit float64) (dvfsmodel.Point, error) {
	var best dvfsmodel.Point
	least := math.Inf(1)
	consider := func(pt dvfsmodel.Point) {
		if !s.Admits(&pt, limit) {
			return
		}
		if cost := o.Cost(pt); cost < least || (cost == least && pt.Time < best.Time) {
			best, least = pt, cost
		}
	}
	consider(s.At(s.Standard.Core, s.Standard.Mem))
	for _, at := range s.Settings {
		consider(s.At(at.Core, at.Mem))
	}
	if math.IsInf(least, 1) {
		return best, &dvfsmodel.InfeasibleError{Limit: limit, MinTime: s.MinTime()}
	}
	return best, nil
}

// NoSlower returns the point at wanted clocks, or else the cheapest at which a run takes no longer than it
// is predicted to take there; false: none may be set whose run is sure to end within the limit.
func (s *SafeResponse) NoSlower(
	wanted dvfsmodel.Setting, o dvfsmodel.Objective, limit float64,
) (dvfsmodel.Point, bool) {
	pt := s.At(wanted.Core, wanted.Mem)
	isStandard := wanted.Core == s.Standard.Core && wanted.Mem == s.Standard.Mem
	if (isStandard || slices.Contains(s.Settings, wanted)) && s.Admits(&pt, limit) {
		return pt, true
	}
	if !IsPossible(&pt) {
		return pt, false
	}
	faster := *s
	faster.Settings = slices.DeleteFunc(slices.Clone(s.Settings), func(pair dvfsmodel.Setting) bool {
		at := s.At(pair.Core, pair.Mem)
		return !(at.Time <= pt.Time)
	})
	best, err := faster.Optimum(o, limit)
	return best, err == nil && best.Time <= pt.Time
}

// Allows reports whether a setting is the default one, or one of those that may be set.
func (s *SafeResponse) Allows(at dvfsmodel.Scaling) bool {
	base, same := s.Fitted.Base, func(x, y float64) bool { return math.Abs(x-y) <= tolerance*y }
	is := func(core, mem dvfsmodel.MHz) bool {
		return same(at.Fc, float64(core/base.Core)) && same(at.Fm, float64(mem/base.Mem))
	}
	if is(s.Standard.Core, s.Standard.Mem) {
		return true
	}
	for _, pair := range s.Settings {
		if is(pair.Core, pair.Mem) {
			return true
		}
	}
	return false
}

// tolerance is the relative one of clocks that are the same.
const tolerance = 1e-9
