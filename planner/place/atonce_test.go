package place_test

import (
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/tune"
)

// atOnce places tasks that arrive a second apart on two nodes of four GPUs, 8
// CPUs each, by first come, first served.
func atOnce(t *testing.T, tasks ...planner.Task) *planner.Plan {
	t.Helper()
	p := &planner.Problem{Mode: planner.Online, Tasks: tasks, Cluster: planner.Cluster{
		Classes: []planner.NodeClass{{Name: "n", Model: "m", Count: 2, GPUs: 4, CPUs: 8}},
	}}
	for i := range tasks {
		t := &tasks[i]
		t.ID, t.Arrival, t.Deadline, t.Due, t.Limit = string(rune('a'+i)), float64(i), math.Inf(1),
			math.Inf(1), math.Inf(1)
	}
	plan, err := planner.Solve(t.Context(), p, &planner.Policy{
		Tune: tune.None, Place: place.AtOnce, Pick: pick.Backfill{}.New, Park: park.Never{},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := check.Plan(p, plan); err != nil {
		t.Fatal(err)
	}
	return plan
}

// needs returns a task of 100 s.
func needs(gpus int, share, cpus float64) planner.Task {
	run := &dvfsmodel.Fixed{At: dvfsmodel.Point{Scaling: dvfsmodel.DefaultScaling(), Time: 100}}
	return planner.Task{
		Share: share, CPUs: cpus, Options: []planner.Option{{Model: "m", GPUs: gpus, Response: run}},
	}
}

func TestTasksGoToTheNodeWithTheFewestGPUsLeft(t *testing.T) {
	plan := atOnce(t, needs(2, 1, 0), needs(3, 1, 0), needs(1, 1, 0), needs(2, 1, 0), needs(1, 1, 0))
	for i, want := range []int32{0, 1, 1, 0, 0} {
		a := &plan.Assignments[i]
		if a.Node != want {
			t.Errorf("task %d on node %d, want %d", i, a.Node, want)
		}
		if late := i == 4; late != (a.Start > float64(i)) {
			t.Errorf("task %d starts at %v", i, a.Start)
		}
	}
}

func TestSharesFillAGPUBeforeTheyTakeAnotherOne(t *testing.T) {
	plan := atOnce(t, needs(1, 0.5, 0), needs(1, 0.75, 0), needs(1, 0.25, 0), needs(1, 0.5, 0))
	for i, want := range []planner.GPUSet{1, 2, 2, 1} {
		if got := plan.Assignments[i].GPUs; got != want || plan.Assignments[i].Start != float64(i) {
			t.Errorf("task %d has GPUs %b at %v s, want %b", i, got, plan.Assignments[i].Start, want)
		}
	}
}

func TestTasksWaitForCPUs(t *testing.T) {
	plan := atOnce(t, needs(1, 1, 8), needs(1, 1, 6), needs(1, 1, 3), needs(1, 1, 2))
	for i, want := range []float64{0, 1, 100, 3} {
		if got := plan.Assignments[i].Start; got != want {
			t.Errorf("task %d starts at %v, want %v", i, got, want)
		}
	}
}
