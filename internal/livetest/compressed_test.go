package livetest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
	"github.com/epplan/epplan/live"
)

// The run in compressed time: what takes a job a minute takes a second.
const (
	compression   = 60
	compressedGPU = "V100-2022"
	repertoire    = 20 // workloads
	performances  = 300
	judged        = 100 // of them, the last ones at clocks that were chosen to save
	ahead         = 80  // jobs that run or wait: so many wait that Slurm's queue is read meanwhile
	// Quiet machines reach 0.91 to 0.96; on a busy one Slurm answers too late for some
	// jobs.
	wayWanted   = 0.8
	workScatter = 0.03
	probes      = "probe: " // begins the reason of a decision that explores
)

// inCompressedTime returns a lab of nodes with eight GPUs of a model, where what takes a minute takes a
// second.
func inCompressedTime(config, model string, nodes int) setup {
	spec := fmt.Sprintf("sim:8,model=%s,speed=%d", model, compression)
	return setup{
		config: config, roles: true, nodes: nodes, gpus: 8, gpu: spec, alone: true,
		flags: map[string][]string{controller: {"--gpu", spec}},
		lua: func(text string) string { // the deadline of a busy machine, and a breaker in compressed time
			return strings.ReplaceAll(unhurried(text), "BREAKER   = 5", "BREAKER   = 0.1")
		},
	}
}

func TestInCompressedTimeEPDLearnsToSaveNearlyAllThatCanBeSaved(t *testing.T) {
	slurmlab.AnySlurm(t)
	random := rand.New(rand.NewPCG(6, 5))
	l := newLab(t, inCompressedTime("[live]\nmode = \"enforce\"\nhold_out = 0.2\nmax_slowdown = 1.5\n",
		compressedGPU, 3))
	s := newStage(l, drawActs(random, repertoire), workScatter, random)
	defer s.close()
	of := make(map[int64]*act)
	for i := range performances {
		a := &s.acts[i%len(s.acts)]
		if i >= len(s.acts) {
			a = &s.acts[random.IntN(len(s.acts))]
		}
		of[s.submit(a)] = a
		l.within(patience, "jobs end", func() bool { return len(of)-s.play() < ahead })
	}
	l.within(patience, "all jobs end", func() bool { return s.play() == len(of) })
	l.within(patience, "all is recorded", func() bool {
		st := l.status(controller)
		return st != nil && st.Totals != nil && st.Totals.Outcomes >= int64(len(of))
	})
	out, err := exec.CommandContext(t.Context(), filepath.Join(l.bin, "epplan"), "savings", "--socket",
		l.socket(controller)).CombinedOutput()
	t.Logf("epplan savings, %v:\n%s", err, out)
	for _, node := range append([]string{controller}, l.names...) {
		l.stopEPD(node, os.Interrupt)
	}
	l.free(l.names...)
	l.undrained()
	s.keptLimits()
	s.judge(s.choices(of))
}

// keptLimits checks that no job's work took longer than its limit, by the GPUs' own
// account: how soon somebody sees that it is done isn't the clocks' doing.
func (s *stage) keptLimits() {
	s.Helper()
	longest, ended := 0.0, s.ended()
	for _, e := range ended {
		p := s.done[int64(e.PID)]
		limit := p.act.limit.Seconds() / compression
		if e.Took > limit {
			s.Errorf("job %d of %s took %.2f s, more than its limit of %.2f s", p.job, p.act.name,
				e.Took, limit)
		}
		longest = max(longest, e.Took/limit)
	}
	if len(ended) != len(s.done) {
		s.Errorf("the GPUs tell of %d jobs, want %d", len(ended), len(s.done))
	}
	s.Logf("of its limit, no job took more than %.0f %%", 100*longest)
}

// choice is what was decided for a job.
type choice struct {
	record.Decision
	*act
}

// choices returns those of all jobs, in the order of their starts.
func (s *stage) choices(of map[int64]*act) []choice {
	s.Helper()
	records := s.records("n1")
	all := make([]choice, 0, len(of))
	for job, a := range of {
		list, err := records.DecisionsOfJob(s.Context(), "cluster", job)
		if err != nil || len(list) != 1 {
			s.Fatalf("job %d: decisions %+v, %v", job, list, err)
		}
		all = append(all, choice{list[0], a})
	}
	slices.SortFunc(all, func(a, b choice) int { return a.Created.Compare(b.Created) })
	return all
}

// tab is what jobs cost by the true curves of their workloads: the energy of the
// GPU and of its part of the host, which is the objective.
type tab struct {
	jobs, bound            int // bound: those whose cheapest clocks break the limit
	standard, chosen, best float64
}

// way returns how far the costs are from those at default clocks to the least.
func (t *tab) way() float64 { return (t.standard - t.chosen) / (t.standard - t.best) }

func (t *tab) String() string {
	return fmt.Sprintf("%d jobs, %d bound by their limit: %.1f %% of the way to the optimum, %.1f %% "+
		"saved of %.1f %%",
		t.jobs, t.bound, 100*t.way(), 100*(1-t.chosen/t.standard), 100*(1-t.best/t.standard))
}

// add puts a choice on the tab.
func (t *tab) add(tb testing.TB, c *choice) {
	tb.Helper()
	profile, err := config.BuiltinProfiles().Lookup(compressedGPU)
	if err != nil {
		tb.Fatal(err)
	}
	table, err := profile.Table()
	if err != nil {
		tb.Fatal(err)
	}
	at := func(core dvfsmodel.MHz) (cost, seconds float64) {
		setting, ok := table.Contains(core, profile.Default.Mem)
		if !ok {
			tb.Fatalf("job %d: %v MHz isn't in the table", c.JobID, float64(core))
		}
		pt := c.truth.At(setting)
		pt.Energy += profile.HostW.Over(pt.Time)
		return dvfsmodel.MinEnergy().Cost(pt), pt.Time
	}
	standard, _ := at(profile.Default.Core)
	best, free := standard, standard // the free one may break the limit
	for _, pair := range profile.Pairs() {
		cost, seconds := at(pair.Core)
		free = min(free, cost)
		if seconds <= c.limit.Seconds() {
			best = min(best, cost)
		}
	}
	chosen := standard
	if c.Setting.Core > 0 && c.Arm == live.ArmTreated {
		chosen, _ = at(c.Setting.Core)
	}
	t.jobs++
	if free < best {
		t.bound++
	}
	t.standard, t.chosen, t.best = t.standard+standard, t.chosen+chosen, t.best+best
}

// judge wants the last jobs that were neither held out nor explored to come near
// the least that they could have cost.
func (s *stage) judge(all []choice) {
	s.Helper()
	held, probed := 0, 0
	all = slices.DeleteFunc(all, func(c choice) bool {
		if c.Arm == live.ArmHeldOut {
			held++
			return true
		}
		if strings.HasPrefix(c.Reason, probes) {
			probed++
			return true
		}
		return false
	})
	s.Logf("%d jobs held out, %d explored", held, probed)
	var whole, last tab
	for i := range all {
		whole.add(s, &all[i])
	}
	for i := max(0, len(all)-judged); i < len(all); i++ {
		last.add(s, &all[i])
	}
	s.Logf("all: %v", &whole)
	s.Logf("last: %v", &last)
	switch {
	case last.jobs < judged:
		s.Errorf("%d jobs are left to judge, want %d", last.jobs, judged)
	case last.bound == 0:
		s.Error("no limit was in the way of the cheapest clocks: that limits are kept shows nothing")
	case !(last.way() >= wayWanted) || math.IsInf(last.way(), 0):
		s.Errorf("%.1f %% of the way to the optimum, want %.0f %%", 100*last.way(), 100*wayWanted)
		for i := range all {
			var one tab
			one.add(s, &all[i])
			s.Logf("job %d of %s: %.0f %%, core %v: %s", all[i].JobID, all[i].name, 100*one.way(),
				float64(all[i].Setting.Core), all[i].Reason)
		}
	}
}
