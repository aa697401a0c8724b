package trace_test

import (
	"os"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
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
	f, err := os.Open(shareddata.Path(tb, "dvfs/"+name+".csv"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = f.Close() })
	apps, err := trace.ReadDVFS(f, name+".csv")
	if err != nil {
		tb.Fatal(err)
	}
	return apps
}

func TestChoosingClocksByAFitCostsNoMoreThanTheBestKnownFit(t *testing.T) {
	for _, table := range measuredTables {
		t.Run(table.file, func(t *testing.T) {
			report, err := dvfsmodel.EvaluateAll(readTable(t, table.file), table.base, nil)
			if err != nil {
				t.Fatal(err)
			}
			all := report.Overall
			t.Logf("full fit %.3f %% (max %.2f), leave one setting out %.3f %% (max %.2f), time %.3f "+
				"%%, power %.3f %%",
				100*all.FullFit.Mean, 100*all.FullFit.Max, 100*all.LOSO.Mean, 100*all.LOSO.Max,
				100*all.TimeMAPE, 100*all.PowerMAPE)
			if all.FullFit.Mean > table.regret {
				t.Errorf("mean regret %.5f, want at most %.5f", all.FullFit.Mean, table.regret)
			}
		})
	}
}
