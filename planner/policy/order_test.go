package policy_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/policy"
)

func TestJobsThatArriveTogetherGoByIDWithNumbersBySize(t *testing.T) {
	minute := &dvfsmodel.Fixed{At: dvfsmodel.Point{
		Scaling: dvfsmodel.DefaultScaling(), Time: 60, Power: 100, Energy: 6000,
	}}
	p := &planner.Problem{
		Cluster: planner.Cluster{
			Classes: []planner.NodeClass{{Name: "one", Model: "V100", GPUs: 1, Count: 1}},
		},
	}
	for _, id := range []string{"job-10", "job-9", "b", "job-009", "job", "a2", "a10", ""} {
		p.Tasks = append(p.Tasks,
			planner.NewTask(id, planner.Option{Model: "V100", GPUs: 1, Response: minute}))
	}
	references, err := policy.NewReferences(t.Context(), p, policy.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	plan := references.FCFS
	order := []int{0, 1, 2, 3, 4, 5, 6, 7}
	got := make([]string, 0, len(order))
	slices.SortFunc(order, func(a, b int) int {
		return int(plan.Assignments[a].Start - plan.Assignments[b].Start)
	})
	for _, i := range order {
		got = append(got, p.Tasks[i].ID)
	}
	if want := []string{"", "a2", "a10", "b", "job", "job-009", "job-9", "job-10"}; !slices.Equal(got, want) {
		t.Errorf("started %q, want %q", got, want)
	}
	if err := check.Plan(p, plan); err != nil {
		t.Error(err)
	}
}

func TestAnErrorAboutANodeClassIsAboutTheOneThatWasGiven(t *testing.T) {
	wide := planner.NodeClass{Name: "a", Model: "V100", GPUs: 32, Count: 1}
	p := &planner.Problem{
		Cluster: planner.Cluster{Classes: []planner.NodeClass{
			{Name: "b", Model: "V100", GPUs: 4, Count: 1}, wide,
		}},
	}
	minute := &dvfsmodel.Fixed{At: dvfsmodel.Point{
		Scaling: dvfsmodel.DefaultScaling(), Time: 60, Power: 100, Energy: 6000,
	}}
	p.Tasks = []planner.Task{planner.NewTask("j", planner.Option{Model: "V100", GPUs: 1, Response: minute})}
	fgd, err := policy.Parse("fgd", policy.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	_, err = policy.SolveChecked(t.Context(), p, fgd, nil)
	if class, ok := errors.AsType[*planner.ClassError](err); !ok || class.Class != 1 {
		t.Errorf("error %v of class %+v, want class 1", err, class)
	}
}
