package livetest_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/live"
)

const (
	abJobs    = 60
	abHoldOut = 0.25
)

// abActs are three workloads, the first memory bound, the last core bound.
func abActs(longer float64) []act {
	var acts []act
	for i, delta := range []float64{0.1, 0.4, 0.8} {
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
// and at default ones, and holds against the difference what epplan savings says after the first time: whether
// what the treated jobs saved, and how much longer they took, is in the interval.
//
//	EPPLAN_TRIAL=20 go test -run '^$' -bench SavingsAgainstTheTruth -benchtime 1x -timeout 2h ./internal/livetest
//
// EPPLAN_TRIAL_FROM is the first seed; EPPLAN_TRIAL_LONGER=5 has jobs take five times as long, so that what
// hooks take on a busy machine weighs less. Each run begins without records. The truth is the simulated GPUs' own
// account of the work of each job, which is the same both times.
func BenchmarkSavingsAgainstTheTruth(b *testing.B) {
	seeds, err := strconv.Atoi(os.Getenv("EPPLAN_TRIAL"))
	if err != nil {
		seeds = 1
	}
	first, _ := strconv.Atoi(os.Getenv("EPPLAN_TRIAL_FROM"))
	longer, err := strconv.ParseFloat(os.Getenv("EPPLAN_TRIAL_LONGER"), 64)
	if err != nil {
		longer = 1
	}
	for range b.N {
		energies, times := 0, 0
		for seed := range seeds {
			energy, duration := abRun(b, uint64(first+seed), longer)
			energies, times = energies+energy, times+duration
		}
		b.ReportMetric(float64(energies), "savings-in-interval")
		b.ReportMetric(float64(times), "slowdowns-in-interval")
		b.ReportMetric(float64(seeds), "runs")
	}
}

// abRun is one run; it reports 1 for what was in its interval.
func abRun(b *testing.B, seed uint64, longer float64) (energy, duration int) {
	b.Helper()
	random := rand.New(rand.NewPCG(seed, 22))
	spec := fmt.Sprintf("sim:8,model=%s,speed=%d", compressedGPU, compression)
	rules := func(mode string) string {
		return fmt.Sprintf("[live]\nmode = %q\nhold_out = %v\n", mode, abHoldOut)
	}
	l := newLab(b, setup{
		config: rules("enforce"), roles: true, nodes: 2, gpus: 8, gpu: spec, alone: true,
		flags: map[string][]string{controller: {"--gpu", spec}},
		lua: func(text string) string {
			return strings.ReplaceAll(unhurried(text), "BREAKER   = 5", "BREAKER   = 0.1")
		},
	})
	s := newStage(l, abActs(longer), workScatter, random)
	defer s.close()
	order := make([]int, abJobs) // workloads
	scale := make([]float64, abJobs)
	for i := range order {
		order[i], scale[i] = i%len(s.acts), math.Exp(workScatter*random.NormFloat64())
	}
	random.Shuffle(abJobs, func(i, k int) { order[i], order[k] = order[k], order[i] })
	play := func() []int64 {
		ids := make([]int64, abJobs)
		already := s.play()
		for i := range ids {
			ids[i] = s.submitPart(&s.acts[order[i]], scale[i])
			const side = 4 // by side at first, so that something is learnt meanwhile
			l.within(patience, "jobs end", func() bool { return already+i+1-s.play() < side+i/2 })
		}
		l.within(patience, "all jobs end", func() bool { return s.play() == already+abJobs })
		l.within(patience, "all is recorded", func() bool {
			st := l.status(controller)
			return st != nil && st.Totals != nil && st.Totals.Outcomes >= int64(already+abJobs)
		})
		return ids
	}
	chosen := play()
	said := new(epdapi.Savings)
	out, err := exec.CommandContext(b.Context(), filepath.Join(l.bin, "epplan"), "savings", "--json", "--socket",
		l.socket(controller)).Output()
	if err == nil {
		err = json.Unmarshal(out, said)
	}
	if err != nil {
		b.Fatalf("epplan savings: %v\n%s", err, out)
	}
	l.write("config.toml", rules("observe"), 0o644)
	l.reloadController()
	usual := play()
	work := make(map[int64]gpu.FinishedWork)
	for _, e := range s.ended() {
		work[int64(e.PID)] = e
	}
	compared := make(map[string]bool)
	for _, w := range said.ByWorkload {
		compared[w.Workload] = true
	}
	records := s.records("n1")
	var joules, seconds float64
	treated := 0
	for i, job := range chosen {
		list, err := records.DecisionsOfJob(b.Context(), "cluster", job)
		if err != nil || len(list) != 1 {
			b.Fatalf("job %d: decisions %+v, %v", job, list, err)
		}
		if list[0].Arm != live.ArmTreated || !compared[list[0].Workload] {
			continue
		}
		a, then := work[job], work[usual[i]]
		if a.PID == 0 || then.PID == 0 {
			b.Fatalf("jobs %d and %d: %+v, %+v", job, usual[i], a, then)
		}
		treated++
		joules, seconds = joules+float64(then.Energy-a.Energy), seconds+a.Took-then.Took
	}
	if treated == 0 || int64(treated) != said.GPU.Runs || int64(treated) != said.Time.Runs {
		b.Errorf("%d treated runs are compared, said %d and %d", treated, said.GPU.Runs, said.Time.Runs)
	}
	if said.GPU.LowJ <= joules && joules <= said.GPU.HighJ {
		energy = 1
	}
	if said.Time.LowS <= seconds && seconds <= said.Time.HighS {
		duration = 1
	}
	fmt.Fprintf(os.Stderr, "seed %d: %d of %d compared runs; saved %.0f J, said %.0f (%.0f to %.0f) of %.0f; "+
		"longer %.1f s, said %.1f (%.1f to %.1f) of %.1f\n", seed, treated, said.GPU.Runs, joules, said.GPU.SavedJ,
		said.GPU.LowJ, said.GPU.HighJ, said.GPU.BaselineJ, seconds, said.Time.LongerS, said.Time.LowS,
		said.Time.HighS, said.Time.BaselineS)
	return energy, duration
}
