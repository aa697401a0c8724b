package contention_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/epplan/epplan/lab/contention"
	"github.com/epplan/epplan/planner/sharing"
)

// observed are drawn samples of a curve with noise, of which a part is far off.
func observed(r *rand.Rand, c sharing.Curve, n int, noise, wild float64) []contention.Sample {
	all := make([]contention.Sample, n)
	for i := range all {
		s := sharing.Occupancy{Tasks: 1 + r.IntN(5), Memory: r.Float64()}
		level := 30 + 150*r.Float64()
		for range 12 {
			s.LoadPct = append(s.LoadPct, level*(.5+r.Float64()))
		}
		slowdown := c.Slowdown(s) * math.Exp(noise*r.NormFloat64())
		if r.Float64() < wild {
			slowdown *= 3
		}
		all[i] = contention.Sample{Occupancy: s, Slowdown: slowdown}
	}
	return all
}

func TestFitCurveRecoversTheCurveThatSamplesCameFrom(t *testing.T) {
	for name, c := range map[string]struct {
		curve       sharing.Curve
		noise, wild float64
		within      float64
	}{
		"exact":                     {sharing.Curve{Exponent: 1.4, ByTask: .06, ByMemory: .1}, 0, 0, .002},
		"with noise":                {sharing.Curve{Exponent: 1.4, ByTask: .06, ByMemory: .1}, .03, 0, .03},
		"with noise and outliers":   {sharing.Curve{Exponent: 1.7, ByTask: .03, ByMemory: .2}, .03, .15, .04},
		"no cost but the time":      {sharing.LinearCurve(), .02, .1, .02},
		"overhead without overload": {sharing.Curve{Exponent: 1, ByTask: .1}, .02, 0, .02},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		fit, err := contention.FitCurve(observed(r, c.curve, 300, c.noise, c.wild))
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(fit.Exponent-c.curve.Exponent) > 3*c.within ||
			math.Abs(fit.ByTask-c.curve.ByTask) > c.within ||
			math.Abs(fit.ByMemory-c.curve.ByMemory) > c.within {
			t.Errorf("%s: %+v, want %+v", name, fit, c.curve)
		}
		if wild := float64(fit.Outliers) / 300; math.Abs(wild-c.wild) > .05 {
			t.Errorf("%s: %d outliers of 300, want %g", name, fit.Outliers, 300*c.wild)
		}
		if c.noise > 0 && math.Abs(fit.Residual/c.noise-1) > .35 {
			t.Errorf("%s: residual %g, want about %g", name, fit.Residual, c.noise)
		}
	}
}

func TestWithoutSamplesTheFitIsLinear(t *testing.T) {
	fit, err := contention.FitCurve(nil)
	if err != nil || fit != (contention.Fit{Curve: sharing.LinearCurve()}) {
		t.Errorf("%+v, %v", fit, err)
	}
}

func TestASingleSampleMovesTheFitPartOfTheWay(t *testing.T) {
	s := sharing.Occupancy{LoadPct: []float64{80, 60}, Tasks: 2, Memory: .5}
	fit, err := contention.FitCurve([]contention.Sample{{Occupancy: s, Slowdown: 1.2}})
	if err != nil {
		t.Fatal(err)
	}
	if got := fit.Slowdown(s); got < 1.05 || got > 1.19 {
		t.Errorf("after one sample of 1.2 where Linear says 1: %g", got)
	}
}

func TestASampleThatCannotBeIsAnErrorThatNamesIt(t *testing.T) {
	good := sharing.Occupancy{LoadPct: []float64{80}, Tasks: 2, Memory: .5}
	for name, bad := range map[string]contention.Sample{
		"no slowdown":  {Occupancy: good},
		"NaN":          {Occupancy: good, Slowdown: math.NaN()},
		"nobody there": {Occupancy: sharing.Occupancy{LoadPct: []float64{80}}, Slowdown: 1},
		"too much memory": {
			Occupancy: sharing.Occupancy{LoadPct: []float64{80}, Tasks: 1, Memory: 1.1}, Slowdown: 1,
		},
		"no load":         {Occupancy: sharing.Occupancy{Tasks: 1}, Slowdown: 1},
		"a negative load": {Occupancy: sharing.Occupancy{Tasks: 1, LoadPct: []float64{-1}}, Slowdown: 1},
		"an infinite load": {
			Occupancy: sharing.Occupancy{Tasks: 1, LoadPct: []float64{math.Inf(1)}}, Slowdown: 1,
		},
	} {
		_, err := contention.FitCurve([]contention.Sample{{Occupancy: good, Slowdown: 1}, bad})
		if !errors.Is(err, contention.ErrBadSample) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
