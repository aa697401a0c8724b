package check_test

import (
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/plannertest"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
)

// cappedProblem is three jobs whose runs are cheapest under a cap within their limits, on GPUs that
// take caps from 150 W on.
func cappedProblem(t *testing.T) *planner.Problem {
	t.Helper()
	p := &planner.Problem{Cluster: planner.Cluster{Classes: []planner.NodeClass{
		{Name: "one", Model: "A", GPUs: 2, Count: 2, IdleW: 30, TurnOn: 90},
	}}}
	for _, id := range []string{"a", "b", "c"} {
		task := plannertest.Job(id, plannertest.Capped(t))
		task.Options[0].Caps = dvfsmodel.CapRange{Min: 150, Max: 300}
		task.Limit = 1.08 * task.Options[0].Response.Default().Time
		p.Tasks = append(p.Tasks, task)
	}
	return p
}

func TestPlansSetCapsAndTheCheckTakesThem(t *testing.T) {
	for _, policy := range []string{
		"edl", "edl-align", "replan", "late-binding", "marginal", "constant", "edf-bf", "easy",
	} {
		plan := plannertest.Solve(t, cappedProblem(t), policy) // checks it
		for i := range plan.Assignments {
			if a := &plan.Assignments[i]; a.Point.Cap == 0 && policy != "easy" {
				t.Errorf("%s: job %d runs at %+v, want it under a cap", policy, i, a.Point)
			}
		}
	}
}

func TestTheCheckFindsCapsThatCanNotBeSet(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*planner.Task, *planner.Assignment)
		want  []check.Kind
	}{
		{"as it is", func(*planner.Task, *planner.Assignment) {}, nil},
		{"GPUs that take no caps", func(t *planner.Task, _ *planner.Assignment) {
			t.Options[0].Caps = dvfsmodel.CapRange{}
		}, kinds(check.Cap)},
		{"below the least cap", func(t *planner.Task, a *planner.Assignment) {
			t.Options[0].Caps.Min = a.Point.Cap + 1
		}, kinds(check.Cap)},
		{"the default limit as a cap", func(t *planner.Task, a *planner.Assignment) {
			t.Options[0].Caps.Max = a.Point.Cap
		}, kinds(check.Cap)},
		{"another cap, with the time and power of the first", func(_ *planner.Task, a *planner.Assignment) {
			a.Point.Cap = 150
		}, kinds(check.Model)},
		{"no cap, with the time and power of one", func(_ *planner.Task, a *planner.Assignment) {
			a.Point.Cap = 0
		}, kinds(check.Model)},
		{"a model that knows nothing of caps", func(t *planner.Task, a *planner.Assignment) {
			t.Options[0].Response = &dvfsmodel.Fixed{At: dvfsmodel.Point{
				Scaling: a.Point.Scaling, Core: a.Point.Core, Mem: a.Point.Mem, Time: a.Point.Time,
				Power: a.Point.Power, Energy: a.Point.Energy,
			}}
		}, kinds(check.Cap)},
	} {
		p := cappedProblem(t)
		plan := plannertest.Solve(t, p, "edl")
		c.spoil(&p.Tasks[0], &plan.Assignments[0])
		if got := found(t, p, plan); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %v, want %v", c.name, got, c.want)
		}
	}
}
