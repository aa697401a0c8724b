package dvfsmodel

import "math"

// MinTime returns the shortest run time in the range, seconds, at its highest clocks.
func (r Range) MinTime(p Params) float64 { return p.Time(r.FcMax(), r.FmMax) }

// Optimum returns the setting of the range that costs least under the objective
// with a run time of at most limit seconds (+Inf: no limit). With the zero
// objective it is the paper's optimum: EDL eq. (9) free, and the
// deadline-constrained one of §4.1 when the limit binds; then Time is the
// limit itself.
//
// It returns an [InfeasibleError] when the limit is below [Range.MinTime].
//
// Where the cost does not depend on a clock (γ = 0 and δ = 1, or c = 0 and
// δ = 0), the lowest is chosen.
func (r Range) Optimum(p Params, o Objective, limit float64) (Point, error) {
	fcMax := r.FcMax()
	if minTime := p.Time(fcMax, r.FmMax); !MeetsLimit(minTime, limit) {
		return Point{}, &InfeasibleError{Limit: limit, MinTime: minTime}
	}
	pt := r.freeOptimumFor(p, o)
	if pt.Time <= limit {
		return pt, nil
	}
	return r.AtLimit(p, limit), nil
}

// FreeOptimum returns the setting of least energy when time does not matter: EDL eq. (9).
func (r Range) FreeOptimum(p Params) Point { return r.freeOptimumFor(p, Objective{}) }

// freeOptimumFor returns the best setting under an objective when there is no limit.
func (r Range) freeOptimumFor(p Params, o Objective) Point {
	price := o.timePrice()
	if math.IsInf(price, 1) {
		return r.fastest(p)
	}
	s := freeSearch{r: r, k: float64(o.DelayPower + 1)}
	s.time, s.core, s.mem = p.seconds()
	s.power, s.gamma, s.law = p.watts()
	s.power += price
	fc := findRoot(s.slope, r.FcMin, r.FcMax())
	w, _ := r.corePower(s.law, fc)
	return p.At(Scaling{V: r.Voltage(fc), Fc: fc, Fm: s.bestFm(fc, w)})
}

// fastest returns the cheapest setting among those of least time: clocks that the
// time does not depend on stay low.
func (r Range) fastest(p Params) Point {
	s := Scaling{Fc: r.FcMin, Fm: r.FmMin}
	_, core, mem := p.seconds()
	if core > 0 {
		s.Fc = r.FcMax()
	}
	if mem > 0 {
		s.Fm = r.FmMax
	}
	s.V = r.Voltage(s.Fc)
	return p.At(s)
}

// freeSearch minimises P·t^k over the range. For a fixed core clock the best
// memory clock has a closed form, and what is left has one minimum: log P and
// log t are convex in the logarithms of the clocks.
type freeSearch struct {
	r               Range
	k               float64 // exponent of t: 1 for energy
	time, core, mem float64 // of [Params.seconds]
	power, gamma    float64 // of [Params.watts], with the price of time added
	law             corePower
}

// slope has the sign of dlog(P·t^k)/dfc along the best memory clock.
func (s *freeSearch) slope(fc float64) float64 {
	w, dw := s.r.corePower(s.law, fc)
	fm := s.bestFm(fc, w)
	power := s.power + s.gamma*fm + s.law.unit*w
	time := s.time + s.core/fc + s.mem/fm
	return s.law.unit*dw*time*fc*fc - s.k*s.core*power
}

// bestFm returns the cheapest memory clock at a core clock, w the core's power there: the root of
// γB·fm² + γa(1−k)·fm − k·a·A = 0 with A the power and B the time that the
// memory clock does not change, a = D(1−δ). For k = 1 it is fξ of EDL §4.1.
func (s *freeSearch) bestFm(fc, w float64) float64 {
	if s.mem == 0 {
		return s.r.FmMin
	}
	if s.gamma == 0 {
		return s.r.FmMax
	}
	a := s.power + s.law.unit*w
	b := s.time + s.core/fc
	if s.k == 1 {
		return clamp(math.Sqrt(a*s.mem/(s.gamma*b)), s.r.FmMin, s.r.FmMax)
	}
	// Positive root of x² − 2h·x − q = 0; it may be +Inf when b is 0.
	h := s.mem * (s.k - 1) / (2 * b)
	q := s.k * s.mem * a / (s.gamma * b)
	return clamp(h+math.Sqrt(h*h+q), s.r.FmMin, s.r.FmMax)
}

// corePower returns the power at the cheapest voltage for fc, in its units, and its derivative
// by fc.
func (r Range) corePower(law corePower, fc float64) (w, dw float64) {
	v := float64(r.VMin)
	if onCurve, dv := curveAt(fc); fc > curveF0 && onCurve > v {
		return law.at(fc, onCurve), law.slope(fc, onCurve, dv)
	}
	if v < curveV0 {
		v = curveV0
	}
	return law.at(fc, v), law.slope(fc, v, 0)
}

// AtLimit returns the cheapest setting whose run time is exactly limit seconds. The
// caller has made sure that the limit is at least [Range.MinTime] and at most
// the time of the free optimum. On the curve t(fc, fm) = limit the power is
// convex in fc, whatever the objective, because the time is fixed.
func (r Range) AtLimit(p Params, limit float64) Point {
	still, core, mem := p.seconds()
	scaled := limit - still // seconds left for the part that the clocks scale
	fcMax := r.FcMax()
	var s Scaling
	switch {
	case mem == 0:
		s.Fc = clamp(core/scaled, r.FcMin, fcMax)
		s.Fm = r.FmMin
	case core == 0:
		s.Fc = r.FcMin
		s.Fm = clamp(mem/scaled, r.FmMin, r.FmMax)
	default:
		lo, hi := r.FcMin, fcMax
		if rest := scaled - mem/r.FmMax; rest > 0 {
			lo = clamp(core/rest, lo, hi)
		} else {
			lo = hi
		}
		if rest := scaled - mem/r.FmMin; rest > 0 {
			hi = clamp(core/rest, lo, hi)
		}
		_, gamma, law := p.watts()
		s.Fc = r.cheapestCore(core, mem, gamma, law, scaled, lo, hi)
		s.Fm = clamp(mem/(scaled-core/s.Fc), r.FmMin, r.FmMax)
	}
	s.V = r.Voltage(s.Fc)
	return pointAt(p, s, limit)
}

// cheapestCore returns the core clock in [lo, hi] of least power along the curve
// t(fc, fm) = limit, where scaled is the limit less the seconds that no clock
// changes. With u·W the power that follows the core clock ([corePower]), A and B the
// seconds that scale with the clocks and γ the watts by the memory clock, the power
// falls as long as
//
//	√W′·(scaled·fc − A) < √(γ·A·B/u).
//
// At the lowest voltage W′ is constant. Above it, on the V(f) curve, the left
// side rises and is convex: wherever Newton's method starts, its steps come
// down to the root from the second one on.
func (r Range) cheapestCore(core, mem, gamma float64, law corePower, scaled, lo, hi float64) float64 {
	turn := gamma * core * mem
	_, dw := r.corePower(law, lo)
	if rest := scaled*lo - core; law.unit*dw*rest*rest >= turn {
		return lo
	}
	if law.unit == 0 {
		return hi
	}
	turn = math.Sqrt(turn / law.unit)
	fc := lo
	if kink := MaxCoreClock(r.VMin); lo < kink { // up to here the lowest voltage will do
		if flat := (core + turn/math.Sqrt(dw)) / scaled; flat <= kink {
			return min(flat, hi)
		}
		lo = min(kink, hi)
		fc = lo
	}
	for range newtonSteps {
		v, dv := curveAt(fc)
		dw := law.slope(fc, v, dv)
		root := math.Sqrt(dw)
		rest := scaled*fc - core
		last := fc
		fc = clamp(fc-2*root*(root*rest-turn)/(2*dw*scaled+law.bend(fc, v, dv, curveBend)*rest), lo, hi)
		if math.Abs(fc-last) <= newtonTol*fc {
			break
		}
	}
	return fc
}

const (
	newtonSteps = 60 // far more than are needed: it only keeps a fault from looping
	// newtonTol is the relative step that ends Newton's method: the error after a
	// step is about its square.
	newtonTol = 1e-8
)

// MaxTime returns the longest run time in the range, seconds, at its lowest clocks.
func (r Range) MaxTime(p Params) float64 { return p.Time(r.FcMin, r.FmMin) }

// ForTime returns the cheapest setting of the range whose run time is exactly t
// seconds, be that shorter or longer than at the free optimum. ok is false
// when no setting takes that time: t is below [Range.MinTime] or above
// [Range.MaxTime].
//
// With the time fixed, the energy is the power times a constant. Along the
// curve t(fc, fm) = t the memory clock is D(1−δ)·fc/((t−t0)·fc − Dδ), which is
// convex in fc, and so is V²·fc. The power therefore has one minimum there,
// at any time that the range can take, and [Range.AtLimit] finds it.
func (r Range) ForTime(p Params, t float64) (pt Point, ok bool) {
	if !MeetsLimit(r.MinTime(p), t) || !MeetsLimit(t, r.MaxTime(p)) {
		return Point{}, false
	}
	if _, core, mem := p.seconds(); core == 0 && mem == 0 {
		return r.FreeOptimum(p), true
	}
	return r.AtLimit(p, t), true
}

// findRoot finds where f, which changes sign at most once and from − to +, crosses
// zero in [lo, hi]: lo when it is not negative there, hi when it is not
// positive there. The method is Ridders' false position, which keeps its
// bracket and converges quadratically on smooth functions: when a step is below
// rootTol, what is left is below rounding.
func findRoot(f func(float64) float64, lo, hi float64) float64 {
	flo := f(lo)
	if flo >= 0 || lo >= hi {
		return lo
	}
	fhi := f(hi)
	if fhi <= 0 {
		return hi
	}
	last := math.NaN()
	for range rootSteps {
		mid := 0.5 * (lo + hi)
		fmid := f(mid)
		if fmid == 0 {
			return mid
		}
		x := mid - (mid-lo)*fmid/math.Sqrt(fmid*fmid-flo*fhi)
		if math.Abs(x-last) <= rootTol*x {
			return x
		}
		last = x
		fx := f(x)
		switch {
		case fx == 0:
			return x
		case fx < 0 && fmid > 0:
			lo, flo, hi, fhi = x, fx, mid, fmid
		case fx > 0 && fmid < 0:
			lo, flo, hi, fhi = mid, fmid, x, fx
		case fx < 0:
			lo, flo = x, fx
		default:
			hi, fhi = x, fx
		}
		if hi-lo <= bracketTol*hi {
			return 0.5 * (lo + hi)
		}
	}
	return 0.5 * (lo + hi)
}

const (
	rootSteps  = 60    // far more than the half dozen that smooth functions take
	rootTol    = 1e-13 // relative change from one step to the next
	bracketTol = 4e-16 // relative width of the bracket: two units in the last place
)

func isPositive(x float64) bool { return x > 0 && !math.IsInf(x, 0) }

// clamp is x, or the bound of [lo, hi] that is next to it.
func clamp(x, lo, hi float64) float64 { return min(max(x, lo), hi) }
