package trace_test

import (
	"bytes"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
)

var update = flag.Bool("update", false, "write testdata/demo/models.toml anew")

// demoModel returns a fit of the paper's form as a models file has it, with six
// digits.
func demoModel(
	t *testing.T, app dvfsmodel.AppSamples, gpuModel, table string, base dvfsmodel.Setting,
) config.Model {
	t.Helper()
	forms := []dvfsmodel.Form{dvfsmodel.PaperForm()}
	fit, err := dvfsmodel.Fit(app.Samples, base, &dvfsmodel.FitOptions{Forms: forms, Focus: math.Inf(1)})
	if err != nil {
		t.Fatalf("%s: %v", app.App, err)
	}
	p, _ := fit.Params()
	if err := p.Validate(); err != nil {
		t.Fatalf("%s: %v", app.App, err)
	}
	m := config.Model{
		Workload: app.App, GPUModel: gpuModel, Form: dvfsmodel.PaperForm(), Base: base,
		Settings: len(app.Samples), Source: "own fit to " + table,
	}
	for _, c := range []struct {
		name  string
		value float64
	}{
		{"p0_w", float64(p.P0)},
		{"gamma_w", float64(p.Gamma)},
		{"c_w", float64(p.C)},
		{"d_s", p.D},
		{"delta", p.Delta},
		{"t0_s", p.T0},
	} {
		m.Coefficients = append(m.Coefficients, dvfsmodel.Coefficient{
			Name: c.name, Value: sixDigits(t, c.value),
		})
	}
	return m
}

func sixDigits(t *testing.T, x float64) float64 {
	t.Helper()
	if math.Abs(x) < 1e-12 {
		return 0
	}
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64)
	if err != nil {
		t.Fatal(err)
	}
	return y
}

func TestDemoModelsAreTheFitsOfTheMeasuredTables(t *testing.T) {
	v100 := make(map[string]dvfsmodel.AppSamples)
	for _, app := range readTable(t, "v100_2022") {
		v100[app.App] = app
	}
	var list []config.Model
	for _, app := range readTable(t, "gtx1080ti") {
		if other, both := v100[app.App]; both {
			list = append(list,
				demoModel(t, app, "GTX1080Ti", "gtx1080ti.csv", dvfsmodel.Setting{Core: 1800, Mem: 5000}),
				demoModel(t, other, "V100", "v100_2022.csv", dvfsmodel.Setting{Core: 1380, Mem: 877}))
		}
	}
	models, err := config.NewModels(list...)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := config.WriteModels(&buf, models); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "..", "testdata", "demo", "models.toml")
	if *update {
		if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, buf.Bytes()) {
		t.Errorf("%s is not what the tables give; write it anew with -update", path)
	}
}
