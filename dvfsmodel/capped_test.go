package dvfsmodel_test

import (
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/plannertest"
)

// cappedModel returns a workload on a GPU whose limit is 300 W by default.
func cappedModel(t *testing.T) *dvfsmodel.Fitted {
	t.Helper()
	return plannertest.CappedModel(t, dvfsmodel.Setting{Core: 1400, Mem: 1200, Cap: 300})
}

func cappedFrontier(t *testing.T, caps ...dvfsmodel.Watt) (*dvfsmodel.Frontier, *dvfsmodel.Table) {
	t.Helper()
	var pairs []dvfsmodel.Setting
	for core := dvfsmodel.MHz(800); core <= 1400; core += 100 {
		pairs = append(pairs, dvfsmodel.Setting{Core: core, Mem: 1200}, dvfsmodel.Setting{Core: core, Mem: 800})
	}
	table, err := dvfsmodel.NewTable(dvfsmodel.Setting{Core: 1400, Mem: 1200}, pairs, nil)
	if err != nil {
		t.Fatal(err)
	}
	return dvfsmodel.NewCappedFrontier(cappedModel(t), table, table.Nearest(1400, 1200), caps), table
}

func TestUnderACapNothingIsFasterAndNoMorePowerIsDrawn(t *testing.T) {
	m := cappedModel(t)
	for core := dvfsmodel.MHz(700); core <= 1400; core += 100 {
		last := m.At(core, 1200)
		for _, limit := range []dvfsmodel.Watt{280, 240, 200, 160, 120} {
			at := m.Under(limit).At(core, 1200)
			if at.Time < last.Time || at.Power > last.Power || at.Power > limit*1.0001 {
				t.Errorf("%v MHz under %v W: %v s at %v W, after %v s at %v W", core, limit, at.Time, at.Power,
					last.Time, last.Power)
			}
			last = at
		}
	}
	if a, b := m.At(1400, 1200), m.Under(300).At(1400, 1200); a != b {
		t.Errorf("%+v, and under the cap of its base %+v", a, b)
	}
}

func TestTheOptimumAmongClocksAndCapsIsThatOfAllOfThem(t *testing.T) {
	r, table := cappedFrontier(t, 150, 200, 250)
	m, standard := cappedModel(t), r.Default()
	for _, slack := range []float64{1, 1.02, 1.05, 1.1, 1.3, 2, math.Inf(1)} {
		limit := standard.Time * slack
		got, err := r.Optimum(dvfsmodel.MinEnergy(), limit)
		if err != nil {
			t.Fatal(err)
		}
		var least dvfsmodel.Point
		for _, w := range []dvfsmodel.Watt{0, 150, 200, 250} {
			for _, at := range table.Points() {
				pt := m.Under(w).At(at.Core, at.Mem)
				if pt.Time <= limit && (least.Energy == 0 || pt.Energy < least.Energy) {
					least, least.Cap = pt, w
				}
			}
		}
		if got.Core != least.Core || got.Mem != least.Mem || got.Cap != least.Cap ||
			math.Abs(float64(got.Energy/least.Energy)-1) > 1e-12 {
			t.Errorf("within ×%v: %+v, want %+v", slack, got, least)
		}
		again, ok := dvfsmodel.PointAt(r, dvfsmodel.Point{Core: got.Core, Mem: got.Mem, Cap: got.Cap})
		if !ok || math.Abs(again.Time/got.Time-1) > 1e-12 || again.Cap != got.Cap {
			t.Errorf("at its own setting: %+v, %v, want %+v", again, ok, got)
		}
	}
	if n := len(dvfsmodel.SupportedPoints(r)); n != 4*table.Len() {
		t.Errorf("%d settings, want those of the table without a cap and under three", n)
	}
	for _, w := range []dvfsmodel.Watt{100, 151, 300} {
		if pt, ok := dvfsmodel.PointAt(r, dvfsmodel.Point{Core: 1400, Mem: 1200, Cap: w}); ok {
			t.Errorf("%v W isn't among the caps: %+v", w, pt)
		}
	}
}

// A cap is in watts: what it does to a run that draws other powers isn't known.
func TestCapsAreOfRunsThatDrawWhatTheModelSays(t *testing.T) {
	r, _ := cappedFrontier(t, 150, 200, 250)
	longer := dvfsmodel.Repeat(r, 3)
	if len(dvfsmodel.Caps(longer)) != 3 {
		t.Error("a run of three repetitions has no caps")
	}
	pt, err := longer.Optimum(dvfsmodel.MinEnergy(), 3.4*r.Default().Time)
	if err != nil || pt.Cap == 0 {
		t.Fatalf("%+v, %v, want a cap", pt, err)
	}
	model, ok := dvfsmodel.ModelAt(longer, &pt)
	if !ok || math.Abs(model.Time(pt.Scaling.Fc, pt.Scaling.Fm)/pt.Time-1) > 1e-12 ||
		math.Abs(float64(model.Power(pt.Scaling)/pt.Power)-1) > 1e-12 {
		t.Errorf("its model has %v s, the point %v s", model.Time(pt.Scaling.Fc, pt.Scaling.Fm), pt.Time)
	}
	at := r.Default()
	other := dvfsmodel.ScaledTo(r, at.Time, at.Power/2)
	if pt, err := other.Optimum(dvfsmodel.MinEnergy(), math.Inf(1)); err != nil || pt.Cap != 0 ||
		len(dvfsmodel.Caps(other)) > 0 {
		t.Errorf("%+v, %v, want no cap", pt, err)
	}
}

func TestFitsFindTheModelOfACappedGPU(t *testing.T) {
	truth := cappedModel(t)
	samples := make([]dvfsmodel.Sample, 0, 16)
	for _, core := range []dvfsmodel.MHz{800, 1000, 1200, 1400} {
		for _, limit := range []dvfsmodel.Watt{150, 200, 250, 300} {
			at := truth.Under(limit).At(core, 1200)
			samples = append(samples,
				dvfsmodel.Sample{Core: core, Mem: 1200, Cap: limit, Time: at.Time, Power: at.Power})
		}
	}
	f, err := dvfsmodel.FitCapped(samples, dvfsmodel.Setting{Core: 1400, Mem: 1200, Cap: 300})
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []dvfsmodel.Watt{170, 230, 280} { // between those that were measured
		for _, core := range []dvfsmodel.MHz{900, 1300} {
			got, want := f.Under(limit).At(core, 1200), truth.Under(limit).At(core, 1200)
			if math.Abs(got.Time/want.Time-1) > 0.01 || math.Abs(float64(got.Power/want.Power)-1) > 0.01 {
				t.Errorf("%v MHz under %v W: %v s at %v W, want %v s at %v W", core, limit, got.Time, got.Power,
					want.Time, want.Power)
			}
		}
	}
	samples[3].Cap = 400
	if _, err := dvfsmodel.FitCapped(samples, f.Base); err == nil {
		t.Error("a cap above the highest: no error")
	}
}
