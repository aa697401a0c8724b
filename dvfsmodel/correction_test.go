package dvfsmodel_test

import (
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
)

func TestCorrectionsCountAtTheirClocksAlone(t *testing.T) {
	base := dvfsmodel.Setting{Core: 1410, Mem: 1215}
	p := dvfsmodel.Params{P0: 60, Gamma: 20, C: 200, T0: 1, D: 10, Delta: 0.6}
	fit, err := dvfsmodel.PaperModel(p, base)
	if err != nil {
		t.Fatal(err)
	}
	corrected := fit.Corrected([]dvfsmodel.Correction{
		{Setting: dvfsmodel.Setting{Core: 1095, Mem: 1215}, Time: 1.02, Power: 0.9},
	})
	for core := dvfsmodel.MHz(210); core <= base.Core; core += 15 {
		time, power := 1., 1.
		if core == 1095 {
			time, power = 1.02, 0.9
		}
		was, is := fit.At(core, base.Mem), corrected.At(core, base.Mem)
		if math.Abs(is.Time/was.Time-time) > 1e-12 || math.Abs(float64(is.Power/was.Power)-power) > 1e-12 ||
			math.Abs(float64(is.Energy/was.Energy)-time*power) > 1e-12 {
			t.Errorf("%v MHz: %+v, without corrections %+v", float64(core), is, was)
		}
	}
	if at := corrected.At(1095, 5000); at != fit.At(1095, 5000) {
		t.Errorf("at another memory clock %+v", at)
	}
}
