package livetest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// Clocks are adapted for jobs that use their GPU in bursts.
const (
	adaptedGPU    = "V100-2022"
	adaptedSLA    = 1.2
	adaptedWrites = 20
	burstyJobs    = 8
	burstySeconds = 20.0 // of a job at default clocks
	waitingShare  = 0.1  // of the power of clocked work that a GPU draws while it waits
)

// burstyActs are workloads that follow the core clock and are at work for a
// quarter to four fifths of the time, in bursts of one to four seconds.
func burstyActs() []act {
	all := make([]act, burstyJobs)
	for i := range all {
		duty := 0.25 + 0.55*float64(i)/(burstyJobs-1)
		period := 3 + 0.5*float64(i%4)
		all[i] = act{
			name: fmt.Sprintf("b%02d", i), limit: 5 * time.Minute,
			truth:  dvfsmodel.Params{P0: 30, Gamma: 10, C: 160, D: burstySeconds * duty, Delta: 1},
			phases: []gpu.Phase{{Busy: period * duty, Wait: period * (1 - duty)}},
		}
	}
	return all
}

// Jobs run once, so that their workloads are known, and then with clocks that
// are adapted. Meanwhile the agent of another node is killed.
func TestAdaptedClocksKeepTheSLAOfBurstyJobsAtLessEnergyThanAnyStaticClock(t *testing.T) {
	slurmlab.AnySlurm(t)
	l := newLab(t, setup{
		config: fmt.Sprintf("[live]\nmode = \"enforce\"\nhold_out = 0\nexplore = 0\nmax_slowdown = 1.5\n"+
			"min_gain = 0\n[live.adapt]\n"+
			"mode = \"on\"\nsla = %v\nwrites_per_minute = %d\n",
			adaptedSLA, adaptedWrites),
		nodes: 3, gpu: fmt.Sprintf("sim:4,model=%s,bursty,wait=%v", adaptedGPU, waitingShare),
		roles: true, alone: true,
		// Workloads go by their jobs' names alone, not by the script where the hook came in time.
		flags: map[string][]string{controller: {"--submit-socket", ""}},
	})
	s := newStage(l, burstyActs(), 0, rand.New(rand.NewPCG(1, 1)))
	defer s.close()
	for i := range s.acts {
		s.submit(&s.acts[i])
	}
	l.within(patience, "the first runs end", func() bool { return s.play() == burstyJobs })
	const first = burstyJobs + 1 // one workload also on n3: what one node alone reports is tried on no other
	s.submit(&s.acts[0], "-w", "n3")
	l.within(patience, "its run on n3 ends", func() bool { return s.play() == first })
	l.within(patience, "their workloads are known", func() bool {
		st := l.status(controller)
		return st != nil && st.Totals != nil && st.Totals.Outcomes == first && st.Totals.Models == burstyJobs
	})

	victim := s.submit(&s.acts[0], "-w", "n3")
	adapted := make(map[int64]*act)
	for i := range s.acts {
		adapted[s.submit(&s.acts[i], "-x", "n3")] = &s.acts[i]
	}
	s.killWhileAdapted("n3")
	l.within(patience, "the adapted runs end", func() bool { return s.play() == first+burstyJobs+1 })
	l.within(patience, "nothing is locked", func() bool {
		return len(l.hardware("n1"))+len(l.hardware("n2")) == 0
	})
	for _, node := range append([]string{controller}, l.names...) {
		l.stopEPD(node, os.Interrupt)
	}
	l.free(l.names...)
	l.undrained()
	s.judgeAdapted(adapted, victim)
	s.judgeWrites()
}

// killWhileAdapted kills a node's agent while the clock of a job is below the one
// that it began with, and has another one start.
func (s *stage) killWhileAdapted(node string) {
	s.Helper()
	low := func() bool {
		s.play()
		for _, core := range s.hardware(node) {
			return core < 1000
		}
		return false
	}
	s.within(patience, "the clock of the victim's job falls", low)
	s.signal(node, syscall.SIGKILL)
	s.stopEPD(node, os.Interrupt)
	if len(s.hardware(node)) == 0 {
		s.Error("nothing was locked when the agent was killed")
	}
	s.startEPD(node)
	s.free(node)
}

// judgeAdapted holds each job against its SLA, and all of them against the static
// clock that needs least while it keeps the SLA of each. A job whose agent was
// killed is for nobody to slow down or to hurry.
func (s *stage) judgeAdapted(adapted map[int64]*act, victim int64) {
	s.Helper()
	records := s.records("n1")
	var jobs []*act
	energy, worst := 0.0, 0.0
	for _, e := range s.ended() {
		job, slowdown := int64(e.PID), e.Took/e.Default
		a := adapted[job]
		decided, err := records.DecisionsOfJob(s.Context(), "cluster", job)
		if err != nil || len(decided) != 1 {
			s.Fatalf("job %d: %+v, %v", job, decided, err)
		}
		s.Logf("job %d: %.3f times as long, %.0f J: %s", job, slowdown, float64(e.Energy), decided[0].Reason)
		switch {
		case job == victim:
			continue
		case slowdown > adaptedSLA:
			s.Errorf("job %d took %.3f times as long as at default clocks, SLA %v", job, slowdown, adaptedSLA)
		}
		if a != nil && strings.HasPrefix(decided[0].Reason, "adapted ") { // else Slurm didn't answer in time
			s.Logf("at work for %.0f %%, at default clocks %.0f J", 100*a.truth.D/e.Default,
				a.at(1380).energy)
			jobs, energy, worst = append(jobs, a), energy+float64(e.Energy), max(worst, slowdown)
		}
	}
	if len(jobs) < burstyJobs-2 {
		s.Fatalf("%d jobs were adapted", len(jobs))
	}
	s.judgeEnergy(jobs, energy, worst)
}

// ended returns all work that was done on the nodes.
func (s *stage) ended() []gpu.FinishedWork {
	s.Helper()
	var all []gpu.FinishedWork
	for _, node := range s.names {
		for _, sim := range s.sims[node] {
			ended, err := sim.Ended()
			if err != nil {
				s.Fatal(err)
			}
			all = append(all, ended...)
		}
	}
	slices.SortFunc(all, func(a, b gpu.FinishedWork) int { return a.PID - b.PID })
	return all
}

// judgeEnergy compares what adapted jobs needed with what they would have needed
// at static clocks.
func (s *stage) judgeEnergy(jobs []*act, energy, worst float64) {
	s.Helper()
	standard, _ := static(jobs, func(core dvfsmodel.MHz) bool { return core == 1380 })
	common, clock := static(jobs, func(dvfsmodel.MHz) bool { return true })
	each := 0.0
	for _, a := range jobs {
		own, _ := static([]*act{a}, func(dvfsmodel.MHz) bool { return true })
		each += own
	}
	s.Logf("%d jobs: %.0f J adapted, at most %.3f times as long; %.0f J at default clocks, %.0f J at %v "+
		"MHz, the best static clock (%.1f %% saved); "+
		"%.0f J if the best static clock of each were known before", len(jobs), energy, worst, standard,
		common, float64(clock), 100*(1-energy/common), each)
	if energy >= common {
		s.Errorf("%.0f J adapted, %.0f J at %v MHz", energy, common, float64(clock))
	}
}

// cost is what a job comes to.
type cost struct{ energy, slowdown float64 }

// at returns what a job comes to at a static clock, by the simulator's own rules.
func (a *act) at(core dvfsmodel.MHz) cost {
	const standard = 1380
	fc := float64(core) / standard
	setting := dvfsmodel.Scaling{V: dvfsmodel.VoltageFor(fc), Fc: fc, Fm: 1}
	profile, _ := config.BuiltinProfiles().Lookup(adaptedGPU)
	p := a.phases[0]
	bursts := math.Ceil(a.truth.D/p.Busy-1e-9) - 1 // after which it waits
	wait, busy := bursts*p.Wait, a.truth.Time(fc, 1)
	waiting := float64(profile.IdleW) + waitingShare*float64(a.truth.C)*float64(setting.V*setting.V)*fc
	return cost{
		energy:   float64(a.truth.Power(setting))*busy + waiting*wait,
		slowdown: (busy + wait) / (a.truth.D + wait),
	}
}

// static returns the least that jobs cost at one clock for all of them that keeps the
// SLA of each, and the clock.
func static(jobs []*act, allowed func(dvfsmodel.MHz) bool) (joules float64, best dvfsmodel.MHz) {
	profile, _ := config.BuiltinProfiles().Lookup(adaptedGPU)
	joules = math.Inf(1)
	for _, pair := range profile.Pairs() {
		sum, keeps := 0.0, allowed(pair.Core)
		for _, a := range jobs {
			c := a.at(pair.Core)
			sum += c.energy
			keeps = keeps && c.slowdown <= adaptedSLA
		}
		if keeps && sum < joules {
			joules, best = sum, pair.Core
		}
	}
	return joules, best
}

// judgeWrites counts the clock writes of each GPU, starts and ends of runs
// among them.
func (s *stage) judgeWrites() {
	s.Helper()
	most := 0
	for _, node := range s.names {
		for i, sim := range s.sims[node] {
			times, err := sim.Writes()
			if err != nil {
				s.Fatal(err)
			}
			for j, from := range times {
				n := len(slices.DeleteFunc(slices.Clone(times[j:]), func(at time.Time) bool {
					return at.Sub(from) >= time.Minute
				}))
				most = max(most, n)
				if n > adaptedWrites {
					s.Errorf("%s: GPU %d has %d clock writes in a minute, want at most %d", node, i, n,
						adaptedWrites)
				}
			}
		}
	}
	s.Logf("at most %d clock writes of a GPU in a minute, %d allowed", most, adaptedWrites)
	if files, err := filepath.Glob(filepath.Join(s.dir, "*", "journal", "*.json")); err != nil ||
		len(files) > 0 {
		s.Errorf("left in journals: %v, %v", files, err)
	}
}
