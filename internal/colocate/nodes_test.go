package colocate_test

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner/sharing"
	"github.com/epplan/epplan/slurm"
)

// names returns the nodes of an order, each with its rank and whether it fits.
func names(o colocate.Order) string {
	all := make([]string, 0, len(o.Nodes))
	for _, n := range o.Nodes {
		mark := "-"
		if n.Fits {
			mark = "+"
		}
		all = append(all, n.Name+mark+strconv.Itoa(n.Rank))
	}
	return strings.Join(all, " ")
}

func TestTheNodeWithTheAntiphaseNeighbourComesFirst(t *testing.T) {
	c := newCluster("n1", "n2", "n3", "n4")
	c.runs(1, "high first", "n1", 0)
	c.runs(2, "low first", "n2", 0)
	c.runs(3, "unheard of", "n4", 0)
	o := c.order("high first")
	if got := names(o); got != "n2+0 n3+1 n1-2 n4-2" || o.Note != "" {
		t.Fatalf("%s, %q", got, o.Note)
	}
	best, empty, bad, unknown := o.Nodes[0], o.Nodes[1], o.Nodes[2], o.Nodes[3]
	near(t, "the correlation with the antiphase", best.Correlation, -1, 0.01)
	near(t, "the correlation with its like", bad.Correlation, 1, 0.01)
	near(t, "the power of a GPU more", empty.RisesW, 0.09*1125, 1e-9)
	near(t, "the power beside another", best.RisesW, 0, 1e-9)
	near(t, "the slowdown beside another", best.Slowdown, 1.1804, 1e-3)
	if !slices.Equal(best.Beside, []slurm.JobID{2}) || len(empty.Beside) > 0 ||
		!strings.Contains(bad.Why, "1.40 times") ||
		!strings.Contains(unknown.Why, "job 3: nothing is known") {
		t.Errorf("%+v", o.Nodes)
	}
}

func TestACurveOfContentionSaysWhatItCostsToShare(t *testing.T) {
	c := newCluster("n1", "n2", "n3")
	c.runs(1, "high first", "n1", 0)
	c.runs(2, "low first", "n2", 0)
	by := func(curve sharing.Curve) []colocate.Node {
		t.Helper()
		gpu := newCluster().GPU("")
		gpu.Curve = &curve
		c.GPU = func(string) colocate.GPU { return gpu }
		return c.order("high first").Nodes
	}
	plain := c.order("high first")
	if got := by(sharing.LinearCurve()); !reflect.DeepEqual(got, plain.Nodes) {
		t.Errorf("time shared without loss: %+v, want %+v", got, plain.Nodes)
	}
	// Beside n2's job it takes 1.5 times as long, alone on n3 as long.
	byTask := by(sharing.Curve{Exponent: 1, ByTask: 0.5})
	if got := names(colocate.Order{Nodes: byTask}); got != "n3+0 n1-1 n2-1" ||
		!strings.Contains(byTask[2].Why, "1.50 times") {
		t.Errorf("a curve by task: %s, %+v", got, byTask)
	}
	byMemory := by(sharing.Curve{Exponent: 1, ByMemory: 0.4}) // both take a quarter of the memory
	if got := names(colocate.Order{Nodes: byMemory}); got != "n2+0 n3+1 n1-2" || byMemory[0].Slowdown < 1.1 ||
		byMemory[0].RisesW <= plain.Nodes[0].RisesW {
		t.Errorf("a curve by memory: %s, %+v", got, byMemory)
	}
}

func TestWhatIsAheadCountsNotWhatIsOver(t *testing.T) {
	c := newCluster("n1", "n2")
	c.runs(1, "high first", "n1", 32) // its high half is over
	c.runs(2, "low first", "n2", 32)
	if got := names(c.order("high first")); got != "n1+0 n2-1" {
		t.Error(got)
	}
	c.Profile = func(j *slurm.Job, _ string) (*colocate.UseProfile, float64) { return c.profiles[j.Name], 0.5 }
	if got := names(c.order("high first")); got != "n2+0 n1-1" {
		t.Errorf("at half the speed half of that is ahead: %s", got)
	}
}

func TestAnUnknownWorkloadHasNoOrder(t *testing.T) {
	c := newCluster("n1", "n2")
	c.runs(1, "high first", "n1", 0)
	if o := c.order("unheard of"); len(o.Nodes) != 0 || !strings.Contains(o.Note, "nothing is known") {
		t.Errorf("%+v", o)
	}
	c.profiles["new"] = colocate.Learn([]colocate.SoloRun{{
		TimeS: 64, Slowdown: 1, Profile: recorded(64, 2, square(true)),
	}}, &rules)
	if o := c.order("new"); len(o.Nodes) != 0 || !strings.Contains(o.Note, "1 of 3 runs") {
		t.Errorf("%+v", o)
	}
}

func TestAGPUModelOnWhichTheWorkloadIsUnknownComesLast(t *testing.T) {
	c := newCluster("n1", "n2", "n3", "n4")
	for i := range 3 {
		c.Nodes[i].Gres[0].Type = "t4"
	}
	of := c.Profile
	c.Profile = func(j *slurm.Job, model string) (*colocate.UseProfile, float64) {
		if model == "t4" {
			return nil, 1
		}
		return of(j, model)
	}
	c.runs(1, "high first", "n4", 0)
	o := c.order("low first")
	if got := names(o); got != "n4+0 n1-1 n2-1 n3-1" || o.Note != "" {
		t.Fatalf("%s, %q", got, o.Note)
	}
	for _, n := range o.Nodes[1:] {
		if !strings.Contains(n.Why, "on t4") {
			t.Errorf("%+v", n)
		}
	}
}

func TestNothingIsKnownOfWhatRunsLongerThanItsWorkloadDoes(t *testing.T) {
	c := newCluster("n1", "n2")
	c.runs(1, "low first", "n1", 65)
	o := c.order("high first")
	if got := names(o); got != "n2+0 n1-1" || !strings.Contains(o.Nodes[1].Why, "longer") {
		t.Errorf("%s, %+v", got, o)
	}
}

func TestMemoryAndTimeLimitsAreKept(t *testing.T) {
	c := newCluster("n1")
	c.profiles["hungry"] = learnt(15, square(false))
	c.runs(1, "hungry", "n1", 0)
	if o := c.order("high first"); o.Nodes[0].Fits || !strings.Contains(o.Nodes[0].Why, "memory") {
		t.Errorf("%+v", o)
	}
	c = newCluster("n1")
	c.profiles["halved"] = learnt(2, func(int) float64 { return 0.55 })
	j := c.runs(1, "halved", "n1", 0)
	if o := c.order("halved"); !o.Nodes[0].Fits {
		t.Errorf("1.1 times the time alone: %+v", o)
	}
	j.TimeLimit = live.LimitOf(66 * time.Second)
	if o := c.order("halved"); o.Nodes[0].Fits {
		t.Errorf("with a limit of 66 s for 64 s: %+v", o)
	}
	j.TimeLimit = live.LimitOf(660 * time.Second)
	c.Speed = 10
	if o := c.order("halved"); o.Nodes[0].Fits {
		t.Errorf("the GPUs' time is ten times as fast: %+v", o)
	}
}

func TestOnlyNodesOnWhichTheAdministratorSharesGPUsHaveAPlace(t *testing.T) {
	c := newCluster("n1", "n2", "n3", "n4", "n5")
	c.Nodes[1].Gres = c.Nodes[1].Gres[:1]                     // no shares
	c.Nodes[2].Gres = []slurm.Gres{{Name: "mps", Count: 100}} // no GPUs
	c.Nodes[3].Partitions = []string{"other"}                 //
	c.Nodes[4].State.Flags = []string{"DRAIN"}                //
	whole := c.runs(7, "high first", "n1", 0)                 //
	if got := names(c.order("low first")); got != "n1+0" {
		t.Error(got)
	}
	whole.TRESPerNode = "gres:gpu:1"
	whole.Gres[0].Gres = []slurm.Gres{{Name: "gpu", Count: 1, Index: []int{0}}}
	if o := c.order("low first"); len(o.Nodes) != 0 {
		t.Errorf("all of its GPUs are taken: %+v", o)
	}
	for _, gres := range []string{
		"gres:gpu:1", "", "gres:shard:9", "gres:gpu:1,gres:shard:1",
		"gres:shard:1,gres:mps:1", "(", "gres:mps:1",
	} {
		o := colocate.RankNodes(&c.ClusterState,
			&slurm.Job{ID: 5, Name: "low first", Partition: "gpu", TRESPerNode: gres}, &c.Options)
		if len(o.Nodes) != 0 {
			t.Errorf("%q: %+v", gres, o)
		}
	}
}

func TestTheWorstGPUThatAJobMayGetCounts(t *testing.T) {
	c := newCluster("n1")
	c.Nodes[0].Gres = []slurm.Gres{{Name: "gpu", Count: 2}, {Name: "shard", Count: 4}}
	c.runs(1, "low first", "n1", 0)
	if n := c.order("high first").Nodes[0]; !n.Fits || n.RisesW < 50 {
		t.Errorf("one GPU is empty: %+v", n)
	}
	other := c.runs(2, "high first", "n1", 0)
	other.Gres[0].Gres[0].Index = []int{1}
	if n := c.order("high first").Nodes[0]; n.Fits || !slices.Equal(n.Beside, []slurm.JobID{1, 2}) {
		t.Errorf("on the other one runs its like: %+v", n)
	}
	other.Gres[0].Gres[0].Count = 2 // no room there
	if n := c.order("high first").Nodes[0]; !n.Fits || !slices.Equal(n.Beside, []slurm.JobID{1}) {
		t.Errorf("the other one is full: %+v", n)
	}
	other.Gres = nil // Slurm doesn't say where
	if n := c.order("high first").Nodes[0]; n.Fits {
		t.Errorf("it may be on either: %+v", n)
	}
}

func TestRanksAreFewAndEqualsShareOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 40).Draw(t, "nodes")
		all := make([]string, 0, count)
		for i := range count {
			all = append(all, "n"+string(rune('A'+i)))
		}
		c := newCluster(all...)
		for i, name := range all {
			if rapid.Bool().Draw(t, "busy") {
				what := rapid.SampledFrom([]string{"high first", "low first", "unheard of"}).Draw(t, "what")
				c.runs(slurm.JobID(i+1), what, name, rapid.IntRange(0, 70).Draw(t, "since"))
			}
		}
		o := c.order("high first")
		if len(o.Nodes) != count {
			t.Fatalf("%d of %d nodes", len(o.Nodes), count)
		}
		for i, n := range o.Nodes {
			if n.Rank < 0 || n.Rank > 7 ||
				i > 0 && (n.Rank < o.Nodes[i-1].Rank || n.Fits && !o.Nodes[i-1].Fits ||
					n.Fits != o.Nodes[i-1].Fits && n.Rank == o.Nodes[i-1].Rank) {
				t.Fatalf("%+v after %+v", n, o.Nodes[max(0, i-1)])
			}
			if n.Fits && n.Slowdown > rules.Slowdown+1e-6 {
				t.Fatalf("%+v", n)
			}
		}
	})
}

func BenchmarkNodes(b *testing.B) {
	all := make([]string, 0, 1250)
	for i := range cap(all) {
		all = append(all, "n"+strconv.Itoa(i))
	}
	c := newCluster(all...)
	for i, name := range all { // eight GPUs each, one job on each
		c.Nodes[i].Gres = []slurm.Gres{{Name: "gpu", Count: 8}, {Name: "shard", Count: 32}}
		for g := range 8 {
			j := c.runs(slurm.JobID(i*8+g+1), []string{"high first", "low first"}[g%2], name, g)
			j.Gres[0].Gres[0].Index = []int{g}
		}
	}
	for _, runs := range []int{3, colocate.MaxRuns} {
		b.Run(strconv.Itoa(runs)+" runs of each", func(b *testing.B) {
			for name, first := range map[string]bool{"high first": true, "low first": false} {
				recordings := slices.Repeat([]colocate.SoloRun{{
					TimeS: 64, Slowdown: 1, Profile: recorded(64, 2, square(first)),
				}}, runs)
				c.profiles[name] = colocate.Learn(recordings, &rules)
			}
			for b.Loop() {
				if o := c.order("high first"); len(o.Nodes) != len(all) {
					b.Fatal(len(o.Nodes))
				}
			}
			b.ReportMetric(10_000, "GPUs")
		})
	}
}
