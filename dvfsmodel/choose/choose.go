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

// NoFaster is the prediction at clocks, where no lower ones than the standard ones make a
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

// UpperTime is the time that a run at a point takes at most, seconds, with at least such a
// margin. Below the measured clocks it is that of a run that follows the clocks
// altogether: nothing can be slowed down more by them.
func (m *Model) UpperTime(pt *dvfsmodel.Point, margin float64) float64 {
	edge := m.clampToMeasured(pt)
	slower := float64(max(1, edge.Core/pt.Core) * max(1, edge.Mem/pt.Mem))
	return max(pt.Time, edge.Time*slower) * (1 + max(m.Margin, margin))
}

// LowerTime is the time that a run at a point takes at least, seconds.
func (m *Model) LowerTime(pt *dvfsmodel.Point, margin float64) float64 {
	edge := m.clampToMeasured(pt)
	faster := float64(min(1, edge.Core/pt.Core) * min(1, edge.Mem/pt.Mem))
	return min(pt.Time, edge.Time*faster) / (1 + max(m.Margin, margin))
}

// clampToMeasured is the nearest point within the measured clocks.
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
}

var _ dvfsmodel.Response = (*SafeResponse)(nil)

// Default is the point at the default clocks.
func (s *SafeResponse) Default() dvfsmodel.Point { return s.Standard }

// Model predicts as the fitted model does, and no lower clocks as faster.
func (s *SafeResponse) Model() dvfsmodel.Model {
	return dvfsmodel.NoFaster(s.Fitted.Fitted, s.Standard.Scaling)
}

// RequiredTime is the time that a run at a point must fit into, seconds.
func (s *SafeResponse) RequiredTime(pt *dvfsmodel.Point) float64 {
	return max(s.Fitted.UpperTime(pt, s.TimeMargin), pt.Time*(1+s.LimitMargin))
}

// Fits reports whether a run at a point is sure to end within so many seconds, and not
// much later than at default clocks.
func (s *SafeResponse) Fits(pt *dvfsmodel.Point, limit float64) bool {
	return dvfsmodel.MeetsLimit(s.RequiredTime(pt),
		min(limit, s.Fitted.UpperTime(&s.Standard, s.TimeMargin)*s.Stretch))
}

// At is the prediction at clocks.
func (s *SafeResponse) At(core, mem dvfsmodel.MHz) dvfsmodel.Point {
	return s.Fitted.NoFaster(core, mem, &s.Standard)
}

// MinTime is the shortest time that a run must fit into, seconds.
func (s *SafeResponse) MinTime() float64 {
	shortest := s.RequiredTime(&s.Standard)
	for _, at := range s.Settings {
		if pt := s.At(at.Core, at.Mem); s.Fitted.Covers(&pt) {
			shortest = min(shortest, s.RequiredTime(&pt))
		}
	}
	return shortest
}

// Optimum is the cheapest point whose run is sure to end within the limit, seconds; of
// those that cost the same the fastest.
func (s *SafeResponse) Optimum(o dvfsmodel.Objective, limit float64) (dvfsmodel.Point, error) {
	var best dvfsmodel.Point
	least := math.Inf(1)
	consider := func(pt dvfsmodel.Point) {
		if !s.Fitted.Covers(&pt) || !s.Fits(&pt, limit) {
			return
		}
		if cost := o.Cost(pt); cost < least || (cost == least && pt.Time < best.Time) {
			best, least = pt, cost
		}
	}
	consider(s.Standard)
	for _, at := range s.Settings {
		consider(s.At(at.Core, at.Mem))
	}
	if math.IsInf(least, 1) {
		return best, &dvfsmodel.InfeasibleError{Limit: limit, MinTime: s.MinTime()}
	}
	return best, nil
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
