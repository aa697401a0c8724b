package policy_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/shareddata"
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
	p := &planner.Problem{
		Start: start, Cluster: planner.Cluster{Name: "paper", Slot: 1, Classes: []planner.NodeClass{
			{Name: "pair", Model: "paper", GPUs: l, IdleW: 37, TurnOn: 90},
		}},
	}
	file := "edl/tasksets/" + set + ".csv"
	if set == "table3" {
		file = "edl/table3.csv"
	}
	for _, row := range shareddata.Rows(tb, shareddata.Path(tb, file)) {
		p.Tasks = append(p.Tasks, planner.Task{
			ID: row["id"], Arrival: shareddata.Number(tb, row["arrival"]), Deadline: shareddata.Number(tb,
				row["deadline"]), Due: shareddata.Number(tb, row["deadline"]),
			Limit: math.Inf(1), Share: 1,
			Options: []planner.Option{
				{Model: "paper", GPUs: 1, Response: &dvfsmodel.Continuous{Range: &r, Params: dvfsmodel.Params{
					P0:    dvfsmodel.Watt(shareddata.Number(tb, row["P0"])),
					Gamma: dvfsmodel.Watt(shareddata.Number(tb, row["gamma"])),
					C:     dvfsmodel.Watt(shareddata.Number(tb, row["c"])),
					D:     shareddata.Number(tb, row["D"]), Delta: shareddata.Number(tb, row["delta"]),
					T0: shareddata.Number(tb, row["t0"]),
				}}},
			},
		})
	}
	p.Mode = planner.ModeOf(p.Tasks)
	return p
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
	bySet := map[string][]map[string]string{}
	for _, row := range shareddata.Rows(t, shareddata.Path(t, "edl/results.csv")) {
		if policyOf(row) != "" {
			bySet[row["set"]+"/"+row["interval"]] = append(bySet[row["set"]+"/"+row["interval"]], row)
		}
	}
	if len(bySet) != 20 {
		t.Errorf("%d sets and intervals, want 20", len(bySet))
	}
	for name, rows := range bySet {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkRows(t, rows)
		})
	}
}

// checkRows plans each row's policy; rows of one set and interval share their
// problems.
func checkRows(t *testing.T, rows []map[string]string) {
	t.Helper()
	problems := map[string]*planner.Problem{}
	worst := 0.0
	for _, row := range rows {
		start, err := planner.ParseStartRule(row["start_rule"])
		if err != nil {
			t.Fatal(err)
		}
		key := row["l"] + row["start_rule"]
		if problems[key] == nil {
			problems[key] = paperProblem(t, row["set"], row["interval"],
				int(shareddata.Number(t, row["l"])), start)
		}
		plan := planPaper(t, problems[key], policyOf(row))
		off := math.Abs(float64(plan.Ledger.Total())/shareddata.Number(t, row["e_total"]) - 1)
		worst = max(worst, off)
		if off > 1e-8 || plan.Status != planner.Complete {
			t.Errorf("%s l=%s %s: %.10g J, reference %s (off by %.3g), status %v; run %.10g/%s idle "+
				"%.8g/%s on %.6g/%s",
				policyOf(row), row["l"], row["start_rule"], float64(plan.Ledger.Total()), row["e_total"],
				off, plan.Status,
				float64(plan.Ledger.Run), row["e_run"], float64(plan.Ledger.Idle), row["e_idle"],
				float64(plan.Ledger.TurnOn), row["e_turnon"])
		}
	}
	t.Logf("%d rows, the worst is off by %.3g", len(rows), worst)
}

func planPaper(tb testing.TB, p *planner.Problem, text string) *planner.Plan {
	tb.Helper()
	pol, err := policy.Parse(text, policy.DefaultParams())
	if err != nil {
		tb.Fatal(err)
	}
	plan, err := planner.Solve(context.Background(), p, pol, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return plan
}

// scheduleName is the parts of a file's name in schedules/.
var scheduleName = regexp.MustCompile(
	`^(table3|off_tiny|on_tiny)_(edl|edf-bf|edf-wf|lpt-ff|bin)([0-9.]*)_l(\d)(?:_(slot|continuous))?\.csv$`,
)

func TestPaperPoliciesReproduceTheReferenceSchedules(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shareddata.Path(t, "edl/schedules"), "*.csv"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		parts := scheduleName.FindStringSubmatch(filepath.Base(file))
		if parts == nil {
			continue // another algorithm, or the servers of a schedule
		}
		checked++
		t.Run(filepath.Base(file), func(t *testing.T) { checkSchedule(t, file, parts) })
	}
	if checked != 20 {
		t.Errorf("%d schedules checked, want 20", checked)
	}
}

func checkSchedule(t *testing.T, file string, parts []string) {
	t.Helper()
	set, algorithm, theta, l, rule := parts[1], parts[2], parts[3], parts[4], parts[5]
	if rule == "" {
		rule = "continuous"
	}
	start, err := planner.ParseStartRule(rule)
	if err != nil {
		t.Fatal(err)
	}
	name := policyOf(map[string]string{"algorithm": algorithm, "theta": theta, "dvfs": "1"})
	p := paperProblem(t, set, "wide", int(shareddata.Number(t, l)), start)
	plan := planPaper(t, p, name)
	partner := map[string]string{} // our GPU by the reference's pair: labels differ, tasks on one pair don't
	for _, row := range shareddata.Rows(t, file) {
		a := &plan.Assignments[int(shareddata.Number(t, row["task"]))]
		for column, got := range map[string]float64{
			"start": a.Start, "finish": a.End, "Vc": float64(a.Point.Scaling.V), "fc": a.Point.Scaling.Fc,
			"fm": a.Point.Scaling.Fm, "P": float64(a.Point.Power), "E": float64(a.Point.Energy),
		} {
			if want := shareddata.Number(t, row[column]); math.Abs(got-want) > 1e-7*max(1, math.Abs(want)) {
				t.Errorf("task %s: %s = %.12g, want %.12g", row["task"], column, got, want)
			}
		}
		if readjusted := a.Reason.Clocks == planner.ClocksReadjust; readjusted != (row["readjusted"] == "1") {
			t.Errorf("task %s: %q, reference readjusted = %s", row["task"], a.Reason, row["readjusted"])
		}
		pair, ours := row["server"]+"/"+row["pair"], fmt.Sprintf("%d/%d", a.Node, a.GPUs.First())
		if known, ok := partner[pair]; ok && known != ours {
			t.Errorf("task %s is on GPU %s, others of the reference's pair %s on %s", row["task"],
				ours, pair, known)
		}
		partner[pair] = ours
	}
}
