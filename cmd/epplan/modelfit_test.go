package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// The regret that fit --evaluate states is that of the setting to which the models file leads, as model show
// has it and the table says what it takes.
func TestTheStatedRegretIsThatOfTheModelsFile(t *testing.T) {
	for seed := range uint64(12) {
		file := filepath.Join(t.TempDir(), "drawn.csv")
		table := drawnMeasurements(rand.New(rand.NewPCG(seed, 21)))
		if err := os.WriteFile(file, []byte(table), 0o600); err != nil {
			t.Fatal(err)
		}
		statedIsShown(t, file, "GTX980")
	}
	for name, gpu := range map[string]string{
		"v100": "V100", "v100_2022": "V100-2022", "a100_sxm": "A100-SXM4-80GB",
	} {
		t.Run(name, func(t *testing.T) { statedIsShown(t, shareddata.Path(t, "dvfs/"+name+".csv"), gpu) })
	}
}

func statedIsShown(t *testing.T, file, gpu string) {
	t.Helper()
	models := filepath.Join(t.TempDir(), "models.toml")
	run := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := inProcess(t, args...)
		if code != terminal.ExitDone {
			t.Fatalf("%v: exit status %d: %s", args, code, stderr)
		}
		return stdout
	}
	run("model", "fit", file, "--gpu-model", gpu, "-o", models)
	var stated struct {
		Apps []struct {
			App     string `json:"app"`
			FullFit struct {
				Regret float64 `json:"regret_mean"`
			} `json:"full_fit"`
		} `json:"apps"`
	}
	if err := json.Unmarshal([]byte(run("model", "fit", file, "--gpu-model", gpu, "--evaluate", "--json")),
		&stated); err != nil {
		t.Fatal(err)
	}
	energy, least := make(map[[3]string]float64), make(map[string]float64)
	for _, row := range shareddata.Rows(t, file) {
		e := shareddata.Number(t, row["time_ms"]) * shareddata.Number(t, row["power_w"])
		energy[[3]string{row["app"], row["core_mhz"], row["mem_mhz"]}] = e
		if old, seen := least[row["app"]]; !seen || e < old {
			least[row["app"]] = e
		}
	}
	shown, err := csv.NewReader(strings.NewReader(run("model", "show", models, "--csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := make(map[string]int)
	for i, name := range shown[0] {
		column[name] = i
	}
	if len(shown)-1 != len(stated.Apps) {
		t.Fatalf("%s: %d models, and %d regrets", file, len(shown)-1, len(stated.Apps))
	}
	for i, row := range shown[1:] {
		at := [3]string{row[column["workload"]], row[column["core_mhz"]], row[column["mem_mhz"]]}
		e, measured := energy[at]
		if !measured {
			t.Errorf("%s: %v is chosen, which wasn't measured", file, at)
			continue
		}
		regret := e/least[at[0]] - 1
		if stated.Apps[i].App != at[0] || math.Abs(stated.Apps[i].FullFit.Regret-regret) > 1e-9 {
			t.Errorf("%s: %v has a regret of %v, stated is %v of %s", file, at, regret,
				stated.Apps[i].FullFit.Regret, stated.Apps[i].App)
		}
	}
}

// drawnMeasurements returns a table of some applications at core and memory clocks of which a GTX980 has
// some or none, with noise, in which lower clocks are sometimes faster.
func drawnMeasurements(rng *rand.Rand) string {
	var b strings.Builder
	b.WriteString("app,core_mhz,mem_mhz,time_ms,power_w\n")
	cores, mems := 3+rng.IntN(3), 2+rng.IntN(3)
	for a := range 1 + rng.IntN(4) {
		core, mem, still := 2+8*rng.Float64(), 1+6*rng.Float64(), rng.Float64()
		watts := 60 + 120*rng.Float64()
		for i := range cores {
			for k := range mems {
				fc, fm := 500+200*float64(i), 2100+500*float64(k)
				scatter := func() float64 { return math.Exp(0.03 * rng.NormFloat64()) }
				rise := 1 + max(0, fc/1300-0.7)
				fmt.Fprintf(&b, "app %d,%g,%g,%s,%s\n", a, fc, fm,
					strconv.FormatFloat((still+core*1000/fc+mem*3000/fm)*scatter(), 'f', 5, 64),
					strconv.FormatFloat((40+fm/100+watts*fc/1300*rise*rise)*scatter(), 'f', 3, 64))
			}
		}
	}
	return b.String()
}
