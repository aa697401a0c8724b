package trace_test

import (
	"math"
	"os"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/joint"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/trace"
)

// measuredTables are the measured GPUs: their base clocks, and the mean regret
// that a full fit may have at most, as a fraction.
var measuredTables = []struct {
	file   string
	base   dvfsmodel.Setting
	regret float64
}{
	{"gtx1080ti", dvfsmodel.Setting{Core: 1800, Mem: 5000}, 0.00298},
	{"rtx2070s", dvfsmodel.Setting{Core: 1880, Mem: 6300}, 0.00412},
	{"v100_2022", dvfsmodel.Setting{Core: 1380, Mem: 877}, 0.00324},
	{"v100", dvfsmodel.Setting{Core: 1380, Mem: 877}, 0.01866},
	{"gtx980_high", dvfsmodel.Setting{Core: 1300, Mem: 3600}, 0.04721},
	{"gtx980_low", dvfsmodel.Setting{Core: 1000, Mem: 1000}, 0.00259},
	{"v100_2022_micro", dvfsmodel.Setting{Core: 1380, Mem: 877}, 0.00172},
}

func readTable(tb testing.TB, name string) []dvfsmodel.AppSamples {
	tb.Helper()
	return readMeasured(tb, "dvfs/"+name+".csv")
}

func readMeasured(tb testing.TB, name string) []dvfsmodel.AppSamples {
	tb.Helper()
	f, err := os.Open(shareddata.Path(tb, name))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = f.Close() })
	apps, err := trace.ReadDVFS(f, name)
	if err != nil {
		tb.Fatal(err)
	}
	return apps
}

func TestChoosingClocksByAFitCostsNoMoreThanTheBestKnownFit(t *testing.T) {
	for _, table := range measuredTables {
		t.Run(table.file, func(t *testing.T) {
			apps, mean, most := readTable(t, table.file), 0.0, 0.0
			for _, app := range apps {
				cost := regretOf(t, app.Samples, table.base)
				mean, most = mean+cost/float64(len(apps)), max(most, cost)
			}
			t.Logf("full fit %.3f %% (max %.2f)", 100*mean, 100*most)
			if mean > table.regret {
				t.Errorf("mean regret %.5f, want at most %.5f", mean, table.regret)
			}
		})
	}
}

// regretOf returns how much more energy than the least the setting was measured to take that a fit of
// all of them chooses.
func regretOf(t *testing.T, samples []dvfsmodel.Sample, base dvfsmodel.Setting) float64 {
	t.Helper()
	fit, err := dvfsmodel.Fit(samples, base, nil)
	if err != nil {
		t.Fatal(err)
	}
	sum, runs, predicted := map[dvfsmodel.Setting]float64{}, map[dvfsmodel.Setting]float64{}, math.Inf(1)
	var chosen dvfsmodel.Setting
	for _, s := range samples {
		at := dvfsmodel.Setting{Core: s.Core, Mem: s.Mem}
		sum[at], runs[at] = sum[at]+float64(s.Energy()), runs[at]+1
		if e := float64(fit.At(s.Core, s.Mem).Energy); e < predicted {
			chosen, predicted = at, e
		}
	}
	least := math.Inf(1)
	for at := range sum {
		least = min(least, sum[at]/runs[at])
	}
	return sum[chosen]/runs[chosen]/least - 1
}

// jointTables are measured tables, and the mean regrets that fits of all their applications
// together may have at most: with all settings, and with each left out. keep is the rows that are
// taken; nil: all.
var jointTables = []struct {
	name, file string
	base       dvfsmodel.Setting
	keep       func(*dvfsmodel.Sample) bool
	full, loso float64
	long       bool
}{
	{"gtx1080ti", "dvfs/gtx1080ti.csv", dvfsmodel.Setting{Core: 1800, Mem: 5000}, nil, 0.00264, 0.0087, false},
	{"rtx2070s", "dvfs/rtx2070s.csv", dvfsmodel.Setting{Core: 1880, Mem: 6300}, nil, 0.00346, 0.0235, true},
	{"v100_2022", "dvfs/v100_2022.csv", dvfsmodel.Setting{Core: 1380, Mem: 877}, nil, 0.0005, 0.0205, false},
	{"v100", "dvfs/v100.csv", dvfsmodel.Setting{Core: 1380, Mem: 877}, nil, 0.01739, 0.0684, false},
	{"gtx980_high", "dvfs/gtx980_high.csv", dvfsmodel.Setting{Core: 1300, Mem: 3600}, nil, 0.0005, 0.0018, true},
	{"gtx980_low", "dvfs/gtx980_low.csv", dvfsmodel.Setting{Core: 1000, Mem: 1000}, nil, 0.0019, 0.0063, true},
	{"a100_sxm", "dvfs/a100_sxm.csv", dvfsmodel.Setting{}, nil, 0.003, 0.008, false},
	{"a40_bloom", "dvfs/a40_bloom.csv", dvfsmodel.Setting{}, nil, 0.003, 0.008, false},
	{"a100 clocks", a100Grid, dvfsmodel.Setting{}, atHighestCap, 0.003, 1, false},
	{"a100 caps", a100Grid, dvfsmodel.Setting{}, atHighestClock, 0.003, 1, false},
	{"a100 both", a100Grid, dvfsmodel.Setting{}, nil, 0.008, 0.009, false},
	{"zeus_a40", "powercap/zeus_a40.csv", dvfsmodel.Setting{}, nil, 0.022, 0.045, true},
	{"zeus_v100", "powercap/zeus_v100.csv", dvfsmodel.Setting{}, nil, 0.022, 0.04, false},
}

func atHighestCap(s *dvfsmodel.Sample) bool   { return s.Cap == 300 }
func atHighestClock(s *dvfsmodel.Sample) bool { return s.Core == 1410 }

const a100Grid = "powercap/grid_a100_80gb_pcie.csv"

func TestFitsOfAllApplicationsTogetherCostLittleMoreThanTheBestSetting(t *testing.T) {
	for _, table := range jointTables {
		if table.long && shareddata.Rounds(0, 0, 1) == 0 {
			continue // for make test-long: another table of the kind is fitted
		}
		t.Run(table.name, func(t *testing.T) {
			t.Parallel()
			apps := readMeasured(t, table.file)
			for i := range apps {
				apps[i].Samples = slices.DeleteFunc(apps[i].Samples,
					func(s dvfsmodel.Sample) bool { return table.keep != nil && !table.keep(&s) })
			}
			report, err := joint.Evaluate(apps, table.base, nil)
			if err != nil {
				t.Fatal(err)
			}
			all := report.Overall
			t.Logf("full fit %.3f %% (own fits alone %.3f), each setting left out %.3f %%; %.0f degrees of "+
				"freedom of %d",
				100*all.FullFit.Mean, 100*all.OwnFit.Mean, 100*all.LOSO.Mean, all.DegreesOfFreedom, all.Settings)
			if all.FullFit.Mean > table.full || all.LOSO.Mean > table.loso {
				t.Errorf("mean regrets %.5f and %.5f, want at most %v and %v", all.FullFit.Mean, all.LOSO.Mean,
					table.full, table.loso)
			}
			if !(all.DegreesOfFreedom < float64(all.Settings)) {
				t.Errorf("%.1f degrees of freedom of %d settings", all.DegreesOfFreedom, all.Settings)
			}
		})
	}
}

// Where the limit is 5 %, no application of the dense tables is made more than 6 % slower.
func TestFitsOfDenseTablesKeepALimitOfTime(t *testing.T) {
	for _, name := range []string{"a100_sxm", "a40_bloom"} {
		report, err := joint.Evaluate(readTable(t, name), dvfsmodel.Setting{}, &joint.Options{Slowdown: 0.05})
		if err != nil {
			t.Fatal(err)
		}
		all := report.Overall
		t.Logf("%s: mean regret %.3f %%, own fits alone %.3f %%", name, 100*all.FullFit.Mean, 100*all.OwnFit.Mean)
		if *all.Violations > 0 || all.FullFit.Mean > 0.01 {
			t.Errorf("%s: %.2f of the choices are too slow, and the mean regret is %.5f", name, *all.Violations,
				all.FullFit.Mean)
		}
	}
}
