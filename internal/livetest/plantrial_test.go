package livetest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/live"
)

// What a trial of plans is like. A job that takes minutes on a cluster takes seconds here, so the plan is
// made anew each second, and Slurm's own granularity weighs more than it does there.
const (
	trialJobs      = 300
	trialWorkloads = 12
	trialWarmUp    = 6 // runs of each workload at first, from which epd learns
)

// trialArm is what epd is told in one part of a trial.
type trialArm struct{ name, config string }

// trialArms returns the arms, the ones to compare with first. waitWeight is the price of waiting, W.
func trialArms(waitWeight float64) []trialArm {
	const each = "[live]\nmode = \"enforce\"\nhold_out = 0\nexplore = 0\nmax_slowdown = 1.5\nreorder = \"all\"\n[live.pick]\nevery_s = 1\n"
	objective := fmt.Sprintf("[objective]\nwait_weight = %v\n", waitWeight)
	enforced := objective + each
	plan := func(policy string) trialArm {
		return trialArm{
			"plan " + policy,
			fmt.Sprintf("%s[live.plan]\nmode = \"enforce\"\nevery_s = 1\nstale_s = 30\nstale_jobs = 1\npolicy = %q\n",
				enforced, policy),
		}
	}
	return []trialArm{
		{"nothing", objective + "[live]\nmode = \"observe\"\n"},
		{"clocks of each job", enforced},
		{"clocks, waiting free", each},
		plan("replan,pace=1"), plan("replan,pace=1.5"), plan("edl"), plan("value"), plan("best"),
	}
}

// trialJob is one job of a trial.
type trialJob struct {
	act      *act
	at       time.Duration // of its submission
	deadline time.Duration // after that; 0: none
}

// drawTrial draws jobs that come at random, of which half have a deadline. A load of 1 keeps all GPUs busy
// at default clocks.
func drawTrial(random *rand.Rand, acts []act, gpus int, load float64) []trialJob {
	jobs := make([]trialJob, trialJobs)
	seconds := func(a *act) float64 { return a.truth.DefaultTime() / compression }
	mean := 0.0
	for i := range jobs {
		jobs[i].act = &acts[random.IntN(len(acts))]
		mean += seconds(jobs[i].act) / trialJobs
	}
	at := 0.0
	for i := range jobs {
		at += random.ExpFloat64() * mean / (load * float64(gpus))
		jobs[i].at = time.Duration(at * float64(time.Second))
		if random.IntN(2) == 0 {
			room := seconds(jobs[i].act)*(1.5+2*random.Float64()) + 2*mean*random.Float64()
			jobs[i].deadline = time.Duration((room + 2) * float64(time.Second))
		}
	}
	return jobs
}

// trialResult is what an arm came to.
type trialResult struct {
	arm             string
	joules          float64 // of all GPUs, from the first submission to the last end, idle ones included
	makespan        float64
	waits           []float64
	missed, overdue int // deadlines, of so many
	starts          live.PlanRecord
}

// BenchmarkPlansAgainstClocksAlone has a real Slurm run the same jobs under each arm:
//
//	EPPLAN_TRIAL=5 go test -run '^$' -bench PlansAgainstClocksAlone -benchtime 1x -timeout 3h ./internal/livetest
//
// runs five seeds at each load, EPPLAN_TRIAL_LONGER=3 jobs that take three times as long: Slurm's own pace
// weighs less then. The arms of a seed share a Slurm, one after the other in an order that is
// drawn, after epd has learnt all workloads; what is measured are the GPUs' own counters.
func BenchmarkPlansAgainstClocksAlone(b *testing.B) {
	seeds, longer := trialSeeds(), trialNumber("LONGER", 1)
	loads := []float64{0.6, 1.2}
	if only := trialNumber("LOAD", 0); only > 0 {
		loads = []float64{only}
	}
	arms := trialArms(trialNumber("WAIT", 0))
	if only := os.Getenv("EPPLAN_TRIAL_ARMS"); only != "" { // names, semicolons between
		arms = slices.DeleteFunc(arms, func(a trialArm) bool {
			return !slices.Contains(strings.Split(only, ";"), a.name)
		})
	}
	for _, seed := range seeds {
		b.Run(fmt.Sprintf("seed %d", seed), func(b *testing.B) { // whose lab ends with it
			for range b.N {
				runTrial(b, seed, longer, loads, arms)
			}
		})
	}
}

// trialNumber returns what the environment says of a trial, or otherwise.
func trialNumber(name string, otherwise float64) float64 {
	if x, err := strconv.ParseFloat(os.Getenv("EPPLAN_TRIAL_"+name), 64); err == nil {
		return x
	}
	return otherwise
}

// trialSeeds returns the seeds of a trial: as many as EPPLAN_TRIAL says, or one.
func trialSeeds() []uint64 {
	count, err := strconv.Atoi(os.Getenv("EPPLAN_TRIAL"))
	if err != nil {
		count = 1
	}
	seeds := make([]uint64, count)
	for i := range seeds {
		seeds[i] = uint64(trialNumber("FROM", 0)) + uint64(i)
	}
	return seeds
}

func runTrial(b *testing.B, seed uint64, longer float64, loads []float64, arms []trialArm) {
	b.Helper()
	random := rand.New(rand.NewPCG(seed, 21))
	of := inCompressedTime(trialArms(0)[1].config, "H200", 2) // as Slurm's Gres says
	// Else Nice orders nothing.
	of.conf = []string{"PriorityType=priority/multifactor", "PriorityWeightPartition=100000"}
	l := newLab(b, of)
	acts := drawActs(random, trialWorkloads)
	for i := range acts { // limits that no clock breaks: deadlines are what binds here
		const shorter, room = 0.6, 4
		acts[i].truth = acts[i].truth.Scale(shorter * longer)
		acts[i].limit = time.Duration(math.Ceil(room*acts[i].truth.DefaultTime()/60)) * time.Minute
	}
	s := newStage(l, acts, workScatter, random)
	defer s.close()
	count := 0
	for range trialWarmUp {
		for i := range s.acts {
			s.submit(&s.acts[i])
			count++
			l.within(patience, "jobs end", func() bool { return count-s.play() < 16 })
		}
	}
	l.within(patience, "all jobs end", func() bool { return s.play() == count })
	for _, load := range loads {
		jobs := drawTrial(random, s.acts, 16, load)
		for _, i := range random.Perm(len(arms)) {
			l.write("config.toml", arms[i].config, 0o644)
			l.reloadController()
			r := s.run(jobs, &count, time.Duration(longer*10*float64(time.Millisecond)))
			r.arm = arms[i].name
			slices.Sort(r.waits)
			// As it comes: all of it takes long.
			fmt.Fprintf(os.Stderr, "seed %d load %v %-18s %8.0f J, %5.1f s, wait mean %.2f p95 %.2f s, "+
				"at once %d, missed %d of %d, starts %v\n",
				seed, load, r.arm, r.joules, r.makespan, meanOf(r.waits), quantile(r.waits, 0.95), startedAtOnce(r.waits),
				r.missed, r.overdue, r.starts.Starts)
		}
	}
}

// run has the jobs come at their times and waits for all of them; every so often it looks at them.
func (s *stage) run(jobs []trialJob, count *int, look time.Duration) *trialResult {
	s.Helper()
	before, joules := s.starts(), s.joules()
	begin := time.Now()
	submitted := make(map[int64]time.Time, len(jobs))
	deadline := make(map[int64]time.Time)
	already := *count
	for next := 0; s.play()-already < len(jobs); {
		if time.Since(begin) > patience*10 {
			s.Fatalf("%d of %d jobs ended", s.play()-already, len(jobs))
		}
		if next < len(jobs) && time.Since(begin) >= jobs[next].at {
			j := &jobs[next]
			var args []string
			now := time.Now()
			if j.deadline > 0 {
				args = []string{"--comment", "epplan:deadline=+" + j.deadline.Round(time.Second).String()}
			}
			id := s.submit(j.act, args...)
			submitted[id] = now
			if j.deadline > 0 {
				deadline[id] = now.Add(j.deadline)
			}
			next++
			continue
		}
		<-time.After(look)
	}
	*count += len(jobs)
	r := &trialResult{joules: s.joules() - joules, makespan: time.Since(begin).Seconds(), overdue: len(deadline)}
	s.mu.Lock()
	for id, at := range submitted {
		p := s.done[id]
		r.waits = append(r.waits, p.began.Sub(at).Seconds())
		if due, has := deadline[id]; has && p.ended.After(due) {
			r.missed++
		}
	}
	s.mu.Unlock()
	r.starts = s.starts()
	for how := range r.starts.Starts {
		r.starts.Starts[how] -= before.Starts[how]
	}
	return r
}

// joules returns what all GPUs' counters say.
func (s *stage) joules() (sum float64) {
	s.Helper()
	for _, sims := range s.sims {
		for _, g := range sims {
			r, err := g.Read()
			if err != nil {
				s.Fatal(err)
			}
			sum += float64(r.Energy)
		}
	}
	return sum
}

// starts returns how starts have kept to plans so far.
func (s *stage) starts() live.PlanRecord {
	if plan := s.steered().Plan; plan != nil {
		return plan.Record
	}
	return live.PlanRecord{Starts: map[live.PlanKept]int64{}}
}

// startedAtOnce counts the jobs that had nothing to wait for: of them a plan says nothing.
func startedAtOnce(waits []float64) (n int) {
	const soon = 1.5 // seconds
	for _, w := range waits {
		if w < soon {
			n++
		}
	}
	return n
}

func meanOf(all []float64) (mean float64) {
	for _, x := range all {
		mean += x / float64(len(all))
	}
	return mean
}
