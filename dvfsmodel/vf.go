package dvfsmodel

import "math"

// The curve fc_max = g1(V) that the paper fitted to a GTX 1080 Ti (EDL §5.1.1),
// g1(V) = sqrt((V−0.5)/2) + 0.5, and its inverse.
const (
	curveV0 = 0.5 // normalised voltage where the curve begins
	curveF0 = 0.5 // normalised core clock where the curve begins
	curveK  = 2   // V = curveV0 + curveK·(fc − curveF0)²
)

// MaxCoreClock is g1: the highest normalised core clock that the normalised
// core voltage carries. Below the start of the curve it is the clock there.
func MaxCoreClock(v Volt) float64 {
	if v <= curveV0 {
		return curveF0
	}
	return math.Sqrt((float64(v)-curveV0)/curveK) + curveF0
}

// VoltageFor returns the inverse of [MaxCoreClock]: the lowest normalised voltage
// that carries the normalised core clock.
func VoltageFor(fc float64) Volt {
	if fc <= curveF0 {
		return curveV0
	}
	x := fc - curveF0
	return Volt(curveV0 + curveK*x*x)
}

// curveAt returns the voltage of the curve at a normalised core clock above its start, and by
// how much it rises per unit of the clock.
func curveAt(fc float64) (v, dv float64) {
	x := fc - curveF0
	return curveV0 + curveK*x*x, 2 * curveK * x
}

// curveBend is by how much that slope rises per unit of the clock.
const curveBend = 2 * curveK
