package planner_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/epplan/epplan/planner"
)

func TestAPickerMayRankBlockAndWake(t *testing.T) {
	k := paperClass(1)
	k.Count = 1
	p := online(k, job("cheap", fixed(10)), job("dear", fixed(10)), job("worthless", fixed(10)),
		at(job("dearest", fixed(2)), 3, 100))
	plan := solveWith(t, p, valuePolicy(func(task int) float64 { return []float64{10, 50, 0, 100}[task] }))
	for i, want := range []float64{12, 0, 0, 10} { // the dear one, then the dearest, then the cheap one
		if got := plan.Assignments[i].Start; got != want {
			t.Errorf("job %q starts at %v s, want %v", p.Tasks[i].ID, got, want)
		}
	}
	if want := []planner.Unplaced{{
		Task: 2, Why: "the policy kept it waiting to the end",
		Earliest: math.Inf(1),
	}}; !slices.Equal(plan.Unplaced, want) {
		t.Errorf("unplaced %+v, want %+v", plan.Unplaced, want)
	}
}

func TestAPickerMayChooseTheNodeClass(t *testing.T) {
	slow, fast := paperClass(1), paperClass(1)
	fast.Model = "B"
	j := job("either", fixed(20))
	j.Options = append(j.Options, planner.Option{Model: "B", GPUs: 1, Response: fixed(5)})
	p := online(slow, j)
	p.Cluster.Classes = append(p.Cluster.Classes, fast)
	plan := solveWith(t, p, valuePolicy(func(int) float64 { return 1 }))
	if a := plan.Assignments[0]; a.Option != 1 || plan.Nodes[a.Node].Class != 1 {
		t.Errorf("option %d on class %d, want 1 on 1", a.Option, plan.Nodes[a.Node].Class)
	}
}

func TestAPlacerMayScoreGPUs(t *testing.T) {
	p := online(paperClass(4))
	for _, share := range []float64{0.5, 0.7, 0.3, 1} {
		j := job(fmt.Sprint("share", share), fixed(10))
		j.Share = share
		p.Tasks = append(p.Tasks, j)
	}
	plan := solveWith(t, p, fgdPolicy())
	for i, want := range []planner.GPUSet{1, 2, 2, 4} { // the third fills the second GPU exactly
		if got := plan.Assignments[i].GPUs; got != want {
			t.Errorf("job %q on GPUs %v, want %v", p.Tasks[i].ID, got.Indexes(), want.Indexes())
		}
	}
}

func TestAPlacerMayWeighNeighboursAndAParkerMaySleepPeriodically(t *testing.T) {
	k := paperClass(2)
	k.CPUs, k.MemGiB = 16, 64
	p := online(k, job("cores", fixed(10)), job("more cores", fixed(10)), job("memory", fixed(10)))
	p.Tasks[0].CPUs, p.Tasks[1].CPUs, p.Tasks[2].MemGiB = 8, 8, 32
	plan := solveWith(t, p, catsPolicy())
	for i, want := range []int32{0, 1, 0} { // what needs cores goes apart, memory goes with cores
		if got := plan.Assignments[i].Node; got != want {
			t.Errorf("job %q on node %d, want %d", p.Tasks[i].ID, got, want)
		}
	}
	for n := range plan.Nodes {
		if want := []planner.Interval{{From: 0, To: 30}}; !slices.Equal(plan.Nodes[n].On, want) {
			t.Errorf("node %d on %v, want %v", n, plan.Nodes[n].On, want)
		}
	}
}

// crowd returns a random online problem of 40 jobs on a few nodes.
func crowd(rng *rand.Rand) *planner.Problem {
	k := planner.NodeClass{
		Name: "big", Model: "A", Count: 2, GPUs: 4, CPUs: 16, MemGiB: 64, IdleW: 37, HostW: 20, TurnOn: 90,
		TurnOnDelay: 2,
	}
	p := online(k)
	p.Start = planner.StartRule(rng.IntN(2))
	p.Cluster.Classes = append(p.Cluster.Classes, planner.NodeClass{
		Name: "pair", Model: "B", GPUs: 2, IdleW: 37, TurnOn: 90,
	})
	for i := range 40 {
		seconds := 5 + 30*rng.Float64()
		t := at(job(fmt.Sprint("job", i), continuous(seconds)),
			100*rng.Float64(), math.Inf(1))
		t.CPUs, t.MemGiB = float64(rng.IntN(5)), float64(rng.IntN(16))
		switch rng.IntN(3) {
		case 0:
			t.Share = 0.1 * float64(1+rng.IntN(9))
		case 1:
			t.Options[0].GPUs = 1 + rng.IntN(3)
			t.Options = append(t.Options, planner.Option{Model: "B", GPUs: 2, Response: fixed(seconds)})
		}
		if rng.IntN(2) == 0 {
			t.Deadline = t.Arrival + 4*seconds
			t.Due = t.Deadline
		}
		p.Tasks = append(p.Tasks, t)
	}
	return p
}

func TestPrototypesPlansPassCheck(t *testing.T) {
	policies := []*planner.Policy{
		valuePolicy(func(task int) float64 { return float64(1 + task%7) }), fgdPolicy(), catsPolicy(),
	}
	for seed := range uint64(100) {
		p := crowd(rand.New(rand.NewPCG(seed, 1)))
		for _, pol := range policies {
			plan := solveWith(t, p, pol)
			if unplaced := len(plan.Unplaced); unplaced > len(p.Tasks)/2 {
				t.Errorf("seed %d, %s: %d of %d jobs unplaced", seed, pol.Name, unplaced, len(p.Tasks))
			}
		}
	}
}
