package consolidate

import (
	"math"

	"github.com/epplan/epplan/planner/sharing"
)

// A sketch under a curve of contention counts how many pieces are on a GPU and
// how full its memory is, as [sharing.State] and [Evaluate] do. A piece alone is as fast as
// ever, so a GPU that sleeps keeps the SLA of any task that it has the memory
// for. To raise a load to the exponent takes long: what two straight lines agree
// on, one on each side of the curve, is decided by those.

// slopeSteps is how many slopes a GPU's load has, maxBeyond up to how many
// GPUs beyond the first.
const slopeSteps, maxBeyond = 8, 4

// slopesOf is the most slots that a slot takes for each slot of load beyond the
// first, where at most (i+1)/slopeSteps are beyond it: the curve's exponent is 1
// or more, so that chords lie above it and get steeper.
func slopesOf(c *sharing.Curve) []float64 {
	all := make([]float64, slopeSteps*maxBeyond)
	for i := range all {
		beyond := float64(i+1) / slopeSteps
		all[i] = (c.Work(1+beyond) - 1) / beyond
	}
	return all
}

// slowdownBounds are the least and the most that [sketch.slowdown] can be: by the
// curve's tangent where a GPU has just enough time, and by a chord from there.
func (k *scratchState) slowdownBounds(t *sampledTask, gpu int) (least, most float64) {
	over, top := 0.0, 0.0
	util := t.util
	for i, u := range k.load[gpu*k.slots:][:len(util)] {
		beyond := max(0, u+util[i]-fullPct)
		over += beyond
		top = max(top, beyond)
	}
	beside := k.interferenceWith(t, gpu)
	if over == 0 {
		return beside, beside
	}
	over /= fullPct * float64(k.slots)
	least, most = beside*(1+k.curve.Exponent*over), math.Inf(1)
	if i := int(top / fullPct * slopeSteps); i < len(k.slopes) {
		most = beside * (1 + k.slopes[i]*over)
	}
	return least, most
}

// slowdown is how many times as long as alone the tasks of a GPU take with
// another piece, by the curve.
func (k *scratchState) slowdown(t *sampledTask, gpu int) float64 {
	work, util := 0.0, t.util
	for i, u := range k.load[gpu*k.slots:][:len(util)] {
		work += k.curve.Work((u + util[i]) / fullPct)
	}
	return work / float64(k.slots) * k.interferenceWith(t, gpu)
}

// interferenceWith is what the pieces of a GPU with another one cost each other beside
// the overload.
func (k *scratchState) interferenceWith(t *sampledTask, gpu int) float64 {
	g, size := &k.on[gpu], k.gpus[gpu].MemGB
	return k.curve.OverheadFactor(&sharing.Occupancy{
		Tasks: k.pieces[gpu] + 1, Memory: min(1, max(0, (size-g.freeGB+t.memGB)/size)),
	})
}

// isFastEnough reports whether a GPU with a piece is no slower than that.
func (k *scratchState) isFastEnough(t *sampledTask, gpu int, kappa float64) bool {
	least, most := k.slowdownBounds(t, gpu)
	return most <= kappa || least <= kappa && k.slowdown(t, gpu) <= kappa
}

// lowestCurveW is the power at the lowest level at which a GPU with a piece keeps
// an SLA, watts.
func (k *scratchState) lowestCurveW(t *sampledTask, gpu int, kappa float64) float64 {
	least, most := k.slowdownBounds(t, gpu)
	if watts := k.lowestW(least, kappa); watts == k.lowestW(most, kappa) {
		return watts
	}
	return k.lowestW(k.slowdown(t, gpu), kappa)
}
