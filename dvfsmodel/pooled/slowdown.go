package pooled

import (
	"math"

	"github.com/epplan/epplan/dvfsmodel"
)

// BestWithin returns [Belief.Best] of the allowed settings (nil: all) at which a run surely takes at most
// so much longer, as a fraction, than at the fastest allowed setting: by the upper bound of the believed
// ratio of their times. Lower clocks and caps are never taken to be faster, so the highest ones are the
// fastest and always qualify. A slowdown of +Inf allows everything.
func (b *Belief) BestWithin(slowdown float64, allowed func(i int) bool) int {
	if math.IsInf(slowdown, 1) {
		return b.Best(allowed)
	}
	isAllowed := func(i int) bool { return allowed == nil || allowed(i) }
	var highest []int
	for i := range b.settings {
		if isAllowed(i) && !b.hasHigher(i, isAllowed) {
			highest = append(highest, i)
		}
	}
	limit := math.Log1p(slowdown)
	return b.Best(func(i int) bool {
		return isAllowed(i) && b.slowdownBound(i, highest) <= limit
	})
}

// hasHigher reports whether an allowed setting is higher than the i-th in one clock and lower in none.
func (b *Belief) hasHigher(i int, allowed func(i int) bool) bool {
	at := &b.settings[i]
	for k := range b.settings {
		if other := &b.settings[k]; k != i && other.Core >= at.Core && other.Mem >= at.Mem && allowed(k) {
			return true
		}
	}
	return false
}

// slowdownBound returns the upper end of the 90 % interval of the logarithm of the time at a setting over
// the time at other ones, and the largest of those. The covariance comes from so many known workloads,
// which Student's distribution takes into account.
func (b *Belief) slowdownBound(i int, others []int) float64 {
	sigmas := dvfsmodel.UpperSigmas
	if b.around != nil {
		sigmas *= dvfsmodel.StudentWidening(len(b.known) - 1)
	}
	bound, scale, row := 0.0, b.varianceScale(), b.joint.row(i)
	for _, k := range others {
		if k == i {
			continue
		}
		variance := row[i] + b.joint.row(k)[k] - 2*row[k]
		bound = max(bound, b.joint.mean[i]-b.joint.mean[k]+sigmas*math.Sqrt(max(0, scale*variance)))
	}
	return bound
}
