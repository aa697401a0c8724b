package dvfsmodel_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
)

var fitBase = dvfsmodel.Setting{Core: 1000, Mem: 2000}

// grid measures a model at every pair of clocks; noise, when given, is the
// relative standard deviation of time and power.
func grid(m dvfsmodel.Model, cores, mems []float64, noise float64, rng *rand.Rand) []dvfsmodel.Sample {
	samples := make([]dvfsmodel.Sample, 0, len(cores)*len(mems))
	for _, fc := range cores {
		for _, fm := range mems {
			s := dvfsmodel.Scaling{V: dvfsmodel.VoltageFor(fc), Fc: fc, Fm: fm}
			t, p := m.Time(fc, fm), m.Power(s)
			if noise > 0 {
				t *= 1 + noise*rng.NormFloat64()
				p *= dvfsmodel.Watt(1 + noise*rng.NormFloat64())
			}
			samples = append(samples, dvfsmodel.Sample{
				Core: dvfsmodel.MHz(fc) * fitBase.Core, Mem: dvfsmodel.MHz(fm) * fitBase.Mem,
				Time: t, Power: p,
			})
		}
	}
	return samples
}

var (
	fiveCores = []float64{0.6, 0.75, 0.9, 1, 1.15}
	fourMems  = []float64{0.7, 0.85, 1, 1.1}
	example   = dvfsmodel.Params{P0: 60, Gamma: 25, C: 110, D: 20, Delta: 0.6, T0: 4}
)

func drawFitParams(t *rapid.T) dvfsmodel.Params {
	draw := func(name string, low, high float64) float64 {
		return rapid.Float64Range(low, high).Draw(t, name)
	}
	return dvfsmodel.Params{
		P0: dvfsmodel.Watt(draw("P0", 5, 150)), Gamma: dvfsmodel.Watt(draw("gamma", 0, 80)),
		C: dvfsmodel.Watt(draw("c", 1, 250)), D: draw("D", 0.01, 100),
		Delta: draw("delta", 0, 1), T0: draw("t0", 0, 50),
	}
}

// paperFit is a fit of the paper's form with its parameters.
type paperFit struct {
	*dvfsmodel.Fitted
	Params dvfsmodel.Params
}

// fitPaper fits the paper's form alone, all settings counting alike.
func fitPaper(samples []dvfsmodel.Sample) (paperFit, error) {
	opts := dvfsmodel.FitOptions{Forms: []dvfsmodel.Form{dvfsmodel.PaperForm()}, Focus: math.Inf(1)}
	f, err := dvfsmodel.Fit(samples, fitBase, &opts)
	if err != nil {
		return paperFit{}, err
	}
	p, _ := f.Params()
	return paperFit{f, p}, nil
}

func TestNoiseFreeSamplesOfThePapersModelAreRecovered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth := drawFitParams(t)
		samples := grid(truth, fiveCores, fourMems, 0, nil)
		fit, err := fitPaper(samples)
		if err != nil {
			t.Fatal(err)
		}
		chosen, err := dvfsmodel.Fit(samples, fitBase, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := fit.Params.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, s := range samples {
			for name, m := range map[string]dvfsmodel.Model{"paper": fit.Params, "chosen": chosen} {
				fc, fm := float64(s.Core/fitBase.Core), float64(s.Mem/fitBase.Mem)
				set := dvfsmodel.Scaling{V: dvfsmodel.VoltageFor(fc), Fc: fc, Fm: fm}
				closeTo(t, name+" time", m.Time(fc, fm), s.Time, 1e-6)
				closeTo(t, name+" power", float64(m.Power(set)), float64(s.Power), 1e-6)
			}
		}
	})
}

func closeTo(t interface {
	Helper()
	Errorf(format string, args ...any)
}, what string, got, want, tol float64,
) {
	t.Helper()
	if !(math.Abs(got/want-1) <= tol) {
		t.Errorf("%s is %v, want %v within %g", what, got, want, tol)
	}
}

func TestOneMemoryClockLeavesOutMemoryAndSaysSo(t *testing.T) {
	samples := grid(example, fiveCores, []float64{1}, 0, nil)
	fit, err := fitPaper(samples)
	if err != nil {
		t.Fatal(err)
	}
	if fit.Params.Gamma != 0 || fit.Params.Delta != 1 {
		t.Errorf("gamma %v, delta %v, want 0 and 1", fit.Params.Gamma, fit.Params.Delta)
	}
	closeTo(t, "D", fit.Params.D, example.D*example.Delta, 1e-6)
	closeTo(t, "T0", fit.Params.T0, example.T0+example.D*(1-example.Delta), 1e-6)
	closeTo(t, "P0", float64(fit.Params.P0), float64(example.P0+example.Gamma), 1e-6)
	if len(fit.Warnings) != 1 || !errors.Is(fit.Warnings[0], dvfsmodel.ErrOneMemoryClock) {
		t.Errorf("warnings %v, want %v", fit.Warnings, dvfsmodel.ErrOneMemoryClock)
	}
}

func TestUnusableSamplesAreATypedErrorThatSaysWhatIsNeeded(t *testing.T) {
	full := grid(example, fiveCores, fourMems, 0, nil)
	spoilt := func(change func(*dvfsmodel.Sample)) []dvfsmodel.Sample {
		s := grid(example, fiveCores, fourMems, 0, nil)
		change(&s[3])
		return s
	}
	diagonal := make([]dvfsmodel.Sample, 0, 6)
	for _, f := range []float64{0.6, 0.7, 0.8, 0.9, 1, 1.1} {
		diagonal = append(diagonal, grid(example, []float64{f}, []float64{f}, 0, nil)...)
	}
	repeated := []dvfsmodel.Sample{full[0], full[0], full[0], full[0], full[0]}
	for name, samples := range map[string][]dvfsmodel.Sample{
		"none":            nil,
		"three":           {full[0], full[5], full[10]},
		"one setting":     repeated,
		"one core clock":  grid(example, []float64{1}, []float64{0.6, 0.7, 0.8, 0.9, 1}, 0, nil),
		"collinear":       diagonal,
		"NaN time":        spoilt(func(s *dvfsmodel.Sample) { s.Time = math.NaN() }),
		"infinite power":  spoilt(func(s *dvfsmodel.Sample) { s.Power = dvfsmodel.Watt(math.Inf(1)) }),
		"zero time":       spoilt(func(s *dvfsmodel.Sample) { s.Time = 0 }),
		"negative memory": spoilt(func(s *dvfsmodel.Sample) { s.Mem = -1 }),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := dvfsmodel.Fit(samples, fitBase, nil)
			var bad *dvfsmodel.SampleError
			if !errors.As(err, &bad) || !errors.Is(err, dvfsmodel.ErrSamples) {
				t.Fatalf("error %v, want a SampleError", err)
			}
			if bad.Reason == "" {
				t.Error("no reason")
			}
		})
	}
}

func TestBadBaseClocksAreAnError(t *testing.T) {
	_, err := dvfsmodel.Fit(grid(example, fiveCores, fourMems, 0, nil), dvfsmodel.Setting{Core: 1000}, nil)
	if err == nil {
		t.Fatal("no error for a base memory clock of 0")
	}
}

func TestOutliersMoveTheFitLittleAndAreNamed(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		samples := grid(example, fiveCores, fourMems, 0.005, rng)
		i, j := rng.IntN(10), 10+rng.IntN(10)
		samples[i].Time *= 0.3
		samples[j].Power *= 2.5
		f, err := dvfsmodel.Fit(samples, fitBase, nil)
		if err != nil {
			t.Fatal(err)
		}
		named := 0
		for _, w := range f.Warnings {
			var o *dvfsmodel.OutlierError
			if errors.As(w, &o) &&
				(o.Core == samples[i].Core && o.Mem == samples[i].Mem && o.Quantity == "time" ||
					o.Core == samples[j].Core && o.Mem == samples[j].Mem && o.Quantity == "power") {
				named++
			}
		}
		if named != 2 {
			t.Errorf("seed %d: %d of 2 outliers named: %v", seed, named, f.Warnings)
		}
		p, err := fitPaper(samples)
		if err != nil {
			t.Fatal(err)
		}
		even, err := dvfsmodel.Fit(samples, fitBase, &dvfsmodel.FitOptions{Focus: math.Inf(1)})
		if err != nil {
			t.Fatal(err)
		}
		clean := grid(example, fiveCores, fourMems, 0, nil)
		if r := regretOn(clean, f); r > 0.01 {
			t.Errorf("seed %d: the chosen clocks cost %v more, want at most 1 %%", seed, r)
		}
		for _, s := range clean {
			at := even.At(s.Core, s.Mem)
			closeTo(t, "time", at.Time, s.Time, 0.06)
			closeTo(t, "power", float64(at.Power), float64(s.Power), 0.06)
			paper := p.Params.At(at.Scaling)
			closeTo(t, "paper's time", paper.Time, s.Time, 0.04)
			closeTo(t, "paper's power", float64(paper.Power), float64(s.Power), 0.04)
		}
	}
}

// regretOn returns the energy of the sample with the least predicted energy over the
// least energy, minus 1.
func regretOn(samples []dvfsmodel.Sample, f *dvfsmodel.Fitted) float64 {
	predicted := func(s dvfsmodel.Sample) dvfsmodel.Joule { return f.At(s.Core, s.Mem).Energy }
	chosen, least := samples[0], samples[0].Energy()
	for _, s := range samples {
		if predicted(s) < predicted(chosen) {
			chosen = s
		}
		least = min(least, s.Energy())
	}
	return float64(chosen.Energy()/least) - 1
}

func TestStandardErrorsMatchTheSpreadOfRepeatedFits(t *testing.T) {
	const repeats = 300
	params := func(p dvfsmodel.Params) [6]float64 {
		return [6]float64{float64(p.P0), float64(p.Gamma), float64(p.C), p.D, p.Delta, p.T0}
	}
	var sum, squares, variance [6]float64
	for seed := range uint64(repeats) {
		rng := rand.New(rand.NewPCG(seed, 2))
		f, err := fitPaper(grid(example, fiveCores, fourMems, 0.01, rng))
		if err != nil {
			t.Fatal(err)
		}
		stated, _ := f.PaperCoefficients()
		for i, x := range params(f.Params) {
			sum[i] += x
			squares[i] += x * x
			variance[i] += stated[i].StdErr * stated[i].StdErr
		}
	}
	for i, want := range params(example) {
		mean := sum[i] / repeats
		spread := math.Sqrt(squares[i]/repeats - mean*mean)
		stated := math.Sqrt(variance[i] / repeats)
		if math.Abs(mean-want) > 5*spread/math.Sqrt(repeats) {
			t.Errorf("parameter %d: mean %v, want %v: biased", i, mean, want)
		}
		if stated < 0.8*spread || stated > 1.25*spread {
			t.Errorf("parameter %d: standard error %v, spread %v", i, stated, spread)
		}
	}
}

func TestWeightedFitsStateTheirStandardErrorsToo(t *testing.T) {
	const repeats = 300
	for _, form := range []string{"log-quadratic+log-quadratic", "paper+voltage-knee"} {
		parsed, err := dvfsmodel.ParseForm(form)
		if err != nil {
			t.Fatal(err)
		}
		truth, err := dvfsmodel.Fit(grid(example, fiveCores, fourMems, 0, nil), fitBase,
			&dvfsmodel.FitOptions{Forms: []dvfsmodel.Form{parsed}})
		if err != nil {
			t.Fatal(err)
		}
		// The coefficients of time only: the knee of power is found by search.
		var sum, squares, variance [3]float64
		for seed := range uint64(repeats) {
			rng := rand.New(rand.NewPCG(seed, 3))
			f, err := dvfsmodel.Fit(grid(truth, fiveCores, fourMems, 0.01, rng), fitBase,
				&dvfsmodel.FitOptions{Forms: []dvfsmodel.Form{parsed}})
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range f.Coefficients()[:3] {
				sum[i] += c.Value
				squares[i] += c.Value * c.Value
				variance[i] += c.StdErr * c.StdErr
			}
		}
		for i := range sum {
			mean := sum[i] / repeats
			spread := math.Sqrt(squares[i]/repeats - mean*mean)
			if stated := math.Sqrt(variance[i] / repeats); stated < 0.6*spread || stated > 1.6*spread {
				t.Errorf("%s: coefficient %d has standard error %v, spread %v", form, i, stated, spread)
			}
		}
	}
}
