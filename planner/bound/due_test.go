package bound_test

import (
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
)

// Tasks without due times and limits have all the time that they want: each costs its
// own minimum.
func TestWithoutDueTimesTheBoundIsWhatTasksCostByThemselves(t *testing.T) {
	wide := dvfsmodel.WideRange()
	p := &planner.Problem{Cluster: planner.Cluster{Classes: []planner.NodeClass{
		{Name: "few", Model: "A", GPUs: 4, Count: 1, IdleW: 30, HostW: 20},
		{Name: "many", Model: "B", GPUs: 2, IdleW: 30, HostW: 20},
	}}}
	for _, seconds := range []float64{60, 600, 6000} {
		r := &dvfsmodel.Continuous{
			Params: dvfsmodel.Params{
				P0: 50, Gamma: 30, C: 110, D: 0.9 * seconds, Delta: 0.6, T0: 0.1 * seconds,
			}, Range: &wide,
		}
		p.Tasks = append(p.Tasks, planner.NewTask("a", planner.Option{Model: "A", GPUs: 1, Response: r}),
			planner.NewTask("b", planner.Option{Model: "B", GPUs: 1, Response: r}))
	}
	for i := range p.Tasks {
		p.Tasks[i].ID += string(rune('0' + i))
	}
	run := float64(bound.Lower(p).Run)
	if got := bound.NewDueDual(p, 1, 0).Value; !(math.Abs(got/run-1) < 1e-6) {
		t.Errorf("%v J, want what the tasks cost by themselves, %v J", got, run)
	}
}

// Where no two tasks fit on a node, and where one runs on when all others are due, what they leave of their
// nodes is idle: the bound is what the plan takes.
func TestNodesThatTasksKeepOnAreInTheBound(t *testing.T) {
	node := planner.NodeClass{Name: "node", Model: "A", GPUs: 4, IdleW: 30, HostW: 20}
	task := func(id string, gpus int, seconds, due float64) planner.Task {
		at := dvfsmodel.Point{Scaling: dvfsmodel.DefaultScaling(), Time: seconds, Power: 100}
		at.Energy = at.Power.Over(seconds)
		t := planner.NewTask(id, planner.Option{Model: "A", GPUs: gpus, Response: &dvfsmodel.Fixed{At: at}})
		t.Due = due
		return t
	}
	for _, c := range []struct {
		name  string
		tasks []planner.Task
		idle  float64 // GPU-seconds
	}{
		{"three of four GPUs each", []planner.Task{
			task("a", 3, 100, 250), task("b", 3, 200, 250), task("c", 3, 50, math.Inf(1)),
		}, 350},
		{"three of four GPUs beside one", []planner.Task{
			task("a", 3, 100, 250), task("b", 3, 200, 250), task("c", 1, 50, math.Inf(1)),
		}, 250},
		{"one that runs on", []planner.Task{
			task("long", 1, 1000, math.Inf(1)), task("a", 1, 100, 100), task("b", 2, 100, 100),
		}, 3 * 900},
	} {
		p := &planner.Problem{Cluster: planner.Cluster{Classes: []planner.NodeClass{node}}, Tasks: c.tasks}
		plan := &planner.Plan{Status: planner.Complete}
		want := c.idle * 50
		for i := range p.Tasks {
			o := &p.Tasks[i].Options[0]
			want += float64(o.GPUs) * 120 * o.Response.Default().Time
			plan.Assignments = append(plan.Assignments, planner.Assignment{
				Node: int32(i), Point: o.Response.Default(), End: o.Response.Default().Time,
			})
			plan.Nodes = append(plan.Nodes, planner.PlannedNode{})
		}
		if got := float64(bound.Of(p, plan).Value); math.Abs(got/want-1) > 1e-4 {
			t.Errorf("%s: %v J, want %v J", c.name, got, want)
		}
	}
}
