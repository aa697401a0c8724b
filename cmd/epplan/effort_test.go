package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/planner"
)

// found is the batch with which more effort once broke promises.
const found = `id,runtime_h,gpus,gpu_model,power_w,deadline_h
j0,2,1,V100-SXM2,290,
j1,3,1,V100-SXM2,190,
j2,4,2,V100-SXM2,170,
j3,3,1,V100-SXM2,180,13
j4,3,2,V100-SXM2,240,
j5,4,2,V100-SXM2,150,
j6,3,2,V100-SXM2,200,7
j7,4,1,V100-SXM2,200,7
j8,4,1,V100-SXM2,190,
j9,2,1,V100-SXM2,210,7
j10,4,1,V100-SXM2,200,9
j11,1,1,V100-SXM2,200,8
`

// drawBudgeted draws jobs for some nodes, some with deadlines, and a power budget that keeps some waiting.
func drawBudgeted(seed uint64) (batch, budget string) {
	if seed == 0 {
		return found, "1.4kW"
	}
	rng := rand.New(rand.NewPCG(seed, 7))
	var all strings.Builder
	all.WriteString("id,runtime_h,gpus,gpu_model,power_w,deadline_h\n")
	for i := range 6 + rng.IntN(8) {
		deadline := ""
		if rng.IntN(2) == 0 {
			deadline = strconv.Itoa(5 + rng.IntN(9))
		}
		fmt.Fprintf(&all, "j%d,%d,%d,V100-SXM2,%d,%s\n", i, 1+rng.IntN(4), 1+rng.IntN(2), 150+10*rng.IntN(15),
			deadline)
	}
	return all.String(), fmt.Sprintf("%dW", 1200+50*rng.IntN(13))
}

// More effort within a budget keeps all that less effort keeps: jobs, deadlines, due times, and the cost.
func TestMoreEffortWithinABudgetBreaksNoPromises(t *testing.T) {
	dir := t.TempDir()
	cluster, batch := filepath.Join(dir, "cluster.toml"), filepath.Join(dir, "batch.csv")
	nodes := "[cluster]\n[[cluster.nodes]]\ngpu_model = \"V100-SXM2\"\ngpus = 4\ncount = 3\n"
	if err := os.WriteFile(cluster, []byte(nodes), 0o600); err != nil {
		t.Fatal(err)
	}
	drawn := uint64(4)
	if testing.Short() {
		drawn = 1
	}
	for seed := range drawn {
		text, budget := drawBudgeted(seed)
		if err := os.WriteFile(batch, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var least planner.PlanRank
		for i, effort := range [...]string{"1", "2", "5"} {
			_, out, errs := inProcess(t, "plan", batch, "--cluster", cluster, "--budget", budget, "--effort", effort,
				"--json")
			var plan struct {
				Misses     int
				PastDue    int `json:"past_due"`
				Objective  float64
				Infeasible []any
			}
			if err := json.Unmarshal([]byte(out), &plan); err != nil {
				t.Fatalf("%v: %s", err, errs)
			}
			rank := planner.PlanRank{
				Unplaced: len(plan.Infeasible), Misses: plan.Misses, Late: plan.PastDue, Cost: plan.Objective,
			}
			if i > 0 && rank.Compare(least) > 0 {
				t.Errorf("batch %d at %s, effort %s: %+v, less effort has %+v", seed, budget, effort, rank, least)
			}
			least = rank
		}
	}
}
