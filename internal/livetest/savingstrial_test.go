package livetest_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/live"
)

const (
	abJobs    = 60
	abHoldOut = 0.25
)

// abDeltas are which part of the workloads' run time the core's clock has.
var abDeltas = []float64{0.1, 0.4, 0.8}

// abActs are three workloads, the first memory bound, the last core bound.
func abActs(longer float64) []act {
	acts := make([]act, 0, len(abDeltas))
	for i, delta := range abDeltas {
		const room = 4
		seconds := 400 * longer
		acts = append(acts, act{
			name:  fmt.Sprintf("ab%d", i),
			truth: dvfsmodel.Params{P0: 50, Gamma: 20, C: 120, D: 0.95 * seconds, Delta: delta, T0: 0.05 * seconds},
			limit: time.Duration(room * seconds * float64(time.Second)),
		})
	}
	return acts
}

// BenchmarkSavingsAgainstTheTruth has a real Slurm run 60 jobs of three workloads twice, with clocks chosen
// and at default ones, and holds what epplan savings says after the first time against the difference:
// whether what the treated jobs saved, and how much longer they took, is in the interval.
//
//	EPPLAN_TRIAL=20 go test -run '^$' -bench SavingsAgainstTheTruth -benchtime 1x -timeout 2h ./internal/livetest
//
// EPPLAN_TRIAL_FROM is the first seed; EPPLAN_TRIAL_LONGER=5 has jobs take five times as long, so that what
// hooks take on a busy machine weighs less. Each run begins without records. The truth is the simulated GPUs' own
// account of the work of each job, which is the same both times.
func BenchmarkSavingsAgainstTheTruth(b *testing.B) {
	seeds, longer := trialSeeds(), trialNumber("LONGER", 1)
	energies, times := 0, 0
	for _, seed := range seeds {
		b.Run(fmt.Sprintf("seed %d", seed), func(b *testing.B) { // whose lab ends with it
			for range b.N {
				energy, duration := abRun(b, seed, longer)
				energies, times = energies+energy, times+duration
			}
		})
	}
	fmt.Fprintf(os.Stderr, "in their intervals: savings %d, slowdowns %d of %d\n", energies, times, len(seeds))
}

// abTrial is one run.
type abTrial struct {
	*stage
	order []int     // the workloads of the jobs
	part  []float64 // how much of its workload's work each has
}

// newABTrial begins one, in which clocks are chosen.
func newABTrial(b *testing.B, seed uint64, longer float64) *abTrial {
	b.Helper()
	random := rand.New(rand.NewPCG(seed, 22))
	l := newLab(b, inCompressedTime(abRules("enforce"), compressedGPU, 2))
	t := &abTrial{
		stage: newStage(l, abActs(longer), workScatter, random),
		order: make([]int, abJobs), part: make([]float64, abJobs),
	}
	for i := range t.order {
		t.order[i], t.part[i] = i%len(t.acts), math.Exp(workScatter*random.NormFloat64())
	}
	random.Shuffle(abJobs, func(i, k int) { t.order[i], t.order[k] = t.order[k], t.order[i] })
	return t
}

func abRules(mode string) string {
	return fmt.Sprintf("[live]\nmode = %q\nhold_out = %v\nmax_slowdown = 1.5\n", mode, abHoldOut)
}

// playAll runs all jobs, few at a time at first, so that something is learnt meanwhile.
func (t *abTrial) playAll() []int64 {
	t.Helper()
	ids := make([]int64, abJobs)
	already := t.play()
	for i := range ids {
		ids[i] = t.submitPart(&t.acts[t.order[i]], t.part[i])
		const side = 4
		t.within(patience, "jobs end", func() bool { return already+i+1-t.play() < side+i/2 })
	}
	t.within(patience, "all jobs end", func() bool { return t.play() == already+abJobs })
	t.within(patience, "all is recorded", func() bool {
		st := t.status(controller)
		return st != nil && st.Totals != nil && st.Totals.Outcomes >= int64(already+abJobs)
	})
	return ids
}

// said returns what epplan savings says now.
func (t *abTrial) said() *epdapi.Savings {
	t.Helper()
	said := new(epdapi.Savings)
	out, err := exec.CommandContext(t.Context(), filepath.Join(t.bin, "epplan"), "savings", "--json", "--socket",
		t.socket(controller)).Output()
	if err == nil {
		err = json.Unmarshal(out, said)
	}
	if err != nil {
		t.Fatalf("epplan savings: %v\n%s", err, out)
	}
	return said
}

// truth returns what the treated jobs of the compared workloads used less, and how much longer they took,
// than the same jobs at default clocks.
func (t *abTrial) truth(chosen, usual []int64, said *epdapi.Savings) (treated int, joules, seconds float64) {
	t.Helper()
	work := make(map[int64]gpu.FinishedWork)
	for _, e := range t.ended() {
		work[int64(e.PID)] = e
	}
	compared := make(map[string]bool)
	for i := range said.ByWorkload {
		compared[said.ByWorkload[i].Workload] = true
	}
	records := t.records("n1")
	for i, job := range chosen {
		list, err := records.DecisionsOfJob(t.Context(), "cluster", job)
		if err != nil || len(list) != 1 {
			t.Fatalf("job %d: decisions %+v, %v", job, list, err)
		}
		if list[0].Arm != live.ArmTreated || !compared[list[0].Workload] {
			continue
		}
		now, then := work[job], work[usual[i]]
		if now.PID == 0 || then.PID == 0 {
			t.Fatalf("jobs %d and %d: %+v, %+v", job, usual[i], now, then)
		}
		treated++
		joules, seconds = joules+float64(then.Energy-now.Energy), seconds+now.Took-then.Took
	}
	return treated, joules, seconds
}

// abRun returns one run; it reports 1 for what was in its interval.
func abRun(b *testing.B, seed uint64, longer float64) (energy, duration int) {
	b.Helper()
	t := newABTrial(b, seed, longer)
	defer t.close()
	chosen := t.playAll()
	said := t.said()
	t.write("config.toml", abRules("observe"), 0o644)
	t.reloadController()
	treated, joules, seconds := t.truth(chosen, t.playAll(), said)
	if treated == 0 || int64(treated) != said.GPU.Runs || int64(treated) != said.Time.Runs {
		b.Errorf("%d treated runs are compared, said %d and %d", treated, said.GPU.Runs, said.Time.Runs)
	}
	if said.GPU.LowJ <= joules && joules <= said.GPU.HighJ {
		energy = 1
	}
	if said.Time.LowS <= seconds && seconds <= said.Time.HighS {
		duration = 1
	}
	fmt.Fprintf(os.Stderr, "seed %d: %d compared runs; saved %.0f J, said %.0f (%.0f to %.0f) of %.0f; "+
		"longer %.1f s, said %.1f (%.1f to %.1f) of %.1f\n", seed, treated, joules, said.GPU.SavedJ,
		said.GPU.LowJ, said.GPU.HighJ, said.GPU.BaselineJ, seconds, said.Time.LongerS, said.Time.LowS,
		said.Time.HighS, said.Time.BaselineS)
	return energy, duration
}
