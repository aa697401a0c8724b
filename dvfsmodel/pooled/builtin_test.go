package pooled_test

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
)

var update = flag.Bool("update", false, "write builtin.json anew")

// measuredTables are what the built-in curves are learnt from, with the GPU
// models whose default clocks count.
var measuredTables = []struct{ file, gpu string }{
	{"gtx980_high", "GTX980"},
	{"gtx980_low", "GTX980-low"},
	{"gtx1080ti", "GTX1080Ti"},
	{"rtx2070s", "RTX2070S"},
	{"v100", "V100"},
	{"v100_2022", "V100-2022"},
}

// builtinCurves learns the built-in curves. The 405 MHz rows of the second V100
// campaign are left out: they behave like about 200 MHz.
func builtinCurves(t *testing.T) *pooled.Curves {
	t.Helper()
	one := dvfsmodel.Setting{Core: 1, Mem: 1}
	var all [][]dvfsmodel.Sample
	for _, table := range measuredTables {
		profile, err := config.BuiltinProfiles().Lookup(table.gpu)
		if err != nil {
			t.Fatal(err)
		}
		for _, app := range read(t, table.file) {
			var samples []dvfsmodel.Sample
			for _, s := range app.Samples {
				if s.Core == 405 {
					continue
				}
				s.Core, s.Mem = s.Core/profile.Default.Core, s.Mem/profile.Default.Mem
				samples = append(samples, s)
			}
			all = append(all, samples)
		}
	}
	return pooled.LearnCurves(all, one, nil, 0, pooled.Noise{})
}

// go test ./dvfsmodel/pooled -run BuiltIn -update writes the file.
func TestBuiltInCurvesAreThoseOfTheMeasuredTables(t *testing.T) {
	fresh := builtinCurves(t)
	const digits = 1e9
	for _, list := range [][]float64{fresh.Mean, fresh.Covariance} {
		for i, x := range list {
			list[i] = math.Round(x*digits) / digits
		}
	}
	if *update {
		text, err := json.Marshal(fresh)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("builtin.json", append(text, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	have := pooled.BuiltinCurves()
	if err := have.Validate(); err != nil {
		t.Fatal(err)
	}
	off := max(math.Abs(have.TimeResidual-fresh.TimeResidual),
		math.Abs(have.PowerResidual-fresh.PowerResidual))
	for i := range fresh.Mean {
		off = max(off, math.Abs(have.Mean[i]-fresh.Mean[i]))
	}
	for i := range fresh.Covariance {
		off = max(off, math.Abs(have.Covariance[i]-fresh.Covariance[i]))
	}
	const rounding = 1e-6
	if off > rounding {
		t.Errorf("the file differs from what the tables give by up to %v (-update writes it)", off)
	}
}
