package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// gridProfile is the GPU of the measured grid with the clocks at which it was measured.
const gridProfile = `[[gpu]]
name = "A100-grid"
default_core_mhz = 1410
default_mem_mhz = 1512
clocks = [{ mem_mhz = [1512], core_mhz = [1005, 1110, 1200, 1305, 1410] }]
idle_w = 50
host_w_per_gpu = 0
limit_w_min = 150
limit_w_default = 300
limit_w_max = 300
`

const gridCluster = `[safety]
limit_margin = 0
[[cluster.nodes]]
gpu_model = "A100-grid"
gpus = 1
host_w_per_gpu = 0
`

// gridSetting is a row of the grid: what an application took at a clock and under a cap.
type gridSetting struct{ app, core, capW string }

// plannedGrid is a plan of all applications of the grid, each allowed 6 % more time than at default
// clocks.
type plannedGrid struct {
	t        *testing.T
	files    []string // --cluster and the like
	batch    string
	measured map[gridSetting]struct{ time, energy float64 }
}

func newPlannedGrid(t *testing.T) *plannedGrid {
	t.Helper()
	data, dir := shareddata.Path(t, "powercap/grid_a100_80gb_pcie.csv"), t.TempDir()
	g := &plannedGrid{t: t, measured: make(map[gridSetting]struct{ time, energy float64 })}
	var batch strings.Builder
	batch.WriteString("id,workload,limit_s\n")
	for _, row := range shareddata.Rows(t, data) {
		at := gridSetting{row["app"], row["core_mhz"], row["cap_w"]}
		took := struct{ time, energy float64 }{
			shareddata.Number(t, row["time_s"]), shareddata.Number(t, row["energy_j"]),
		}
		g.measured[at] = took
		if at.core == "1410" && at.capW == "300" {
			fmt.Fprintf(&batch, "%s,%s,%.3f\n", at.app, at.app, 1.06*took.time)
		}
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	profiles, models := write("gpus.toml", gridProfile), filepath.Join(dir, "models.toml")
	g.batch = write("batch.csv", batch.String())
	g.files = []string{
		"--profiles", profiles, "--models", models, "--cluster", write("cluster.toml", gridCluster),
		"--policy", "edl",
	}
	g.run("model", "fit", data, "--profiles", profiles, "--gpu-model", "A100-grid", "-o", models)
	return g
}

func (g *plannedGrid) run(args ...string) string {
	g.t.Helper()
	code, stdout, stderr := inProcess(g.t, args...)
	if code != terminal.ExitDone {
		g.t.Fatalf("%v: exit status %d: %s", args, code, stderr)
	}
	return stdout
}

func (g *plannedGrid) plan(args ...string) string {
	g.t.Helper()
	return g.run(append(append([]string{"plan", g.batch}, g.files...), args...)...)
}

// saved returns what each application saves at the setting that a plan chose, in percent of what was measured
// at default clocks, and how much longer it takes, both as they were measured.
func (g *plannedGrid) saved(args ...string) map[string][2]float64 {
	g.t.Helper()
	records, err := csv.NewReader(strings.NewReader(g.plan(append(args, "--csv")...))).ReadAll()
	if err != nil {
		g.t.Fatal(err)
	}
	saved := make(map[string][2]float64)
	for _, record := range records[1:] {
		row := make(map[string]string)
		for i, name := range records[0] {
			row[name] = record[i]
		}
		at := gridSetting{row["id"], row["core_mhz"], row["cap_w"]}
		if at.capW == "" {
			at.capW = "300"
		}
		took, ok := g.measured[at]
		standard := g.measured[gridSetting{at.app, "1410", "300"}]
		if !ok {
			g.t.Fatalf("%+v wasn't measured", at)
		}
		g.t.Logf("%v %s runs at %s MHz under %s W", args, at.app, at.core, at.capW)
		saved[at.app] = [2]float64{
			100 * (1 - took.energy/standard.energy),
			100 * (took.time/standard.time - 1),
		}
	}
	return saved
}

// What plans choose by models of the measured grid is what was measured to be the best that is no more
// than 5 % slower, with clocks alone and with caps.
func TestAPlanByMeasurementsUnderCapsSavesWhatWasMeasured(t *testing.T) {
	g := newPlannedGrid(t)
	for _, c := range []struct {
		args []string
		want map[string]float64
	}{
		{nil, map[string]float64{"babelstream": 36.4, "pi-solver": 0, "waterlily": 5.9}},
		{[]string{"--caps"}, map[string]float64{"babelstream": 38.7, "pi-solver": 12.8, "waterlily": 12.1}},
	} {
		saved := g.saved(c.args...)
		for app, want := range c.want {
			if got := saved[app]; fmt.Sprintf("%.1f", got[0]) != fmt.Sprintf("%.1f", want) || got[1] > 5 {
				t.Errorf("%v %s saves %.1f %% and takes %.1f %% longer, want %.1f %% and at most 5 %%",
					c.args, app, got[0], got[1], want)
			}
		}
	}
}

func TestAPlanShowsTheCapsThatItSets(t *testing.T) {
	g := newPlannedGrid(t)
	var plan struct {
		Jobs []struct {
			ID   string   `json:"id"`
			CapW *float64 `json:"cap_w"`
		} `json:"jobs"`
	}
	if err := json.Unmarshal([]byte(g.plan("--caps", "--json")), &plan); err != nil {
		t.Fatal(err)
	}
	if len(plan.Jobs) != 3 {
		t.Fatalf("%+v, want three jobs", plan)
	}
	for _, job := range plan.Jobs {
		if job.CapW == nil || *job.CapW < 150 || *job.CapW >= 300 {
			t.Errorf("%s has the cap %v", job.ID, job.CapW)
		}
	}
	text := g.plan("--caps")
	if !strings.Contains(text, "core/mem@cap") || !strings.Contains(text, "1410/1512@250W") {
		t.Errorf("no caps in\n%s", text)
	}
	for _, format := range []string{"--json", "--csv", "--rows=10"} {
		if text := g.plan(format); strings.Contains(text, "cap_w") || strings.Contains(text, "@cap") {
			t.Errorf("caps that nobody asked for, in\n%s", text)
		}
	}
	explained := g.run(append([]string{"explain", "pi-solver", g.batch, "--caps"}, g.files...)...)
	if !strings.Contains(explained, "memory 1512 MHz, power at most 250 W") {
		t.Errorf("no cap in\n%s", explained)
	}
	shown := g.run("model", "show", g.files[3], "--profiles", g.files[1], "--slowdown", "0.06", "--csv")
	if !strings.Contains(shown, "mem_mhz,cap_w,time_s") || !strings.Contains(shown, ",1512,250,") {
		t.Errorf("no cap in\n%s", shown)
	}
}

// A configuration by which epd chooses caps has plans do so.
func TestAPlanSetsCapsWhereTheConfigurationDoes(t *testing.T) {
	g := newPlannedGrid(t)
	cluster := g.files[5]
	for text, capped := range map[string]bool{
		"[live.cap]\nmode = \"chosen\"\n":                            true,
		"[live.cap]\nmode = \"off\"\n":                               false,
		"[live.cap]\nmode = \"chosen\"\nmodes = {debug = \"off\"}\n": false,
	} {
		if err := os.WriteFile(cluster, []byte(gridCluster+text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(g.plan("--csv"), ",cap_w,"); got != capped {
			t.Errorf("with %q caps are set: %v, want %v", text, got, capped)
		}
		if strings.Contains(g.plan("--csv", "--caps=false"), ",cap_w,") {
			t.Errorf("with %q and --caps=false caps are set", text)
		}
	}
}

// The frontier of a model of clocks and caps is each setting that no other one beats in both time and energy:
// every other one of the grid is as slow as one of it, or slower, and takes no less energy.
func TestTheFrontierOfAModelIsWhatNoOtherSettingBeats(t *testing.T) {
	g := newPlannedGrid(t)
	show := func(args ...string) []map[string]any {
		var rows []map[string]any
		text := g.run(
			append([]string{"model", "show", g.files[3], "--profiles", g.files[1], "--json"}, args...)...)
		if err := json.Unmarshal([]byte(text), &rows); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return rows
	}
	best, number := make(map[string]map[string]any), func(row map[string]any, key string) float64 {
		x, _ := row[key].(float64)
		return x
	}
	for _, row := range show() {
		best[fmt.Sprint(row["workload"])] = row
	}
	last, capped := make(map[string]map[string]any), 0
	for _, row := range show("--frontier") {
		name := fmt.Sprint(row["workload"])
		if before := last[name]; before != nil && !(number(row, "time_s") > number(before, "time_s") &&
			number(row, "energy_j") < number(before, "energy_j")) {
			t.Errorf("%v comes after %v", row, before)
		}
		if last[name] = row; number(row, "cap_w") > 0 {
			capped++
		}
		if least := number(best[name], "energy_j"); number(row, "energy_j") < least*(1-1e-9) {
			t.Errorf("%v takes less than the best setting, which takes %v J", row, least)
		}
	}
	if len(last) != 3 || capped == 0 {
		t.Fatalf("%d workloads, %d settings under a cap", len(last), capped)
	}
	for name, row := range last {
		for _, key := range []string{"core_mhz", "cap_w", "time_s", "energy_j"} {
			if row[key] != best[name][key] {
				t.Errorf("%s ends with %v, the best setting is %v", name, row, best[name])
			}
		}
	}
	for _, row := range show("--frontier", "--slowdown", "0.05") {
		if number(row, "slowdown") > 0.05+1e-9 {
			t.Errorf("%v is slower than it may be", row)
		}
	}
}
