package dvfsmodel

import "math"

// root finds where f, which changes sign at most once and from − to +, crosses
// zero in [lo, hi]: lo when it is not negative there, hi when it is not
// positive there. The method is Ridders' false position, which keeps its
// bracket and converges quadratically on smooth functions: when a step is below
// rootTol, what is left is below rounding.
func root(f func(float64) float64, lo, hi float64) float64 {
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

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 0) }

// clamp is x, or the bound of [lo, hi] that is next to it.
func clamp(x, lo, hi float64) float64 { return min(max(x, lo), hi) }
