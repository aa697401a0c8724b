package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/cli/terminal"
)

// drawnBatch is a batch as a table, and the nodes and models that it is planned with, as
// TOML tables.
type drawnBatch struct {
	header []string
	rows   [][]string
	nodes  []string
	models []string // none: the demo's
	flags  []string
}

const demoModels = "../../testdata/demo/models.toml"

// drawBatch draws jobs with and without a workload, deadline, limit and power, for one
// or several GPUs, at once or over time; and nodes of two GPU models, some by two names.
func drawBatch(t *rapid.T) drawnBatch {
	b := drawnBatch{header: []string{
		"id", "workload", "runtime_s", "runtime_gpu_model", "runtime_s.GTX1080Ti", "power_w", "deadline_s",
		"limit_s", "gpus", "arrival_s", "util_pct", "slot_s", "gpu_mem_gb", "nodes",
	}}
	of := func(name string, values ...string) string { return rapid.SampledFrom(values).Draw(t, name) }
	share := of("share", "", "", "share = true\ngpu_mem_gb = 16\n")
	online := rapid.Bool().Draw(t, "online")
	for i := range rapid.IntRange(2, 12).Draw(t, "jobs") {
		runtime := rapid.SampledFrom([]int{600, 1800, 1800, 5400}).Draw(t, "run time")
		arrival, other := 0, ""
		if online {
			arrival = rapid.SampledFrom([]int{0, 0, 300, 300, 900}).Draw(t, "arrival")
		}
		if rapid.Bool().Draw(t, "on the other model") {
			other = strconv.Itoa(runtime * 2)
		}
		size := rapid.SampledFrom([][2]string{
			{"1", ""}, {"1", "1"}, {"2", ""}, {"4", ""}, {"8", ""}, {"2", "2"}, {"4", "2"}, {"8", "2"},
		}).Draw(t, "GPUs and nodes")
		limit := strconv.Itoa(runtime * 3)
		if share != "" {
			limit = "" // policies that share don't keep every limit of a job without a profile
		}
		b.rows = append(b.rows, []string{
			of("id", "job-", "a") + strconv.Itoa(i), of("workload", "cfd", "hotspot", "transpose", ""),
			strconv.Itoa(runtime), of("model", "V100", "Tesla V100"),
			other, of("power", "", "", "140"), of("deadline", "", strconv.Itoa(arrival+runtime*4)),
			of("limit", "", limit),
			size[0], strconv.Itoa(arrival), "", "", "", size[1],
		})
		if row := b.rows[i]; rapid.Bool().Draw(t, "profile") {
			copy(row[8:], []string{"1", row[9], of("util", "20 40", "60 10", "30 30"), "60", "4", ""})
		}
	}
	for i, model := range []string{"V100", "GTX1080Ti", "V100"} {
		b.nodes = append(b.nodes, fmt.Sprintf("[[cluster.nodes]]\nname = \"n%d\"\ngpu_model = %q\n"+
			"count = %d\ngpus = 4\nturn_on_delay_s = 60\n%s", i, model, 2-i%2, share))
	}
	return b
}

// shuffled returns the batch with its rows, columns and nodes in another order.
func (b drawnBatch) shuffled(t *rapid.T) drawnBatch {
	columns := rapid.Permutation(b.header).Draw(t, "columns")
	at := b.columns()
	other := drawnBatch{header: columns, nodes: rapid.Permutation(b.nodes).Draw(t, "nodes"), flags: b.flags}
	if len(b.models) > 0 {
		other.models = rapid.Permutation(b.models).Draw(t, "models")
	}
	for _, row := range rapid.Permutation(b.rows).Draw(t, "rows") {
		cells := make([]string, len(columns))
		for i, name := range columns {
			cells[i] = row[at[name]]
		}
		other.rows = append(other.rows, cells)
	}
	return other
}

func (b drawnBatch) columns() map[string]int {
	at := make(map[string]int, len(b.header))
	for i, name := range b.header {
		at[name] = i
	}
	return at
}

// plannedJob is what a plan says of a job.
type plannedJob struct {
	ID        string  `json:"id"`
	NodeClass string  `json:"node_class"`
	Start     float64 `json:"start_s"`
	End       float64 `json:"end_s"`
	CoreMHz   float64 `json:"core_mhz"`
	EnergyJ   float64 `json:"energy_j"`
}

// like reports whether both run on the same kind of node, at the same clocks and times.
func (j plannedJob) like(other plannedJob) bool {
	near := func(x, y float64) bool { return math.Abs(x-y) <= 1e-9*math.Abs(y) }
	return j.NodeClass == other.NodeClass && j.CoreMHz == other.CoreMHz &&
		near(j.Start, other.Start) && near(j.End, other.End) && near(j.EnergyJ, other.EnergyJ)
}

// planned returns what epplan plan --json says of the batch.
func (b drawnBatch) planned(
	t *rapid.T, dir, policy string,
) (sums map[string]float64, jobs map[string]plannedJob) {
	var batch bytes.Buffer
	if err := csv.NewWriter(&batch).WriteAll(append([][]string{b.header}, b.rows...)); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"batch.csv": batch.String(), "cluster.toml": strings.Join(b.nodes, "\n"),
		"models.toml": strings.Join(b.models, "\n"),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	models := demoModels
	if len(b.models) > 0 {
		models = filepath.Join(dir, "models.toml")
	}
	args := append([]string{
		"epplan", "plan", filepath.Join(dir, "batch.csv"), "--cluster", filepath.Join(dir, "cluster.toml"),
		"--models", models, "--json",
	}, b.flags...)
	if policy != "" {
		args = append(args, "--policy", policy)
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, strings.NewReader(""), &out, &errs); code != terminal.ExitDone &&
		code != terminal.ExitInfeasible {
		t.Fatalf("exit status %d: %s\n%s", code, errs.String(), batch.String())
	}
	var plan struct {
		EnergyJ  float64 `json:"energy_j"`
		PastDue  float64 `json:"past_due"`
		Misses   float64 `json:"misses"`
		Baseline float64 `json:"baseline_energy_j"`
		FCFS     struct {
			PastDue float64 `json:"past_due"`
			Misses  float64 `json:"misses"`
		} `json:"baseline"`
		Bound  float64 `json:"bound_j"`
		Jobs   []plannedJob
		Beyond []plannedJob `json:"infeasible"`
	}
	if err := json.Unmarshal(out.Bytes(), &plan); err != nil {
		t.Fatal(err)
	}
	jobs = make(map[string]plannedJob, len(plan.Jobs))
	for _, j := range append(plan.Jobs, plan.Beyond...) {
		jobs[j.ID] = j
	}
	return map[string]float64{
		"energy": plan.EnergyJ, "baseline": plan.Baseline, "bound": plan.Bound,
		"late": plan.PastDue + plan.Misses, "late, FCFS": plan.FCFS.PastDue + plan.FCFS.Misses,
		"refused": float64(len(plan.Beyond)),
	}, jobs
}

func TestTheOrderOfRowsColumnsAndNodesChangesNoPlan(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		b := drawBatch(t)
		policy := rapid.SampledFrom([]string{
			"", "", "baseline", "edl:0.9", "marginal", "late-binding", "value", "easy",
			"cats-safe", "hotcloud",
		}).Draw(t, "policy")
		sums, jobs := b.planned(t, dir, policy)
		again, jobsAgain := b.shuffled(t).planned(t, dir, policy)
		for name, want := range sums {
			if math.Abs(again[name]-want) > 1e-9*math.Abs(want) {
				t.Errorf("policy %q: %s %v J in one order, %v in another", policy, name, want, again[name])
			}
		}
		for id, want := range jobs {
			if !want.like(jobsAgain[id]) {
				t.Errorf("policy %q: %+v in one order, %+v in another", policy, want, jobsAgain[id])
			}
		}
	})
}
