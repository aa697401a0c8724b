package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// unmodelledBatch is a drawn batch of which models are missing, with what is known of how
// its jobs run.
type unmodelledBatch struct {
	drawnBatch
	known map[string][]string // GPU models on which it is known how long a job runs, by its id
	// Run times on V100 and GTX1080Ti of jobs without any model, by id; empty: not
	// stated.
	fixed map[string][2]string
}

// unmodelledGPUs are the GPU models of such a batch.
var unmodelledGPUs = [...]string{"V100", "GTX1080Ti"}

// drawUnmodelled draws jobs of workloads with models on one or both of two GPU models, and
// jobs without any, some of which state their power, and some their power alone.
func drawUnmodelled(t *rapid.T, tables []string) unmodelledBatch {
	b := unmodelledBatch{known: make(map[string][]string), fixed: make(map[string][2]string)}
	b.header = []string{
		"id", "workload", "runtime_s.V100", "runtime_s.GTX1080Ti", "power_w.V100", "power_w.GTX1080Ti",
		"deadline_s", "limit_s", "gpus",
	}
	gpus := unmodelledGPUs[:]
	modelled := make(map[string][]string) // GPU models, by workload
	for _, w := range []string{"cfd", "hotspot", "transpose"} {
		modelled[w] = rapid.SampledFrom([][]string{gpus, gpus[:1], gpus[1:]}).Draw(t, "models of "+w)
	}
	others := rapid.Bool().Draw(t, "models of others")
	for _, table := range tables {
		w, gpu := field(table, "workload"), field(table, "gpu_model")
		if own := modelled[w]; slices.Contains(own, gpu) || own == nil && others {
			b.models = append(b.models, table)
		}
	}
	if rapid.Bool().Draw(t, "prior") {
		b.flags = []string{"--prior"}
	}
	for i := range rapid.IntRange(2, 14).Draw(t, "jobs") {
		b.drawJob(t, i,
			rapid.SampledFrom([]string{"cfd", "hotspot", "transpose", "", ""}).Draw(t, "workload"), modelled)
	}
	for i, gpu := range gpus {
		b.nodes = append(b.nodes,
			fmt.Sprintf("[[cluster.nodes]]\nname = %q\ngpu_model = %[1]q\ncount = %d\ngpus = 4\n", gpu, 2-i))
	}
	return b
}

// drawJob adds a job of a workload that has models on some GPU models.
func (b *unmodelledBatch) drawJob(t *rapid.T, number int, w string, modelled map[string][]string) {
	id, longest := "j"+strconv.Itoa(number), 0
	var stated, watts [2]string
	anchored := false // its run time says how often the workload's model is repeated
	for k, gpu := range unmodelledGPUs {
		if w == "" && k == number%2 || rapid.IntRange(0, 2).Draw(t, "measured") == 0 {
			seconds := rapid.SampledFrom([]int{600, 1800, 3600}).Draw(t, "run time")
			stated[k], longest = strconv.Itoa(seconds), max(longest, seconds)
			anchored = anchored || slices.Contains(modelled[w], gpu)
		}
		if rapid.IntRange(0, 3).Draw(t, "metered") == 0 {
			watts[k] = rapid.SampledFrom([]string{"90", "140", "260"}).Draw(t, "power")
		}
	}
	for k, gpu := range unmodelledGPUs {
		if stated[k] != "" || slices.Contains(modelled[w], gpu) && (anchored || longest == 0) {
			b.known[id] = append(b.known[id], gpu)
		}
	}
	if w == "" {
		b.fixed[id] = stated
	}
	deadline, limit := "", ""
	if longest > 0 {
		deadline = rapid.SampledFrom([]string{"", "", strconv.Itoa(4*longest + 600)}).Draw(t, "deadline")
		limit = rapid.SampledFrom([]string{
			"", strconv.Itoa(2 * longest), strconv.Itoa(longest),
		}).Draw(t, "limit")
	}
	b.rows = append(b.rows, []string{
		id, w, stated[0], stated[1], watts[0], watts[1], deadline, limit,
		rapid.SampledFrom([]string{"1", "1", "2", "4"}).Draw(t, "GPUs"),
	})
}

// field returns a text of a TOML table.
func field(table, key string) string {
	_, rest, _ := strings.Cut(table, key+" = \"")
	value, _, _ := strings.Cut(rest, "\"")
	return value
}

// check reports jobs that run where nobody knows how, or at clocks of which nobody knows
// what they do.
func (b *unmodelledBatch) check(t *rapid.T, jobs map[string]plannedJob) {
	for id, j := range jobs {
		if !slices.Contains(b.known[id], j.NodeClass) {
			t.Errorf("job %s runs on %s: it is known on %v how it does", id, j.NodeClass, b.known[id])
		}
		stated, unmodelled := b.fixed[id]
		if !unmodelled {
			continue
		}
		seconds, standard := stated[0], 1380.0
		if j.NodeClass == "GTX1080Ti" {
			seconds, standard = stated[1], 1800
		}
		took := strconv.FormatFloat(math.Round(j.End-j.Start), 'f', -1, 64)
		if len(b.flags) == 0 && (j.CoreMHz != standard || took != seconds) {
			t.Errorf("job %s has no model and runs at %v MHz for %s s: %s s stated", id, j.CoreMHz,
				took, seconds)
		}
		if least, _ := strconv.ParseFloat(seconds, 64); j.End-j.Start < least*(1-1e-9) {
			t.Errorf("job %s has no model and is told to end after %v s: %s s stated", id,
				j.End-j.Start, seconds)
		}
	}
}

func TestJobsWithoutModelsAreAllPlannedWhereItIsKnownHowTheyRun(t *testing.T) {
	text, err := os.ReadFile(demoModels)
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for i, table := range strings.Split(string(text), "[[model]]") {
		if i > 0 {
			tables = append(tables, "[[model]]"+table)
		}
	}
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		b := drawUnmodelled(t, tables)
		policy := rapid.SampledFrom([]string{"", "marginal", "marginal", "easy"}).Draw(t, "policy")
		sums, jobs := b.planned(t, dir, policy)
		if sums["refused"] > 0 || len(jobs) != len(b.rows) {
			t.Errorf("%v of %d jobs are refused", sums["refused"], len(b.rows))
		}
		b.check(t, jobs)
		if policy == "" && sums["late"] > sums["late, FCFS"] {
			t.Errorf("%v are late, %v first come, first served", sums["late"], sums["late, FCFS"])
		}
		again, jobsAgain := b.shuffled(t).planned(t, dir, policy)
		for name, want := range sums {
			if math.Abs(again[name]-want) > 1e-9*math.Abs(want) {
				t.Errorf("policy %q: %s %v in one order, %v in another", policy, name, want, again[name])
			}
		}
		for id, want := range jobs {
			if got := jobsAgain[id]; !got.like(want) {
				t.Errorf("policy %q: job %+v in one order, %+v in another", policy, want, got)
			}
		}
	})
}
