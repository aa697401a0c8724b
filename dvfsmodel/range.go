package dvfsmodel

import (
	"fmt"
	"math"
)

// Range is a continuous scaling interval of normalised voltage and clocks. The
// highest core clock is what the highest voltage carries, [Range.FcMax].
type Range struct {
	VMin, VMax   Volt
	FcMin        float64 // core clock
	FmMin, FmMax float64 // memory clock
}

// WideRange returns the interval of the paper's simulations (EDL §5.1.1).
func WideRange() Range { return Range{VMin: 0.5, VMax: 1.2, FcMin: 0.5, FmMin: 0.5, FmMax: 1.2} }

// NarrowRange returns the interval of the paper's GTX 1080 Ti (EDL §5.1.1).
func NarrowRange() Range { return Range{VMin: 0.8, VMax: 1.24, FcMin: 0.89, FmMin: 0.8, FmMax: 1.1} }

// RangeByName returns the interval called "wide" or "narrow".
func RangeByName(name string) (Range, error) {
	switch name {
	case "wide":
		return WideRange(), nil
	case "narrow":
		return NarrowRange(), nil
	}
	return Range{}, fmt.Errorf("unknown range %q, want wide or narrow", name)
}

// FcMax returns the highest normalised core clock of the range, g1(VMax).
func (r Range) FcMax() float64 { return MaxCoreClock(r.VMax) }

// Voltage returns the cheapest voltage of the range for a core clock.
func (r Range) Voltage(fc float64) Volt { return max(r.VMin, VoltageFor(fc)) }

// Contains reports whether a setting lies in the range and on or below the V(f)
// curve, up to the relative tolerance tol.
func (r Range) Contains(s Scaling, tol float64) bool {
	within := func(x, lo, hi float64) bool { return x >= lo*(1-tol) && x <= hi*(1+tol) }
	return within(float64(s.V), float64(r.VMin), float64(r.VMax)) &&
		within(s.Fc, r.FcMin, r.FcMax()) &&
		within(s.Fm, r.FmMin, r.FmMax) &&
		s.V >= VoltageFor(s.Fc)*Volt(1-tol)
}

// Validate reports an empty or impossible range.
func (r Range) Validate() error {
	for _, x := range []float64{float64(r.VMin), float64(r.VMax), r.FcMin, r.FmMin, r.FmMax} {
		if !(x > 0) || math.IsInf(x, 0) {
			return fmt.Errorf("range bound %v, want a positive number", x)
		}
	}
	switch {
	case r.VMin > r.VMax:
		return fmt.Errorf("lowest voltage %v is above the highest, %v", r.VMin, r.VMax)
	case r.FmMin > r.FmMax:
		return fmt.Errorf("lowest memory clock %v is above the highest, %v", r.FmMin, r.FmMax)
	case r.FcMin > r.FcMax():
		return fmt.Errorf("lowest core clock %v is above the highest, %v, that %v V carries", r.FcMin,
			r.FcMax(), r.VMax)
	}
	return nil
}
