package pooled_test

import (
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
)

// Of each table, how many choices by one, two and three probes are too slow, and what the caution costs.
func TestFewProbesKeepASlowdown(t *testing.T) {
	for _, table := range []struct {
		file string
		most [3]float64 // choices that are too slow with 1, 2 and 3 probes
	}{
		{"dvfs/a100_sxm.csv", [3]float64{}},
		{"dvfs/a40_bloom.csv", [3]float64{}},
		{"dvfs/gtx1080ti.csv", [3]float64{0, 1, 0}},
		{"dvfs/rtx2070s.csv", [3]float64{}},
		{"dvfs/gtx980_high.csv", [3]float64{}},
		{"dvfs/gtx980_low.csv", [3]float64{}},
		{"dvfs/v100.csv", [3]float64{}},
		{"dvfs/v100_2022.csv", [3]float64{}},
		{"powercap/grid_a100_80gb_pcie.csv", [3]float64{}},
		{"powercap/zeus_a40.csv", [3]float64{11, 6, 4}},
		{"powercap/zeus_v100.csv", [3]float64{4, 7, 3}},
	} {
		apps := readFile(t, table.file)
		reports, err := pooled.EvaluateWith(apps, 3, &pooled.EvaluateOptions{Slowdown: 0.05})
		if err != nil {
			t.Fatal(err)
		}
		for i, most := range table.most {
			r := reports[i+1]
			slow := math.Round(*r.Violations * float64(len(apps)))
			t.Logf("%s, %d probes: %.0f of %d choices are too slow, mean regret %.3f %%", table.file, i+1, slow,
				len(apps), r.RegretMean)
			if slow > most {
				t.Errorf("%s, %d probes: %.0f choices are too slow, want at most %.0f", table.file, i+1, slow, most)
			}
		}
	}
}

// The highest clocks are within any slowdown, and a slowdown without a bound changes nothing.
func TestTheHighestClocksAreWithinAnySlowdown(t *testing.T) {
	apps := read(t, "gtx980_low")
	known := make([][]dvfsmodel.Sample, 0, len(apps))
	for _, app := range apps[1:] {
		known = append(known, app.Samples)
	}
	prior, err := pooled.Learn(known)
	if err != nil {
		t.Fatal(err)
	}
	belief := prior.NewBelief()
	settings := belief.Settings()
	for i := range 4 {
		if at := settings[belief.BestWithin(0, nil)]; at.Core != 1000 || at.Mem != 1000 {
			t.Errorf("after %d settings no slowdown leads to %g/%g MHz, want the highest clocks", i,
				float64(at.Core), float64(at.Mem))
		}
		if got, want := belief.BestWithin(math.Inf(1), nil), belief.Best(nil); got != want {
			t.Errorf("after %d settings any slowdown leads to setting %d, want %d", i, got, want)
		}
		s := &apps[0].Samples[i*11]
		for k, at := range settings {
			if at == s.At() {
				if err := belief.Observe(k, s.Time, s.Power, pooled.Noise{}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
