package main

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/testkit/commandtest"
)

// planKeys and jobKeys are what programs rely on in the JSON of a plan.
var (
	planKeys = []string{
		"policy", "status", "mode", "jobs_total", "misses", "energy_j", "run_j", "idle_j", "turn_on_j",
		"baseline_energy_j", "saving", "bound_j", "gap", "nodes_used", "gpus_used", "infeasible", "jobs",
		"past_due", "makespan_s", "wait_mean_s", "wait_p95_s", "turnaround_mean_s", "turnaround_p95_s",
		"baseline", "easy", "constant", "newly_late",
		"objective", "objective_unit",
	}
	againstKeys = []string{
		"energy_j", "past_due", "misses", "makespan_s", "turnaround_mean_s", "turnaround_p95_s",
	}
	jobKeys = []string{
		"id", "node", "gpus", "start_s", "end_s", "v", "fc", "fm", "power_w", "energy_j", "reason",
	}
	mhzKeys = []string{"core_mhz", "mem_mhz"} // where the GPU model has them
)

func planJSON(t *testing.T, args ...string) (plan map[string]any, jobs []map[string]any) {
	t.Helper()
	code, stdout, stderr := inProcess(t, append([]string{"plan", "--json"}, args...)...)
	if code != terminal.ExitDone {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &plan); err != nil {
		t.Fatal(err)
	}
	list, ok := plan["jobs"].([]any)
	if !ok {
		t.Fatalf("jobs is %T", plan["jobs"])
	}
	for _, each := range list {
		job, ok := each.(map[string]any)
		if !ok {
			t.Fatalf("a job is %T", each)
		}
		jobs = append(jobs, job)
	}
	return plan, jobs
}

func TestAPlanInJSONHasTheKeysThatProgramsRelyOn(t *testing.T) {
	const demo = "../../testdata/demo/"
	plan, jobs := planJSON(t, demo+"batch.csv", "--cluster", demo+"cluster.toml", "--models",
		demo+"models.toml")
	commandtest.WantKeys(t, "the plan", plan, planKeys)
	if len(jobs) != 40 || plan["jobs_total"] != 40.0 {
		t.Errorf("%d jobs, %v in total, want 40", len(jobs), plan["jobs_total"])
	}
	for _, job := range jobs {
		commandtest.WantKeys(t, "a job", job, append(jobKeys, mhzKeys...))
	}
	for _, key := range []string{"baseline", "easy", "constant"} {
		against, ok := plan[key].(map[string]any)
		if !ok {
			t.Fatalf("%s is %T", key, plan[key])
		}
		commandtest.WantKeys(t, key, against, againstKeys)
	}
	constant, _ := plan["constant"].(map[string]any)
	energy, _ := constant["energy_j"].(float64)
	base, _ := plan["baseline_energy_j"].(float64)
	if saving, _ := constant["saving"].(float64); math.Abs(saving-(1-energy/base)) > 1e-9 {
		t.Errorf("constant clocks save %v, their energies say %v", saving, 1-energy/base)
	}
	clocks, _ := constant["clocks"].(map[string]any)
	for _, model := range []string{"V100", "GTX1080Ti"} {
		pair, _ := clocks[model].(map[string]any)
		commandtest.WantKeys(t, model, pair, mhzKeys)
	}
	if plan["objective"] != plan["energy_j"] || plan["objective_unit"] != "J" {
		t.Errorf("the objective is %v %v, want the energy in J", plan["objective"], plan["objective_unit"])
	}
	if base, _ := plan["baseline"].(map[string]any); base["energy_j"] != plan["baseline_energy_j"] {
		t.Errorf("the baseline takes %v J, baseline_energy_j is %v", base["energy_j"],
			plan["baseline_energy_j"])
	}
}

// TestTheFiguresOfAPlanFollowFromItsJobs reckons them again from the jobs.
func TestTheFiguresOfAPlanFollowFromItsJobs(t *testing.T) {
	const demo = "../../testdata/demo/"
	plan, jobs := planJSON(t, demo+"batch.csv", "--cluster", demo+"cluster.toml", "--models",
		demo+"models.toml")
	last := 0.0
	waits, turnarounds := make([]float64, 0, len(jobs)), make([]float64, 0, len(jobs))
	for _, job := range jobs { // all arrive at 0
		start, _ := job["start_s"].(float64)
		end, _ := job["end_s"].(float64)
		waits, turnarounds, last = append(waits, start), append(turnarounds, end), max(last, end)
	}
	sum := func(values []float64) (total float64) {
		for _, v := range values {
			total += v
		}
		return total
	}
	slices.Sort(waits)
	slices.Sort(turnarounds)
	const p95 = 37 // of 40 jobs, 38 take no longer
	for key, want := range map[string]float64{
		"makespan_s": last, "wait_mean_s": sum(waits) / 40, "wait_p95_s": waits[p95],
		"turnaround_mean_s": sum(turnarounds) / 40, "turnaround_p95_s": turnarounds[p95],
	} {
		if got, _ := plan[key].(float64); math.Abs(got-want) > 1e-6*want {
			t.Errorf("%s is %v, want %v", key, plan[key], want)
		}
	}
}

// TestEachRowOfAComparisonInJSONHasWhatItIsAgainst also finds EASY at default
// clocks and constant clocks among the rows.
func TestEachRowOfAComparisonInJSONHasWhatItIsAgainst(t *testing.T) {
	const demo = "../../testdata/demo/"
	code, stdout, stderr := inProcess(t, "compare", "--json", demo+"batch.csv", "--cluster",
		demo+"cluster.toml", "--models", demo+"models.toml",
		"--policy", "edl-align", "--policy", "easy,clocks=default", "--policy", "baseline",
		"--policy", "constant")
	if code != terminal.ExitDone {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(stdout), &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		commandtest.WantKeys(t, "a row", row, []string{
			"past_due", "makespan_s", "wait_mean_s", "wait_p95_s", "turnaround_mean_s", "turnaround_p95_s",
			"baseline", "easy", "constant", "objective", "objective_unit",
			"status", "saving",
		})
		for key, of := range map[string]map[string]any{
			"easy": rows[1], "baseline": rows[2],
			"constant": rows[3],
		} {
			against, _ := row[key].(map[string]any)
			for _, figure := range againstKeys {
				if against[figure] != of[figure] {
					t.Errorf("%s: %s of %s is %v, its own row says %v", row["policy"], figure, key,
						against[figure], of[figure])
				}
			}
		}
	}
}

func TestThePapersPlanInJSONHasNoMHz(t *testing.T) {
	plan, jobs := planJSON(t, "testdata/tasks.csv", "--format", "edl", "--cluster", "paper",
		"--gpus-per-node", "4", "--range", "narrow", "--policy", "edl", "--theta", "0.9", "--rho", "2",
		"--start", "continuous")
	commandtest.WantKeys(t, "the plan", plan, planKeys)
	sum := 0.0
	for _, job := range jobs {
		commandtest.WantKeys(t, "a job", job, jobKeys)
		if _, ok := job["core_mhz"]; ok {
			t.Fatal("a job has core_mhz, but the paper's GPU model has no MHz")
		}
		energy, _ := job["energy_j"].(float64)
		sum += energy
	}
	run, _ := plan["run_j"].(float64)
	if len(jobs) != 24 || run <= 0 || sum < run*(1-1e-9) || sum > run*(1+1e-9) {
		t.Errorf("%d jobs use %v J, want 24 and the %v J of run_j", len(jobs), sum, run)
	}
}
