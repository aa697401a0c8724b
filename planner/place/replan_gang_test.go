package place_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/planner"
)

// over has a task run on so many nodes, each with as many GPUs as it had on one.
func over(nodes int, task planner.Task) planner.Task {
	for i := range task.Options {
		o := &task.Options[i]
		o.GPUs, o.Nodes = nodes*o.GPUs, nodes
	}
	return task
}

// TestTasksOverTwoNodesArePlannedLikeTasksOnNodesTwiceAsLarge, where each takes all GPUs.
func TestTasksOverTwoNodesArePlannedLikeTasksOnNodesTwiceAsLarge(t *testing.T) {
	cases, waited, passed := 0, 0, 0
	rapid.Check(t, func(r *rapid.T) {
		cases++
		nodes, models := rapid.IntRange(1, 3).Draw(r, "nodes"), rapid.IntRange(1, 2).Draw(r, "models")
		small := &planner.Problem{Mode: planner.Online, Cluster: pools(models, 2*nodes)}
		large := &planner.Problem{Mode: planner.Online, Cluster: pools(models, nodes)}
		for i := range large.Cluster.Classes {
			large.Cluster.Classes[i].GPUs *= 2
		}
		at := 0.0
		for i := range rapid.IntRange(1, 20).Draw(r, "tasks") {
			at += float64(rapid.IntRange(0, 900).Draw(r, "gap"))
			seconds, watts := make([]float64, models), make([]float64, models)
			for k := range models {
				seconds[k] = float64(rapid.IntRange(60, 3000).Draw(r, "seconds"))
				watts[k] = float64(rapid.IntRange(50, 300).Draw(r, "watts"))
			}
			small.Tasks = append(small.Tasks, over(2, onModels(i, at, 2, seconds, watts)))
			large.Tasks = append(large.Tasks, onModels(i, at, 4, seconds, watts))
		}
		a, b := replanned(t, small), replanned(t, large)
		for i := range a.Assignments {
			x, y := &a.Assignments[i], &b.Assignments[i]
			if x.Option != y.Option || math.Abs(x.Start-y.Start) > 1e-6 || math.Abs(x.End-y.End) > 1e-6 {
				r.Fatalf("task %d runs on model %d from %v to %v s over two nodes, on model %d from %v to "+
					"%v s on one", i, x.Option, x.Start, x.End, y.Option, y.Start, y.End)
			}
			if x.Start > small.Tasks[i].Arrival+30 {
				waited++
			}
			if i > 0 && x.Start < a.Assignments[i-1].Start {
				passed++
			}
		}
		if e, f := float64(a.Ledger.Total()), float64(b.Ledger.Total()); math.Abs(e-f) > 1e-6*f {
			r.Fatalf("%v J over two nodes, %v J on one", e, f)
		}
	})
	if waited < cases || passed < cases/10 {
		t.Errorf("%d tasks waited, %d passed others, want %d and %d or more", waited, passed, cases, cases/10)
	}
}

// TestATaskPassesAGangThatWaits only if it is gone by then.
func TestATaskPassesAGangThatWaits(t *testing.T) {
	for _, c := range []struct {
		name    string
		nodes   int
		seconds float64
		passes  bool
	}{
		{"short", 1, 500, true},
		{"long", 1, 5000, false},
		{"short gang", 2, 500, true},
		{"long gang", 2, 5000, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &planner.Problem{Mode: planner.Online, Cluster: pools(1, 4)}
			p.Tasks = []planner.Task{
				onModels(0, 0, 2, []float64{1000}, []float64{100}),
				onModels(1, 0, 2, []float64{800}, []float64{100}),
				over(4, onModels(2, 1, 1, []float64{50}, []float64{100})), // takes least, and so comes first
				over(c.nodes, onModels(3, 2, 2, []float64{c.seconds}, []float64{100})),
			}
			plan := replanned(t, p)
			gang, other := &plan.Assignments[2], &plan.Assignments[3]
			free := math.Max(plan.Assignments[0].End, plan.Assignments[1].End)
			// a node may have to be switched on.
			if passes := other.Start < gang.Start; passes != c.passes || gang.Start > free+31 {
				t.Errorf("runs from %v s on, the gang from %v s, want that half a minute after %v s "+
					"and passed: %v", other.Start, gang.Start, free, c.passes)
			}
		})
	}
}

// TestClocksOfGangsAreSlowWhereTimeIsWon, too: as of tasks on one node.
func TestClocksOfGangsAreSlowWhereTimeIsWon(t *testing.T) {
	p := &planner.Problem{Mode: planner.Online, Cluster: pools(2, 4)}
	for i := range 40 {
		p.Tasks = append(p.Tasks,
			over(2, onModels(i, float64(i)*1000, 1, []float64{4000, 1000}, []float64{50, 200})))
	}
	if slow := stretched(p, replanned(t, p)); slow < 1.1 {
		t.Errorf("runs take %.2f times as long as at default clocks, want 1.1 times or more", slow)
	}
}

// TestWhatNeedsAllNodesIsNotPassedForEver by tasks that are small and always there. Which
// ones pass it before is cheap.
func TestWhatNeedsAllNodesIsNotPassedForEver(t *testing.T) {
	p := &planner.Problem{Mode: planner.Online, Cluster: pools(1, 3)}
	p.Tasks = append(p.Tasks, over(3, onModels(0, 5, 2, []float64{2000}, []float64{100})))
	for i := range 400 {
		p.Tasks = append(p.Tasks, onModels(1+i, float64(i)*200, 1, []float64{900}, []float64{100}))
	}
	if a := &replanned(t, p).Assignments[0]; a.Start > 10_000 {
		t.Errorf("the gang starts at %v s, want it by 10,000 s", a.Start)
	}
}

// TestAGangStaysInItsPartition though it would take less on other nodes.
func TestAGangStaysInItsPartition(t *testing.T) {
	p := &planner.Problem{Mode: planner.Online, Cluster: pools(2, 2)}
	p.Cluster.Classes[0].Partitions, p.Cluster.Classes[1].Partitions = []string{"a"}, []string{"b"}
	gang := over(2, onModels(0, 0, 2, []float64{1000, 1000}, []float64{50, 300}))
	for _, partition := range []string{"a", "b"} {
		gang.Partitions = []string{partition}
		p.Tasks = []planner.Task{gang}
		plan := replanned(t, p)
		for part := range plan.Assignments[0].Parts {
			if name := p.Cluster.Classes[plan.Nodes[part.Node].Class].Partitions[0]; name != partition {
				t.Errorf("runs in partition %s, want %s", name, partition)
			}
		}
	}
}
