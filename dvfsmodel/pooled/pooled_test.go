package pooled_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
)

var clocks = []dvfsmodel.MHz{600, 700, 800, 900, 1000, 1100}

const memory = 900

var base = dvfsmodel.Setting{Core: 1000, Mem: memory}

// truth is a workload with exponents of the core clock.
type truth struct{ level, time, power, watts float64 }

func (w truth) at(core dvfsmodel.MHz) dvfsmodel.Sample {
	x := math.Log(float64(core / base.Core))
	return dvfsmodel.Sample{
		Core: core, Mem: memory, Time: math.Exp(w.level - w.time*x),
		Power: dvfsmodel.Watt(w.watts * math.Exp(w.power*x+0.5*x*x)),
	}
}

func (w truth) samples(cores ...dvfsmodel.MHz) []dvfsmodel.Sample {
	list := make([]dvfsmodel.Sample, len(cores))
	for i, core := range cores {
		list[i] = w.at(core)
	}
	return list
}

func someTruth(random *rand.Rand) truth {
	return truth{
		level: 3 * random.NormFloat64(), time: random.Float64(), power: 0.8 + 0.4*random.Float64(),
		watts: 100 + 100*random.Float64(),
	}
}

func someTruths(seed uint64, count int) []truth {
	random := rand.New(rand.NewPCG(seed, 1))
	list := make([]truth, count)
	for i := range list {
		list[i] = someTruth(random)
	}
	return list
}

func tables(list []truth, cores ...dvfsmodel.MHz) [][]dvfsmodel.Sample {
	all := make([][]dvfsmodel.Sample, len(list))
	for i, w := range list {
		all[i] = w.samples(cores...)
	}
	return all
}

func TestAMeasuredSettingIsPredictedAsMeasuredAndOthersBecomeSurer(t *testing.T) {
	prior, err := pooled.Learn(tables(someTruths(1, 12), clocks...))
	if err != nil {
		t.Fatal(err)
	}
	settings := prior.Settings()
	rapid.Check(t, func(t *rapid.T) {
		b := prior.NewBelief()
		w := truth{
			level: rapid.Float64Range(-5, 5).Draw(t, "level"), time: rapid.Float64Range(0, 1).Draw(t, "time"),
			power: rapid.Float64Range(0.8, 1.2).Draw(t, "power"),
			watts: rapid.Float64Range(80, 250).Draw(t, "watts"),
		}
		order := rapid.Permutation([]int{0, 1, 2, 3, 4, 5}).Draw(t, "order")
		for _, i := range order {
			before := make([]pooled.Prediction, len(settings))
			for k := range settings {
				before[k] = b.At(k)
			}
			s := w.at(settings[i].Core)
			if err := b.Observe(i, s.Time, s.Power, pooled.Noise{}); err != nil {
				t.Fatal(err)
			}
			p := b.At(i)
			if math.Abs(p.Time/s.Time-1) > 0.01 || math.Abs(float64(p.Power/s.Power)-1) > 0.01 {
				t.Fatalf("measured %v, predicted %+v", s, p)
			}
			if p.EnergySD > before[i].EnergySD*(1+1e-9)+0.01 {
				t.Fatalf("the spread at the measured setting grew from %v to %v",
					before[i].EnergySD, p.EnergySD)
			}
		}
		energies := make([]float64, len(settings))
		for i, s := range settings {
			energies[i] = float64(w.samples(s.Core)[0].Energy())
		}
		if got := b.Best(nil); energies[got] > slices.Min(energies)*1.003 {
			t.Fatalf("all settings are measured, and %v is chosen of %v", settings[got], energies)
		}
	})
}

func TestOnlyAllowedSettingsAreChosenOrProbed(t *testing.T) {
	prior, err := pooled.Learn(tables(someTruths(2, 8), clocks...))
	if err != nil {
		t.Fatal(err)
	}
	b := prior.NewBelief()
	for only := range clocks {
		allowed := func(i int) bool { return i == only }
		if best, next := b.Best(allowed), b.NextProbe(allowed, pooled.Noise{}); best != only || next != only {
			t.Errorf("of setting %d alone %d is chosen and %d probed", only, best, next)
		}
	}
	none := func(int) bool { return false }
	if best, next := b.Best(none), b.NextProbe(none, pooled.Noise{}); best != -1 || next != -1 {
		t.Errorf("of nothing %d is chosen and %d probed", best, next)
	}
}

// How long a workload takes as a whole, in whatever unit, is no part of what is
// learnt.
func TestTheUnitOfTimeChangesNoChoice(t *testing.T) {
	list := someTruths(3, 9)
	other := slices.Clone(list)
	for i := range other {
		other[i].level += 7
	}
	a, err := pooled.Evaluate(asApps(list), 3)
	if err != nil {
		t.Fatal(err)
	}
	b, err := pooled.Evaluate(asApps(other), 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := range a[3].Workloads {
		if x, y := a[3].Workloads[i], b[3].Workloads[i]; x.Chosen != y.Chosen ||
			!slices.Equal(x.Probes, y.Probes) {
			t.Errorf("%+v, in other units %+v", x, y)
		}
	}
}

func asApps(list []truth) []dvfsmodel.AppSamples {
	apps := make([]dvfsmodel.AppSamples, len(list))
	for i, w := range list {
		apps[i] = dvfsmodel.AppSamples{App: string(rune('a' + i)), Samples: w.samples(clocks...)}
	}
	return apps
}

// The left-out workload is seen at its probes only: what it takes elsewhere
// changes neither probes nor choice.
func TestALeftOutWorkloadIsSeenAtItsProbesOnly(t *testing.T) {
	apps := asApps(someTruths(4, 9))
	before, err := pooled.Evaluate(apps, 2)
	if err != nil {
		t.Fatal(err)
	}
	was := before[2].Workloads[4]
	for i := range apps[4].Samples {
		s := &apps[4].Samples[i]
		if !slices.Contains(was.Probes, s.At()) {
			s.Time, s.Power = s.Time*5, s.Power*3
		}
	}
	after, err := pooled.Evaluate(apps, 2)
	if err != nil {
		t.Fatal(err)
	}
	if now := after[2].Workloads[4]; now.Chosen != was.Chosen || !slices.Equal(now.Probes, was.Probes) {
		t.Errorf("%+v, with other values where it isn't probed %+v", was, now)
	}
}

func TestCurvesLearntFromOtherWorkloadsPredictBetterThanTheBuiltInOnes(t *testing.T) {
	curves := pooled.LearnCurves(tables(someTruths(5, 30), 600, 800, 1000), base, pooled.BuiltinCurves(), 8,
		pooled.Noise{})
	if err := curves.Validate(); err != nil {
		t.Fatal(err)
	}
	var learnt, general float64
	for _, w := range someTruths(6, 20) {
		for what, c := range map[*float64]*pooled.Curves{&learnt: curves, &general: pooled.BuiltinCurves()} {
			p, err := c.Condition(w.samples(1000, 900), base, pooled.Noise{})
			if err != nil {
				t.Fatal(err)
			}
			f, err := p.Fitted()
			if err != nil {
				t.Fatal(err)
			}
			far := w.at(600)
			*what += math.Abs(math.Log(float64(f.At(600, memory).Energy / far.Energy())))
		}
	}
	if !(learnt < 0.7*general) {
		t.Errorf("mean error at 600 MHz %v, by the built-in curves %v", learnt/20, general/20)
	}
}

func TestAWorkloadWithHolesTeachesByWhatItHas(t *testing.T) {
	list := tables(someTruths(7, 10), clocks...)
	for i := range list {
		list[i] = slices.Delete(list[i], i%len(clocks), i%len(clocks)+1)
	}
	prior, err := pooled.Learn(list)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(prior.Settings()); got != len(clocks) {
		t.Fatalf("%d settings, want %d", got, len(clocks))
	}
	w := someTruths(8, 1)[0]
	b := prior.NewBelief()
	for _, i := range []int{0, 5} {
		s := w.at(clocks[i])
		if err := b.Observe(i, s.Time, s.Power, pooled.Noise{}); err != nil {
			t.Fatal(err)
		}
	}
	for i, core := range clocks {
		if p, s := b.At(i), w.at(core); math.Abs(p.Time/s.Time-1) > 0.05 {
			t.Errorf("%v MHz: %v s predicted, %v s measured", core, p.Time, s.Time)
		}
	}
}

func TestWhatCannotBeLearntFromIsAnError(t *testing.T) {
	for name, list := range map[string][][]dvfsmodel.Sample{
		"nothing": nil, "one workload": tables(someTruths(9, 1), clocks...),
		"one setting": tables(someTruths(9, 5), 1000),
	} {
		if _, err := pooled.Learn(list); !errors.Is(err, dvfsmodel.ErrSamples) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []dvfsmodel.Sample{
		{Core: 1000, Mem: memory, Time: math.NaN(), Power: 100},
		{Core: 1000, Mem: memory, Time: 1, Power: -1},
		{Core: 0, Mem: memory, Time: 1, Power: 1},
		{Core: 1000, Mem: memory, Time: math.Inf(1), Power: 1},
	} {
		if _, err := pooled.BuiltinCurves().Condition([]dvfsmodel.Sample{bad}, base,
			pooled.Noise{}); !errors.Is(err, dvfsmodel.ErrSamples) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := pooled.BuiltinCurves().Condition(nil, base, pooled.Noise{}); !errors.Is(err,
		dvfsmodel.ErrSamples) {
		t.Errorf("no samples: %v", err)
	}
}

// Whatever positive samples there are, the curves through them predict positive
// numbers, at clocks that nobody measured too.
func TestCurvesThroughAnySamplesPredictPositiveNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := make([]dvfsmodel.Sample, rapid.IntRange(1, 12).Draw(t, "n"))
		for i := range samples {
			samples[i] = dvfsmodel.Sample{
				Core:  rapid.SampledFrom(clocks).Draw(t, "core"),
				Mem:   rapid.SampledFrom([]dvfsmodel.MHz{450, memory}).Draw(t, "memory"),
				Time:  rapid.Float64Range(1e-6, 1e6).Draw(t, "time"),
				Power: dvfsmodel.Watt(rapid.Float64Range(1, 1000).Draw(t, "power")),
			}
		}
		p, err := pooled.BuiltinCurves().Condition(samples, base, pooled.NoiseOf(samples))
		if err != nil {
			t.Fatal(err)
		}
		f, err := p.Fitted()
		if err != nil {
			t.Fatal(err)
		}
		for _, core := range []dvfsmodel.MHz{300, 650, 1300} {
			if pt := f.At(core, memory); !(pt.Time > 0) || !(pt.Power > 0) {
				t.Fatalf("%v MHz: %+v", core, pt)
			}
		}
		for _, gain := range p.Belief([]dvfsmodel.Setting{
			{Core: 300, Mem: memory},
			{Core: 1300, Mem: memory},
		}, 25).Gains(pooled.NoiseOf(samples)) {
			if math.IsNaN(gain) || math.IsInf(gain, 0) {
				t.Fatalf("a gain is %v", gain)
			}
		}
	})
}

func TestNoiseIsThatOfRunsAtTheSameClocks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	w := someTruths(10, 1)[0]
	const runs = 200
	samples := make([]dvfsmodel.Sample, 0, runs)
	for i := range runs {
		s := w.at(clocks[i%3])
		s.Time *= math.Exp(0.05 * random.NormFloat64())
		s.Power *= dvfsmodel.Watt(math.Exp(0.01 * random.NormFloat64()))
		samples = append(samples, s)
	}
	if n := pooled.NoiseOf(samples); math.Abs(n.Time-0.05) > 0.01 || math.Abs(n.Power-0.01) > 0.003 {
		t.Errorf("noise %+v, want 0.05 and 0.01", n)
	}
	if n := pooled.NoiseOf(samples[:1]); n.Time < 0.015 || n.Time > 0.025 {
		t.Errorf("of one run %+v, want the usual 0.02", n)
	}
}
