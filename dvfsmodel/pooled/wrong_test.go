package pooled_test

import (
	"errors"
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
)

func TestSamplesAndClocksThatCannotBeAreErrors(t *testing.T) {
	runs := func(power dvfsmodel.Watt) []dvfsmodel.Sample {
		return []dvfsmodel.Sample{
			{Core: 1000, Mem: 900, Time: 10, Power: power}, {Core: 800, Mem: 900, Time: 12, Power: 80},
		}
	}
	if _, err := pooled.Learn([][]dvfsmodel.Sample{
		runs(100),
		runs(dvfsmodel.Watt(math.NaN())),
	}); !errors.Is(err, dvfsmodel.ErrSamples) {
		t.Errorf("learning: error is %v, want ErrSamples", err)
	}
	for _, base := range []dvfsmodel.Setting{{}, {Core: 1000}, {Core: dvfsmodel.MHz(math.NaN()), Mem: 900}} {
		if _, err := pooled.BuiltinCurves().Condition(runs(100), base, pooled.Noise{}); err == nil {
			t.Errorf("base clocks %v: no error", base)
		}
	}
	if _, err := pooled.BuiltinCurves().Condition(runs(100), dvfsmodel.Setting{Core: 1000, Mem: 900},
		pooled.Noise{Time: math.NaN()}); err == nil {
		t.Error("noise that is no number: no error")
	}
}
