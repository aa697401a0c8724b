package planreport_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/planner"
)

// pastDueResult returns a plan of two jobs without deadlines, one of which ends past its
// due time though first come, first served would keep it.
func pastDueResult(tb testing.TB) *planreport.Result {
	tb.Helper()
	p := lateProblem(tb)
	for i := range p.Tasks {
		p.Tasks[i].Deadline, p.Tasks[i].Due = math.Inf(1), 1000
	}
	r := solve(tb, p, "edl")
	late := &r.Plan.Assignments[1]
	if late.Start == 0 {
		late = &r.Plan.Assignments[0]
	}
	base := *r.Plan
	base.Assignments = slices.Clone(r.Plan.Assignments)
	r.Reference, r.Easy = &base, &base
	late.Start, late.End = late.Start+2000, late.End+2000
	return r
}

func TestAPlanPastDueNeverSaysThatDeadlinesAreMet(t *testing.T) {
	r := pastDueResult(t)
	text := string(written(t, table(nil), r))
	for _, want := range []string{
		"1 ends past its due time",
		"1 job is late here that isn't at default clocks, first come, first served: second.", "\npast due ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table doesn't say %q:\n%s", want, text)
		}
	}
	page := string(written(t, func(w io.Writer, r *planreport.Result) error {
		return planreport.WritePlanPage(w, &planreport.PlanPage{Result: r, Name: "a batch"})
	}, r))
	picture := string(written(t, ganttChart(nil), r))
	for what, said := range map[string]string{"table": text, "page": page, "picture": picture} {
		for _, wrong := range []string{"deadlines are met", "deadlines met", "by its deadline"} {
			if strings.Contains(said, wrong) {
				t.Errorf("the %s says %q", what, wrong)
			}
		}
	}
	var d struct {
		PastDue int      `json:"past_due"`
		Newly   []string `json:"newly_late"`
		Misses  int
	}
	if err := json.Unmarshal(written(t, planreport.WritePlanJSON, r), &d); err != nil {
		t.Fatal(err)
	}
	if d.PastDue != 1 || d.Misses != 0 || !slices.Equal(d.Newly, []string{"second"}) {
		t.Errorf("%+v", d)
	}
}

func TestAComparisonDoesNotCallAPlanPastDueTheBest(t *testing.T) {
	r := pastDueResult(t)
	runs := []planreport.Run{{Summary: planreport.Summarise(r)}}
	page := string(written(t, func(w io.Writer, _ *planreport.Result) error {
		return planreport.WriteComparePage(w, &planreport.ComparePage{Runs: runs, Name: "a batch"})
	}, r))
	if !strings.Contains(page, "No plan covers all jobs in time") || strings.Contains(page, "kept") {
		t.Error("the page calls a plan past due the best")
	}
}

func TestTurnaroundsAreFromTheArrivalAndP95IsTheNearestRank(t *testing.T) {
	plan := &planner.Plan{Nodes: make([]planner.PlannedNode, 1)}
	cluster := planner.Cluster{Classes: make([]planner.NodeClass, 1)}
	r := &planreport.Result{Problem: &planner.Problem{Cluster: cluster}, Plan: plan}
	for i := range 20 {
		task := planner.NewTask("t")
		task.Arrival = 100 + float64(i)
		r.Problem.Tasks = append(r.Problem.Tasks, task)
		r.Plan.Assignments = append(r.Plan.Assignments, planner.Assignment{Start: 200, End: 300})
	}
	s := planreport.Summarise(r)
	if s.Makespan != 200 || s.Wait != (planreport.TimeSpread{Mean: 90.5, P95: 99}) ||
		s.Turnaround != (planreport.TimeSpread{Mean: 190.5, P95: 199}) {
		t.Errorf("makespan %v, wait %+v, turnaround %+v", s.Makespan, s.Wait, s.Turnaround)
	}
}

// constantResult returns a plan with one at constant clocks, which is that of a policy
// that takes more energy.
func constantResult(tb testing.TB) *planreport.Result {
	tb.Helper()
	p := smallProblem(tb)
	r, other := solve(tb, p, "edl"), solve(tb, p, "edl,clocks=default")
	other.Plan.Clocks = map[string]dvfsmodel.Point{
		"x": {Core: 1110, Mem: 877}, "y": {Scaling: dvfsmodel.Scaling{Fc: 0.75, Fm: 1}},
	}
	r.Reference, r.Easy, r.Constant = other.Plan, other.Plan, other.Plan
	r.Baseline = 2 * other.Plan.Ledger.Total()
	return r
}

func TestThePlanSaysWhatItSavesBeyondEasyAndConstantClocks(t *testing.T) {
	r := constantResult(t)
	s := planreport.Summarise(r)
	beyond := report.FormatPercent(1 - float64(s.Energy/s.Constant.Energy))
	text := string(written(t, table(nil), r))
	for _, want := range []string{
		beyond + " against EASY, " + beyond + " against constant clocks", " constant ",
		"GPU model: x 1110/877, y 0.750/1.000:",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table doesn't say %q:\n%s", want, text)
		}
	}
	page := string(written(t, func(w io.Writer, r *planreport.Result) error {
		return planreport.WritePlanPage(w, &planreport.PlanPage{Result: r, Name: "a batch"})
	}, r))
	for _, want := range []string{
		strings.TrimSuffix(beyond, "%"), "against constant clocks",
		"Beyond constant clocks", "x 1110/877",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page doesn't say %q", want)
		}
	}
	r.Plan.Clocks = r.Constant.Clocks
	if text := string(written(t, table(nil), r)); strings.Contains(text, "against EASY") {
		t.Errorf("a plan at constant clocks is held against those:\n%s", text)
	}
}

func TestTheJSONOfAPlanHasItsObjectiveAndConstantClocks(t *testing.T) {
	r := constantResult(t)
	r.Problem.Objective = dvfsmodel.PricedTime(50)
	var d struct {
		Objective float64
		Unit      string  `json:"objective_unit"`
		Baseline  float64 `json:"baseline_energy_j"`
		Constant  struct {
			Energy  float64 `json:"energy_j"`
			PastDue *int    `json:"past_due"`
			Saving  float64
			Clocks  map[string]map[string]float64
		}
	}
	runs := []planreport.Run{{Summary: planreport.Summarise(r)}}
	compared := written(t,
		func(w io.Writer, _ *planreport.Result) error { return planreport.Comparison(runs).WriteJSON(w) }, r)
	for what, text := range map[string][]byte{
		"plan":       written(t, planreport.WritePlanJSON, r),
		"comparison": bytes.Trim(compared, "[]\n "),
	} {
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		if d.Unit != "J + 50·GPU·s" || math.Abs(d.Objective-r.Problem.Cost(r.Plan)) > 1e-6 {
			t.Errorf("%s: objective %v %s", what, d.Objective, d.Unit)
		}
		c := d.Constant
		if c.PastDue == nil || math.Abs(c.Saving-0.5) > 1e-9 || math.Abs(c.Energy/d.Baseline-0.5) > 1e-9 ||
			c.Clocks["x"]["core_mhz"] != 1110 ||
			c.Clocks["x"]["mem_mhz"] != 877 || c.Clocks["y"]["fc"] != 0.75 {
			t.Errorf("%s: constant %+v", what, c)
		}
	}
}

// A plan that leaves out a job takes less for that, and saves nothing by it.
func TestNothingIsSavedByLeavingJobsOut(t *testing.T) {
	r := constantResult(t)
	for left := range r.Problem.Tasks {
		if r.Plan.Assignments[left].Node < 0 {
			continue
		}
		some, plan := *r, *r.Plan
		plan.Unplaced = append(slices.Clone(plan.Unplaced), planner.Unplaced{Task: left, Why: "no room"})
		slices.SortFunc(plan.Unplaced, func(a, b planner.Unplaced) int { return a.Task - b.Task })
		plan.Assignments = slices.Clone(r.Plan.Assignments)
		plan.Assignments[left].Node = -1
		plan.Recount(r.Problem)
		some.Plan = &plan
		text := string(written(t, table(nil), &some))
		if !strings.Contains(text, "not stated: first come, first served leaves out other jobs\n") ||
			strings.Contains(text, "FCFS") {
			t.Errorf("without job %d:\n%s", left, text)
		}
		var d struct{ Saving, Baseline any }
		if err := json.Unmarshal(written(t, planreport.WritePlanJSON, &some), &d); err != nil || d.Saving != nil ||
			d.Baseline != nil {
			t.Errorf("without job %d: %+v, %v", left, d, err)
		}
		runs := []planreport.Run{{Summary: planreport.Summarise(&some)}}
		page := string(written(t, func(w io.Writer, r *planreport.Result) error {
			return errors.Join(planreport.WritePlanPage(w, &planreport.PlanPage{Result: r, Name: "a batch"}),
				planreport.WriteComparison(w, runs, nil))
		}, &some))
		if strings.Contains(page, "at default clocks;") || strings.Contains(page, "Beyond constant") ||
			!strings.Contains(page, "A row without a saving leaves out other jobs") {
			t.Errorf("without job %d the page compares it", left)
		}
	}
}
