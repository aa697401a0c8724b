package main

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// ours returns the figures of reproduce predict by rule and what they are, by
// energy model.
func ours(t *testing.T, args ...string) map[[2]string]map[string]float64 {
	t.Helper()
	code, stdout, stderr := inProcess(t, append([]string{"reproduce", "predict", "--json"}, args...)...)
	if code != terminal.ExitDone {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	var rows []struct {
		Rule, What string
		A          float64 `json:"ours_independent"`
		B          float64 `json:"ours_coupled"`
	}
	if err := json.Unmarshal([]byte(stdout), &rows); err != nil {
		t.Fatal(err)
	}
	all := make(map[[2]string]map[string]float64)
	for _, r := range rows {
		all[[2]string{r.Rule, r.What}] = map[string]float64{"independent": r.A, "coupled": r.B}
	}
	return all
}

func TestTheInstancesComeToWhatTheirReferenceSays(t *testing.T) {
	dir := filepath.Dir(shareddata.Path(t, "knapsack/results.csv"))
	f, err := os.Open(filepath.Join(dir, "results.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	const instances = 10
	want := make(map[[2]string]map[string]float64)
	for _, row := range rows[1:] {
		rule, ok := map[string]string{"simple": ruleSimple, "value_default": ruleValue}[row[2]]
		if !ok {
			continue
		}
		for what, cell := range map[string]struct {
			column int
			unit   float64
		}{
			"energy": {3, 1}, "total waiting time": {4, 1e6}, "jobs that wait": {6, 1},
			"total running time": {7, 1e6},
		} {
			x, err := strconv.ParseFloat(row[cell.column], 64)
			if err != nil {
				t.Fatal(err)
			}
			key := [2]string{rule, what}
			if want[key] == nil {
				want[key] = make(map[string]float64)
			}
			want[key][row[1]] += x / cell.unit / instances
		}
	}
	got := ours(t, "--data", dir, "--only", "table1")
	for key, models := range want {
		for model, w := range models {
			if g := got[key][model]; math.Abs(g-w) > 1e-6*w {
				t.Errorf("%s, %s: %s is %v, want %v", model, key[0], key[1], g, w)
			}
		}
	}
	if len(want) != 8 {
		t.Errorf("%d figures were compared, want 8", len(want))
	}
}

func TestTuningForAnAimDoesBestByThatAimOnTheQueuesItWasTunedOn(t *testing.T) {
	p := predictReproduction{seed: 5, tuning: 3}
	if err := p.tune(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	queues, err := p.drawQueues(p.tuning, tuningStream)
	if err != nil {
		t.Fatal(err)
	}
	policies := []string{
		valueWith(p.kappas[aimWait]), valueWith(p.kappas[aimRunning]),
		valueWith(p.kappas[aimEnergy]), ruleValue,
	}
	found, err := meansByPolicy(t.Context(), queues, policies, func() {})
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		if found[i].wait < found[0].wait || found[i].running < found[1].running ||
			found[i].kWh < found[2].kWh {
			t.Errorf("%s does better by an aim that another weight was tuned for: %+v", policies[i], found)
		}
	}
}
