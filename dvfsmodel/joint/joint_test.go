package joint_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/joint"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// board is a GPU that nobody measured: steps of its power that all applications share, and the cap that
// it keeps.
type board struct {
	steps map[dvfsmodel.MHz]float64
	knee  float64 // clock from which on the voltage rises
}

// drawTable is measurements of random applications at core clocks and caps (0: none) on a random
// board: knees of time and voltage, steps of 1 % between clocks, and noise of .3 %.
func drawTable(
	rng *rand.Rand, apps int, cores []dvfsmodel.MHz, caps []dvfsmodel.Watt,
) []dvfsmodel.AppSamples {
	return scattered(rng, drawExact(rng, apps, cores, caps), 0.003)
}

// drawExact is drawTable without noise.
func drawExact(
	rng *rand.Rand, apps int, cores []dvfsmodel.MHz, caps []dvfsmodel.Watt,
) []dvfsmodel.AppSamples {
	b := board{steps: make(map[dvfsmodel.MHz]float64), knee: 0.6 + 0.25*rng.Float64()}
	for _, core := range cores {
		b.steps[core] = math.Exp(0.01 * rng.NormFloat64())
	}
	top := cores[len(cores)-1]
	list := make([]dvfsmodel.AppSamples, apps)
	for a := range list {
		share, memory := 0.2+0.7*rng.Float64(), 0.7+0.6*rng.Float64()
		static, dynamic, slope := 60+60*rng.Float64(), 80+120*rng.Float64(), 0.8+rng.Float64()
		free := func(g float64) float64 {
			v := 1 + slope*max(0, g-b.knee)
			return static + dynamic*g*v*v
		}
		list[a].App = fmt.Sprint("app ", a)
		for _, core := range cores {
			for _, limit := range caps {
				g := float64(core / top)
				for limit > 0 && free(g) > float64(limit) && g > 0.1 {
					g -= 0.001
				}
				list[a].Samples = append(list[a].Samples, dvfsmodel.Sample{
					Core: core, Mem: 1215, Cap: limit,
					Time:  1 - share + share*max(1/g, 1/memory),
					Power: dvfsmodel.Watt(free(g) * b.steps[core]),
				})
			}
		}
	}
	return list
}

// scattered is measurements of applications that scatter by a part, in time and in power.
func scattered(rng *rand.Rand, exact []dvfsmodel.AppSamples, by float64) []dvfsmodel.AppSamples {
	list := slices.Clone(exact)
	for a := range list {
		list[a].Samples = slices.Clone(list[a].Samples)
		for i := range list[a].Samples {
			s := &list[a].Samples[i]
			s.Time *= math.Exp(by * rng.NormFloat64())
			s.Power *= dvfsmodel.Watt(math.Exp(by * rng.NormFloat64()))
		}
	}
	return list
}

func clocks(from, to, step dvfsmodel.MHz) []dvfsmodel.MHz {
	var list []dvfsmodel.MHz
	for c := from; c <= to; c += step {
		list = append(list, c)
	}
	return list
}

func evaluate(t *testing.T, apps []dvfsmodel.AppSamples, slowdown float64) *joint.Evaluation {
	t.Helper()
	report, err := joint.Evaluate(apps, dvfsmodel.Setting{}, &joint.Options{Slowdown: slowdown})
	if err != nil {
		t.Fatal(err)
	}
	return &report.Overall
}

// Tables are drawn after constants were chosen: none of them has seen these.
func TestFitsOfDrawnTablesChooseNearlyTheBestAndNeverTooSlow(t *testing.T) {
	for name, kind := range map[string]struct {
		cores      []dvfsmodel.MHz
		caps       []dvfsmodel.Watt
		full, loso float64 // mean regret at most
	}{
		"dense":  {clocks(855, 1410, 15), []dvfsmodel.Watt{0}, 0.003, 0.008},
		"sparse": {clocks(800, 1400, 100), []dvfsmodel.Watt{0}, 0.003, 0.03},
		"caps":   {[]dvfsmodel.MHz{1410}, []dvfsmodel.Watt{100, 125, 150, 175, 200, 225, 250}, 0.003, 0.05},
		"both":   {clocks(900, 1400, 125), []dvfsmodel.Watt{100, 150, 200, 250}, 0.003, 0.009},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && len(kind.cores)*len(kind.caps) > 10 {
				t.Skip("takes half a minute")
			}
			var full, loso, own float64
			const tables = 2
			for seed := range uint64(tables) {
				apps := drawTable(rand.New(rand.NewPCG(seed, 5)), 6, kind.cores, kind.caps)
				free := evaluate(t, apps, math.Inf(1))
				full += free.FullFit.Mean / tables
				loso += free.LOSO.Mean / tables
				own += free.OwnFit.Mean / tables
				if !(free.DegreesOfFreedom > 0 && free.DegreesOfFreedom < float64(free.Settings)) {
					t.Errorf("seed %d: %.1f degrees of freedom of %d settings", seed, free.DegreesOfFreedom,
						free.Settings)
				}
				if slow := *evaluate(t, apps, 0.05).Violations; slow > 0 {
					t.Errorf("seed %d: %.2f of the choices are too slow", seed, slow)
				}
			}
			t.Logf("full fit %.3f %%, own fits alone %.3f %%, each left out %.3f %%", 100*full, 100*own, 100*loso)
			if full > kind.full || loso > kind.loso {
				t.Errorf("regret of full fits %.4f and of settings left out %.4f, want at most %v and %v", full, loso,
					kind.full, kind.loso)
			}
		})
	}
}

// A models file holds forms and corrections: what is chosen by them is what the full fit chooses.
func TestFitsWithCorrectionsChooseAsFullFitsDo(t *testing.T) {
	t.Run("clocks", func(t *testing.T) { fitsChooseAsFullFitsDo(t, 4, clocks(855, 1410, 45), 0) })
	t.Run("clocks and caps", func(t *testing.T) {
		fitsChooseAsFullFitsDo(t, 1, clocks(810, 1410, 150), 140, 180, 220, 260)
	})
}

func fitsChooseAsFullFitsDo(t *testing.T, seeds uint64, cores []dvfsmodel.MHz, caps ...dvfsmodel.Watt) {
	t.Helper()
	limit := caps[len(caps)/2]
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 6))
		apps := drawTable(rng, 4, cores, caps)
		apps[1].Samples = apps[1].Samples[3:] // not all at the same settings
		base := dvfsmodel.Setting{Core: 1410, Mem: 1215}
		report, err := joint.Evaluate(apps, base, nil)
		if err != nil {
			t.Fatal(err)
		}
		supported := []dvfsmodel.Setting{
			{Core: 870, Mem: 1215, Cap: limit}, {Core: 900, Mem: 1215, Cap: limit}, {Core: 900, Mem: 810, Cap: limit},
		}
		fits, errs := joint.Fit(apps, base, supported, nil)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		between := false
		for i, f := range fits {
			want := report.Apps[i].FullFit.Mean
			if regret := regretOf(f, apps[i].Samples); math.Abs(regret-want) > 1e-12 {
				t.Errorf("seed %d, %s: regret %v, that of the full fit %v", seed, apps[i].App, regret, want)
			}
			for _, c := range f.Corrections {
				between = between || c.Core == 870 && c.Cap == limit
				if c.Mem != 1215 || math.Abs(c.Time-1) > 0.2 || math.Abs(c.Power-1) > 0.2 {
					t.Errorf("seed %d, %s: %+v", seed, apps[i].App, c)
				}
			}
		}
		if !between {
			t.Errorf("seed %d: no correction at a clock that wasn't measured, between two that were", seed)
		}
	}
}

// By what single runs scatter, corrections help, or are as good as none: what noise says isn't taken
// for steps of the board. Clocks are judged by what they really take.
func TestCorrectionsDoNotFollowNoise(t *testing.T) {
	few := shareddata.Rounds[uint64](20, 20, 60)
	for _, kind := range []struct {
		scatter, most float64
		tables        uint64
	}{{0.003, 0.5, few}, {0.01, 0.9, few}, {0.02, 1, 60}} { // near 1 it takes more of them to tell
		var own, corrected float64
		for seed := range kind.tables {
			rng := rand.New(rand.NewPCG(seed, 7))
			step := dvfsmodel.MHz(15 * (1 + rng.IntN(4)))
			cores := clocks(1410-step*dvfsmodel.MHz(5+rng.IntN(11)), 1410, step)
			exact := drawExact(rng, 2+rng.IntN(5), cores, []dvfsmodel.Watt{0})
			apps := scattered(rng, exact, kind.scatter)
			base := dvfsmodel.Setting{Core: 1410, Mem: 1215}
			fits, errs := joint.Fit(apps, base, nil, nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			for a := range apps {
				alone, err := dvfsmodel.Fit(apps[a].Samples, base, nil)
				if err != nil {
					t.Fatal(err)
				}
				n := float64(kind.tables) * float64(len(apps))
				own += regretOf(alone, exact[a].Samples) / n
				corrected += regretOf(fits[a], exact[a].Samples) / n
			}
		}
		t.Logf("scatter of %.1f %%: regret %.3f %%, by own fits alone %.3f %%",
			100*kind.scatter, 100*corrected, 100*own)
		if corrected > kind.most*own {
			t.Errorf("scatter of %.1f %%: regret %.5f, want at most %v times the %.5f of own fits",
				100*kind.scatter, corrected, kind.most, own)
		}
	}
}

// One that can't be fitted doesn't cost the others their fits.
func TestAnApplicationThatCanNotBeFittedHasAnError(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 6))
	apps := drawTable(rng, 3, clocks(855, 1410, 45), []dvfsmodel.Watt{0})
	apps[1].Samples = apps[1].Samples[:2]
	fits, errs := joint.Fit(apps, dvfsmodel.Setting{Core: 1410, Mem: 1215}, nil, nil)
	if errs[0] != nil || errs[1] == nil || errs[2] != nil || len(fits[0].Corrections) == 0 ||
		len(fits[2].Corrections) == 0 {
		t.Errorf("fits %v, errors %v", fits, errs)
	}
	alone, _ := joint.Fit(apps[:1], dvfsmodel.Setting{Core: 1410, Mem: 1215}, nil, nil)
	if len(alone[0].Corrections) > 0 {
		t.Error("a single application has corrections")
	}
}

// regretOf returns how much more energy the setting takes that is the best one by a fit.
func regretOf(f *dvfsmodel.Fitted, samples []dvfsmodel.Sample) float64 {
	chosen, least, best := 0., math.Inf(1), math.Inf(1)
	for _, s := range samples {
		energy := s.Time * float64(s.Power)
		best = min(best, energy)
		if e := float64(f.Under(s.Cap).At(s.Core, s.Mem).Energy); e < least {
			chosen, least = energy, e
		}
	}
	return chosen/best - 1
}

func TestRepeatedMeasurementsOfASettingAreAveraged(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 5))
	apps := drawTable(rng, 4, clocks(800, 1400, 150), []dvfsmodel.Watt{0})
	errorOf := func() float64 {
		report, err := joint.Evaluate(apps, dvfsmodel.Setting{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return report.Apps[0].TimeMAPE
	}
	before := errorOf()
	apps[1].Samples = append(apps[1].Samples, apps[1].Samples[0]) // measured twice with one result
	if again := errorOf(); math.Abs(again-before) > 1e-12 {
		t.Errorf("error %v, with a repeated measurement %v", before, again)
	}
}

func TestAnApplicationMeasuredOnceUnderACapIsPredictedFromTheOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	apps := drawTable(rng, 3, clocks(1000, 1400, 200), []dvfsmodel.Watt{150, 250})
	apps[0].Samples = apps[0].Samples[:1]
	report, err := joint.Evaluate(apps, dvfsmodel.Setting{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e := report.Apps[0]; e.Settings != 1 || math.IsNaN(e.TimeMAPE) || math.IsNaN(e.PowerMAPE) {
		t.Errorf("an application with one setting: %+v", e)
	}
}

func TestSamplesThatCanNotBeFittedAreAnError(t *testing.T) {
	one := []dvfsmodel.AppSamples{{App: "a", Samples: []dvfsmodel.Sample{{Core: 1, Mem: 1, Time: 1, Power: 1}}}}
	if _, err := joint.Evaluate(one, dvfsmodel.Setting{}, nil); err == nil {
		t.Error("one setting: no error")
	}
	one[0].Samples[0].Time = math.NaN()
	if _, err := joint.Evaluate(one, dvfsmodel.Setting{}, nil); err == nil {
		t.Error("NaN: no error")
	}
}
