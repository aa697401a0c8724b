package dvfsmodel_test

import (
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
)

func TestAnAnchoredResponseHasItsShapeAndTheGivenDefaultPoint(t *testing.T) {
	table, err := dvfsmodel.NewTable(dvfsmodel.Setting{Core: 1000, Mem: 1000},
		[]dvfsmodel.Setting{{Core: 700, Mem: 1000}, {Core: 850, Mem: 1000}, {Core: 1000, Mem: 1000}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	params := dvfsmodel.Params{P0: 40, Gamma: 20, C: 120, D: 3, Delta: 0.7, T0: 0.5}
	at := dvfsmodel.Point{Scaling: dvfsmodel.DefaultScaling(), Core: 1000, Mem: 1000}
	wide := dvfsmodel.WideRange()
	for name, r := range map[string]dvfsmodel.Response{
		"continuous": &dvfsmodel.Continuous{Params: params, Range: &wide},
		"discrete":   &dvfsmodel.Discrete{Params: params, Table: table, At: at},
		"frontier":   dvfsmodel.NewFrontier(params, table, at),
		"fixed":      &dvfsmodel.Fixed{At: params.At(dvfsmodel.DefaultScaling())},
	} {
		const seconds, watts = 7200, 80
		was, err := r.Optimum(dvfsmodel.MinEnergy(), math.Inf(1))
		if err != nil {
			t.Fatal(err)
		}
		from := r.Default()
		anchored := dvfsmodel.ScaledTo(r, seconds, watts)
		got := anchored.Default()
		if math.Abs(got.Time-seconds) > 1e-9*seconds || math.Abs(float64(got.Power)-watts) > 1e-9*watts {
			t.Errorf("%s: %v s and %v W at default clocks, want %v and %v", name, got.Time, got.Power,
				seconds, watts)
		}
		best, err := anchored.Optimum(dvfsmodel.MinEnergy(), math.Inf(1))
		if err != nil {
			t.Fatal(err)
		}
		if near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9*b }; !near(best.Scaling.Fc,
			was.Scaling.Fc) ||
			!near(best.Time/seconds, was.Time/from.Time) ||
			!near(float64(best.Power/watts), float64(was.Power/from.Power)) {
			t.Errorf("%s: the optimum is %+v, was %+v", name, best, was)
		}
		if s := best.Scaling; !anchored.Allows(s) ||
			math.Abs(float64(anchored.Model().Power(s))-float64(best.Power)) > 1e-9*watts {
			t.Errorf("%s: the model has %v W at the optimum, want %v", name,
				anchored.Model().Power(s), best.Power)
		}
	}
}
