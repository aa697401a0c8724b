package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/testkit/commandtest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// consolidationKeys are what programs rely on in the JSON of a consolidation.
var consolidationKeys = []string{
	"power_w", "feasible", "bound_w", "proven", "gpus_on", "servers_on", "place", "f_mhz", "worst_slowdown",
	"sla_violations",
}

func TestAConsolidationInJSONHasTheKeysThatProgramsRelyOn(t *testing.T) {
	for _, policy := range methods() {
		code, stdout, stderr := inProcess(t, "consolidate", "testdata/consolidate.json", "--json",
			"--policy", policy.name)
		var plan map[string]any
		if err := json.Unmarshal([]byte(stdout), &plan); err != nil {
			t.Fatalf("%s: %v: %s", policy.name, err, stderr)
		}
		commandtest.WantKeys(t, policy.name, plan, consolidationKeys)
		place, _ := plan["place"].([]any)
		mhz, _ := plan["f_mhz"].([]any)
		if len(place) != 8 || len(mhz) != 12 {
			t.Errorf("%s: places of %d tasks, frequencies of %d GPUs, want 8 and 12", policy.name,
				len(place), len(mhz))
		}
		if feasible := plan["feasible"] == true; feasible != (code == terminal.ExitDone) ||
			!feasible && code != terminal.ExitInfeasible {
			t.Errorf("%s: feasible %v, exit status %d", policy.name, plan["feasible"], code)
		}
		power, _ := plan["power_w"].(float64)
		bound, _ := plan["bound_w"].(float64)
		if bound <= 0 || plan["feasible"] == true && bound > power {
			t.Errorf("%s: %v W, bound %v W", policy.name, power, bound)
		}
	}
}

func TestBoundsOfConsolidationsAreNeverAboveTheBestKnownPlan(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shareddata.Path(t, "cats/instances"), "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d instances: %v", len(files), err)
	}
	type best struct {
		Watts float64 `json:"best_w"`
	}
	for _, name := range files {
		var file struct {
			Reference struct {
				A best `json:"problem_a_as_printed"`
				B best `json:"problem_b_with_utilisation_limit"`
			} `json:"reference"`
		}
		if err := json.Unmarshal([]byte(commandtest.ReadPage(t, name)), &file); err != nil {
			t.Fatal(err)
		}
		for problem, want := range map[string]float64{
			"as-printed": file.Reference.A.Watts,
			"safe":       file.Reference.B.Watts,
		} {
			_, stdout, stderr := inProcess(t, "consolidate", name, "--json", "--policy", "hotcloud",
				"--problem", problem)
			var plan struct {
				Bound float64 `json:"bound_w"`
			}
			if err := json.Unmarshal([]byte(stdout), &plan); err != nil {
				t.Fatalf("%v: %s", err, stderr)
			}
			if plan.Bound <= 0 || plan.Bound > want+0.01 {
				t.Errorf("%s, %s: bound %v W, but %v W suffice", filepath.Base(name), problem,
					plan.Bound, want)
			}
		}
	}
}

func TestAConsolidationByWindowsSaysWhatTheyCost(t *testing.T) {
	const file = "testdata/consolidate.json"
	code, stdout, stderr := inProcess(t, "consolidate", file, "--json", "--policy", "cats-safe",
		"--window", "3")
	var plan struct {
		Window int     `json:"window"`
		WaitS  float64 `json:"wait_mean_s"`
	}
	if err := json.Unmarshal([]byte(stdout), &plan); err != nil || code != terminal.ExitDone {
		t.Fatalf("exit status %d, %v: %s", code, err, stderr)
	}
	if plan.Window != 3 || math.Abs(plan.WaitS-20.125) > 1e-9 {
		t.Errorf("windows of %d, %g s of waiting; want 3 and 20.125", plan.Window, plan.WaitS)
	}
	if _, stdout, _ := inProcess(t, "consolidate", file, "--policy", "cats-safe", "--window",
		"3"); !strings.Contains(stdout, "Window   3 tasks at a time, waiting 20.1 s") {
		t.Errorf("printed %q, want what windows cost", stdout)
	}
	for _, args := range [][]string{
		{"--window", "0", "--policy", "cats-safe"},
		{"--window", "3"},
		{"--window", "3", "--policy", "hotcloud"},
	} {
		code, _, _ := inProcess(t, append([]string{"consolidate", file}, args...)...)
		if code != terminal.ExitUsage {
			t.Errorf("%v: exit status %d, want %d", args, code, terminal.ExitUsage)
		}
	}
}

func TestAnInterruptedConsolidationPrintsTheBestSoFar(t *testing.T) {
	stdout := wantInterrupted(t, "consolidate",
		"testdata/consolidate.json")
	if !strings.HasPrefix(stdout, "Plan     exact, problem safe: feasible\n") {
		t.Errorf("printed %q, want a feasible plan", stdout)
	}
}

func TestAnInstanceMayBeginWithAByteOrderMark(t *testing.T) {
	plain, err := os.ReadFile("testdata/consolidate.json")
	if err != nil {
		t.Fatal(err)
	}
	marked := filepath.Join(t.TempDir(), "marked.json")
	if err := os.WriteFile(marked, append([]byte("\ufeff"), plain...), 0o600); err != nil {
		t.Fatal(err)
	}
	_, want, _ := inProcess(t, "consolidate", "testdata/consolidate.json", "--json", "--policy", "bf")
	code, got, stderr := inProcess(t, "consolidate", marked, "--json", "--policy", "bf")
	if code != terminal.ExitDone || got != want {
		t.Errorf("exit status %d, %s: %s, want %s", code, stderr, got, want)
	}
}
