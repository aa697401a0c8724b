package dvfsmodel

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestForTimeIsTheCheapestSettingOfThatTime compares with a fine grid of core
// clocks along the curve of equal time, shorter and longer than the optimum.
func TestForTimeIsTheCheapestSettingOfThatTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom([]Range{WideRange(), NarrowRange()}).Draw(t, "range")
		p := Params{
			P0:    Watt(rapid.Float64Range(1, 100).Draw(t, "P0")),
			Gamma: Watt(rapid.Float64Range(0, 60).Draw(t, "gamma")),
			C:     Watt(rapid.Float64Range(0, 200).Draw(t, "c")), D: rapid.Float64Range(1, 300).Draw(t, "D"),
			Delta: rapid.SampledFrom([]float64{0, 0.07, 0.5, 0.91, 1}).Draw(t, "delta"),
			T0:    rapid.Float64Range(0, 20).Draw(t, "t0"),
		}
		low, high := r.MinTime(p), r.MaxTime(p)
		time := low + (high-low)*rapid.Float64Range(0, 1).Draw(t, "time")
		got, ok := r.ForTime(p, time)
		if !ok || got.Time != time || !r.Contains(got.Scaling, 1e-9) {
			t.Fatalf("%v s of %v to %v: %+v, %v", time, low, high, got, ok)
		}
		if at := p.Time(got.Scaling.Fc, got.Scaling.Fm); math.Abs(at/time-1) > 1e-9 {
			t.Fatalf("the setting takes %v s, want %v", at, time)
		}
		const steps = 2000
		for i := range steps + 1 {
			fc := r.FcMin + (r.FcMax()-r.FcMin)*float64(i)/steps
			fm := p.D * (1 - p.Delta) / (time - p.T0 - p.D*p.Delta/fc)
			if p.Delta == 1 {
				fc, fm = p.D/(time-p.T0), r.FmMin
			}
			s := Scaling{V: r.Voltage(fc), Fc: fc, Fm: fm}
			if r.Contains(s, 0) && float64(p.Power(s)) < float64(got.Power)*(1-1e-9) {
				t.Fatalf("%+v takes %v W, found %+v with %v W", s, p.Power(s), got.Scaling, got.Power)
			}
		}
	})
}

func TestForTimeRefusesTimesThatTheRangeCannotTake(t *testing.T) {
	r, p := WideRange(), Params{P0: 60, Gamma: 30, C: 100, D: 100, Delta: 0.5, T0: 5}
	for _, time := range []float64{0, r.MinTime(p) * 0.999, r.MaxTime(p) * 1.001, math.Inf(1), math.NaN()} {
		if pt, ok := r.ForTime(p, time); ok {
			t.Errorf("%v s: %+v, want none", time, pt)
		}
	}
}

func TestForTimeOfAJobThatNoClockChangesIsItsTime(t *testing.T) {
	r, p := WideRange(), Params{P0: 60, Gamma: 30, C: 100, T0: 5}
	if pt, ok := r.ForTime(p, 5); !ok || pt.Time != 5 {
		t.Errorf("%+v, %v, want 5 s", pt, ok)
	}
}
