package trace_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
)

var update = flag.Bool("update", false, "write testdata/demo/workloads.csv anew")

const demoHeader = "workload,gpu_model,p0_w,gamma_w,c_w,d_s,delta,t0_s\n"

func demoRow(buf *bytes.Buffer, app, gpu string, p dvfsmodel.Params) {
	num := func(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
	fmt.Fprintf(buf, "%s,%s,%s,%s,%s,%s,%s,%s\n", app, gpu, num(float64(p.P0)), num(float64(p.Gamma)),
		num(float64(p.C)), num(p.D), num(p.Delta), num(p.T0))
}

func fitApp(t *testing.T, app dvfsmodel.AppSamples, base dvfsmodel.Base) dvfsmodel.Params {
	t.Helper()
	fit, err := dvfsmodel.FitPaper(app.Samples, base)
	if err != nil {
		t.Fatalf("%s: %v", app.App, err)
	}
	if err := fit.Params.Validate(); err != nil {
		t.Fatalf("%s: %v", app.App, err)
	}
	return fit.Params
}

func TestDemoWorkloadsAreTheFitsOfTheMeasuredTables(t *testing.T) {
	v100 := make(map[string]dvfsmodel.AppSamples)
	for _, app := range readTable(t, "v100_2022") {
		v100[app.App] = app
	}
	buf := bytes.NewBufferString(demoHeader)
	for _, app := range readTable(t, "gtx1080ti") {
		other, both := v100[app.App]
		if !both {
			continue
		}
		demoRow(buf, app.App, "GTX1080Ti", fitApp(t, app, dvfsmodel.Base{Core: 1800, Mem: 5000}))
		demoRow(buf, app.App, "V100", fitApp(t, other, dvfsmodel.Base{Core: 1380, Mem: 877}))
	}
	path := filepath.Join("..", "..", "testdata", "demo", "workloads.csv")
	if *update {
		if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path) //nolint:gosec // the test's own fixed path
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, buf.Bytes()) {
		t.Errorf("%s is not what the tables give; write it anew with -update", path)
	}
}
