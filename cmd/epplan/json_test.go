package main

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

// planKeys and jobKeys are what programs rely on in the JSON of a plan.
var (
	planKeys = []string{
		"policy", "status", "mode", "jobs_total", "misses", "energy_j", "run_j", "idle_j", "turn_on_j",
		"baseline_energy_j", "saving", "bound_j", "gap", "nodes_used", "gpus_used", "infeasible", "jobs",
	}
	jobKeys = []string{"id", "node", "gpus", "start_s", "end_s", "v", "fc", "fm", "power_w", "energy_j", "reason"}
	mhzKeys = []string{"core_mhz", "mem_mhz"} // where the GPU model has them
)

func planJSON(t *testing.T, args ...string) (plan map[string]any, jobs []map[string]any) {
	t.Helper()
	code, stdout, stderr := inProcess(t, append([]string{"plan", "--json"}, args...)...)
	if code != exitDone {
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

func wantKeys(t *testing.T, what string, object map[string]any, keys []string) {
	t.Helper()
	for _, key := range keys {
		if _, ok := object[key]; !ok {
			t.Errorf("%s has no %q, only %q", what, key, slices.Sorted(maps.Keys(object)))
		}
	}
}

func TestAPlanInJSONHasTheKeysThatProgramsRelyOn(t *testing.T) {
	const demo = "../../testdata/demo/"
	plan, jobs := planJSON(t, demo+"batch.csv", "--cluster", demo+"cluster.toml", "--models", demo+"models.toml")
	wantKeys(t, "the plan", plan, planKeys)
	if len(jobs) != 40 || plan["jobs_total"] != 40.0 {
		t.Errorf("%d jobs, %v in total, want 40", len(jobs), plan["jobs_total"])
	}
	for _, job := range jobs {
		wantKeys(t, "a job", job, append(jobKeys, mhzKeys...))
	}
}

func TestThePapersPlanInJSONHasNoMHz(t *testing.T) {
	plan, jobs := planJSON(t, "testdata/tasks.csv", "--format", "edl", "--cluster", "paper",
		"--gpus-per-node", "4", "--range", "narrow", "--policy", "edl", "--theta", "0.9", "--rho", "2", "--start", "continuous")
	wantKeys(t, "the plan", plan, planKeys)
	sum := 0.0
	for _, job := range jobs {
		wantKeys(t, "a job", job, jobKeys)
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
