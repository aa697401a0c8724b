package dvfsmodel

// MaxTime is the longest run time in the range, seconds, at its lowest clocks.
func (r Range) MaxTime(p Params) float64 { return p.Time(r.FcMin, r.FmMin) }

// ForTime is the cheapest setting of the range whose run time is exactly t
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
