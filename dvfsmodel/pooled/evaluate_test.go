package pooled_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/trace"
)

func read(t *testing.T, name string) []dvfsmodel.AppSamples {
	t.Helper()
	return readFile(t, "dvfs/"+name+".csv")
}

func readFile(t *testing.T, name string) []dvfsmodel.AppSamples {
	t.Helper()
	f, err := os.Open(shareddata.Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	apps, err := trace.ReadDVFS(f, name)
	if err != nil {
		t.Fatal(err)
	}
	return apps
}

// best returns the least mean regret that is known with as many probes, of all
// methods: percent by "GPU probes". Constant clocks need none.
func best(t *testing.T) map[string]float64 {
	t.Helper()
	f, err := os.Open(shareddata.Path(t, "dvfs/fit.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := make(map[string]int)
	for i, name := range rows[0] {
		column[name] = i
	}
	known := make(map[string]float64)
	for _, row := range rows[1:] {
		gpu, method := row[column["gpu"]], row[column["method"]]
		regret, err := strconv.ParseFloat(row[column["regret_mean_pct"]], 64)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 5 {
			key := fmt.Sprint(gpu, " ", n)
			without := method == "constant_clock_loao" || method == "default_top_clocks"
			if without || strings.Contains(method, fmt.Sprintf("_%d_probes", n)) {
				if old, seen := known[key]; !seen || regret < old {
					known[key] = regret
				}
			}
		}
	}
	return known
}

// The mean regret is at or below that of the best known method with as many
// probes, on every GPU. With one probe nothing can be compared, so that it is that
// of the best constant clocks; tables are rounded to three digits.
func TestClocksChosenFromAFewProbesAreAtLeastAsGoodAsTheBestKnown(t *testing.T) {
	const rounding = 0.0005 + 1e-9
	known := best(t)
	known["v100_2022 3"] = min(known["v100_2022 3"], 0.25)
	for _, name := range []string{
		"gtx1080ti", "rtx2070s", "gtx980_high", "gtx980_low", "v100", "v100_2022",
		"v100_2022_micro",
	} {
		reports, err := pooled.Evaluate(read(t, name), 4)
		if err != nil {
			t.Fatal(err)
		}
		for n, r := range reports {
			want, found := known[fmt.Sprint(name, " ", n)]
			if !found {
				t.Fatalf("%s: no known regret with %d probes", name, n)
			}
			t.Logf("%s, %d probes: mean regret %.4f %% (best known %.3f), at most %.2f; errors of time "+
				"%.2f %%, power %.2f %%; coverage %.0f %%",
				name, n, r.RegretMean, want, r.RegretMax, r.TimeMAPE, r.PowerMAPE, r.Coverage)
			if r.RegretMean > want+rounding {
				t.Errorf("%s, %d probes: mean regret %.4f %%, the best known is %.3f", name, n,
					r.RegretMean, want)
			}
		}
	}
}

func TestThreeProbesDoForDenseTablesAndForPowerCaps(t *testing.T) {
	for name, most := range map[string]float64{ // mean regret in percent
		"dvfs/a100_sxm.csv":                0.8,
		"dvfs/a40_bloom.csv":               0.8,
		"powercap/grid_a100_80gb_pcie.csv": 1.2,
		"powercap/zeus_a40.csv":            1.2,
		"powercap/zeus_v100.csv":           1.2,
	} {
		reports, err := pooled.Evaluate(readFile(t, name), 3)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: mean regret %.3f %%, at most %.2f", name, reports[3].RegretMean, reports[3].RegretMax)
		if reports[3].RegretMean > most {
			t.Errorf("%s: mean regret %.3f %%, want at most %v", name, reports[3].RegretMean, most)
		}
	}
}
