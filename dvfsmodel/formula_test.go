package dvfsmodel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// drawn are coefficients that no two tests should have to know.
func drawn(rng *rand.Rand) Params {
	var p Params
	for i, v := range p.values() {
		*v = (0.1 + rng.Float64()) * min(100, params[i].Max) / 2
	}
	return p
}

// determined returns the coefficients without those that files may have but no fit finds.
func determined(p Params) Params {
	for i, v := range p.values() {
		if params[i].Optional && params[i].linear == "" {
			*v = 0
		}
	}
	return p
}

// TestPartsOfTheFormulaAddUp holds what the searches ask for against what time and power
// are.
func TestPartsOfTheFormulaAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		if math.Abs(got-want) > tolerance*math.Abs(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	for range 100 {
		p := drawn(rng)
		fc, fm := 0.55+0.5*rng.Float64(), 0.5+0.6*rng.Float64()
		v, dv := curveAt(fc)
		still, core, mem := p.seconds()
		near("time", still+core/fc+mem/fm, p.Time(fc, fm), 1e-12)
		near("time at default clocks", p.DefaultTime(), p.Time(1, 1), 1e-12)
		watts, memWatts, law := p.watts()
		power := func(fc float64) float64 {
			v, _ := curveAt(fc)
			return float64(p.Power(Scaling{V: Volt(v), Fc: fc, Fm: fm}))
		}
		near("power", watts+memWatts*fm+law.unit*law.at(fc, v), power(fc), 1e-12)
		const step = 1e-4
		near("slope of the power", law.unit*law.slope(fc, v, dv),
			(power(fc+step)-power(fc-step))/(2*step), 1e-5)
		near("bend of the power", law.unit*law.bend(fc, v, dv, curveBend),
			(power(fc+step)-2*power(fc)+power(fc-step))/(step*step), 1e-4)
		line := p.line(fm, 7)
		near("energy along a line", line.cost(&coreStep{w: v * v * fc, inv: 1 / fc, fc: fc, v: Volt(v)}),
			(power(fc)+7)*p.Time(fc, fm), 1e-12)
		p = determined(p)
		time, fitted := p.linearCoefficients()
		tc, pc := fittedCurve{shape: paperTime, coef: time}, fittedCurve{shape: paperPower, coef: fitted}
		near("time as fits have it", tc.at(fc, fm), p.Time(fc, fm), 1e-12)
		near("power as fits have it", pc.at(fc, fm), power(fc), 1e-12)
		again := paramsFromLinear(&time, &fitted)
		for i, x := range again.values() {
			near(params[i].Name+" of a fit", *x, *p.values()[i], 1e-12)
		}
		if back, err := ParamsFrom(p.Coefficients()); err != nil || back != p {
			t.Errorf("read back %+v (%v), want %+v", back, err, p)
		}
	}
}

func TestWorkRepeatedHasTheSameShape(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	wide, same := WideRange(), 0
	const count = 100
	for range count {
		p := drawn(rng)
		shape, ok := ShapeOf(&Continuous{Params: p, Range: &wide})
		if again, _ := ShapeOf(&Continuous{Params: p.Scale(3.7), Range: &wide}); ok && again == shape {
			same++
		}
		for i, v := range p.values() {
			if i == IndexOfD {
				continue
			}
			was := *v
			*v *= 0.9
			if other, _ := ShapeOf(&Continuous{Params: p, Range: &wide}); other == shape ||
				other.hash(0) == shape.hash(0) {
				t.Errorf("with another %s the shape is the same, or its hash", params[i].Name)
			}
			*v = was
		}
	}
	if most := count * 9 / 10; same < most { // a few are next to where the ratio is cut off
		t.Errorf("%d of %d repeated have the same shape, want %d at least", same, count, most)
	}
}

func TestACoefficientThatMayBeLeftOutIsMissedByNobody(t *testing.T) {
	p := drawn(rand.New(rand.NewPCG(5, 6)))
	needed := slices.IndexFunc(params[:], func(c Param) bool { return !c.Optional })
	list := slices.Delete(p.Coefficients(), needed, needed+1)
	if _, err := ParamsFrom(list); err == nil {
		t.Error("no error though the coefficient is needed")
	}
	params[needed].Optional = true
	t.Cleanup(func() { params[needed].Optional = false })
	if got, err := ParamsFrom(list); err != nil || *got.Value(needed) != 0 {
		t.Errorf("%+v (%v), want 0 where nothing is said", got, err)
	}
}

// TestATermThatNoFitDetermines is one that files may have and that is 0 elsewhere.
func TestATermThatNoFitDetermines(t *testing.T) {
	shapes := powerShapes
	t.Cleanup(func() { powerShapes = shapes })
	powerShapes = append(slices.Clone(shapes), &shape{
		name: "more", positive: true, single: []int{0}, given: []int{2},
		terms: []string{"p0_w", "gamma_w", "more_w"},
		row:   func(dst *[maxTerms]float64, fc, fm, _ float64) { *dst = [maxTerms]float64{1, fm, fc} },
	})
	base := Setting{Core: 1000, Mem: 1000}
	list := []Coefficient{
		{Name: "time.t0_s", Value: 1},
		{Name: "time.core_s", Value: 1},
		{Name: "time.mem_s", Value: 1},
		{Name: "power.p0_w", Value: 10},
		{Name: "power.gamma_w", Value: 5},
		{Name: "power.more_w", Value: 3},
	}
	form := Form{Time: namePaper, Power: "more"}
	for n, want := range map[int]Watt{5: 15, 6: 18} {
		f, err := NewFitted(form, base, list[:n])
		if err != nil {
			t.Fatal(err)
		}
		if got := f.At(1000, 1000).Power; got != want {
			t.Errorf("with %d coefficients %v W, want %v", n, got, want)
		}
		if got := f.Coefficients(); !slices.Equal(got, list[:n]) {
			t.Errorf("coefficients %+v, want %+v", got, list[:n])
		}
	}
	samples := []Sample{
		{Core: 600, Mem: 800, Time: 3, Power: 12},
		{Core: 800, Mem: 1000, Time: 2, Power: 14},
		{Core: 1000, Mem: 800, Time: 2.2, Power: 15},
		{Core: 900, Mem: 900, Time: 2.1, Power: 14.5},
		{Core: 700, Mem: 1000, Time: 2.5, Power: 13},
	}
	f, err := Fit(samples, base, &FitOptions{Forms: []Form{form}})
	if err != nil {
		t.Fatal(err)
	}
	if f.power.coef[2] != 0 || len(f.Coefficients()) != 5 {
		t.Errorf("a fit gave it %v", f.power.coef[2])
	}
}
