package policy_test

import (
	"context"
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/shareddata"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

// paperProblem joins a task set of the EDL reference with the paper's cluster.
func paperProblem(tb testing.TB, set, interval string, l int, start planner.StartRule) *planner.Problem {
	tb.Helper()
	r, err := dvfsmodel.RangeByName(interval)
	if err != nil {
		tb.Fatal(err)
	}
	p := &planner.Problem{Start: start, Cluster: planner.Cluster{Name: "paper", Slot: 1, Classes: []planner.NodeClass{
		{Name: "pair", Model: "paper", GPUs: l, IdleW: 37, TurnOn: 90},
	}}}
	for _, row := range readTable(tb, shareddata.Path(tb, "edl/tasksets/"+set+".csv")) {
		p.Tasks = append(p.Tasks, planner.Task{
			ID: row["id"], Arrival: num(tb, row["arrival"]), Deadline: num(tb, row["deadline"]), Due: num(tb, row["deadline"]),
			Limit: math.Inf(1), Share: 1,
			Options: []planner.Option{{Model: "paper", GPUs: 1, Response: &dvfsmodel.Continuous{Range: &r, Params: dvfsmodel.Params{
				P0: dvfsmodel.Watt(num(tb, row["P0"])), Gamma: dvfsmodel.Watt(num(tb, row["gamma"])), C: dvfsmodel.Watt(num(tb, row["c"])),
				D: num(tb, row["D"]), Delta: num(tb, row["delta"]), T0: num(tb, row["t0"]),
			}}}},
		})
	}
	p.Mode = planner.ModeOf(p.Tasks)
	return p
}

func readTable(tb testing.TB, path string) []map[string]string {
	tb.Helper()
	f, err := os.Open(path) //nolint:gosec // a fixture
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		tb.Fatal(err)
	}
	rows := make([]map[string]string, 0, len(records)-1)
	for _, record := range records[1:] {
		row := make(map[string]string, len(record))
		for i, name := range records[0] {
			row[name] = record[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func num(tb testing.TB, s string) float64 {
	tb.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

// policyOf is our name of an algorithm of results.csv; empty: not the paper's.
func policyOf(row map[string]string) string {
	name := map[string]string{
		"edl": "edl:" + row["theta"], "bin": "edl-bin", "edf-bf": "edf-bf", "edf-wf": "edf-wf",
		"edf-bf-time": "edf-bf-time", "lpt-ff": "lpt-ff",
	}[row["algorithm"]]
	if name != "" && row["dvfs"] == "0" {
		name += ",clocks=default"
	}
	return name
}

func TestPaperPoliciesReproduceTheReferenceResults(t *testing.T) {
	worst, compared := 0.0, 0
	problems := map[string]*planner.Problem{}
	for _, row := range readTable(t, shareddata.Path(t, "edl/results.csv")) {
		name := policyOf(row)
		if name == "" {
			continue
		}
		start, err := planner.ParseStartRule(row["start_rule"])
		if err != nil {
			t.Fatal(err)
		}
		key := row["set"] + row["interval"] + row["l"] + row["start_rule"]
		if problems[key] == nil {
			problems[key] = paperProblem(t, row["set"], row["interval"], int(num(t, row["l"])), start)
		}
		pol, err := policy.Parse(name, policy.DefaultParams())
		if err != nil {
			t.Fatal(err)
		}
		plan, err := planner.Solve(context.Background(), problems[key], pol, nil)
		if err != nil {
			t.Fatal(err)
		}
		off := math.Abs(float64(plan.Ledger.Total())/num(t, row["e_total"]) - 1)
		worst = max(worst, off)
		compared++
		if off > 0.001 || plan.Status != planner.Complete {
			t.Errorf("%s %s %s l=%s %s: %.10g J, reference %s (off by %.3g), status %v, run %.10g/%s idle %.8g/%s on %.6g/%s", row["set"], row["interval"], name,
				row["l"], row["start_rule"], float64(plan.Ledger.Total()), row["e_total"], off, plan.Status,
				float64(plan.Ledger.Run), row["e_run"], float64(plan.Ledger.Idle), row["e_idle"], float64(plan.Ledger.TurnOn), row["e_turnon"])
		}
	}
	t.Logf("%d rows compared, the worst is off by %.3g", compared, worst)
}
