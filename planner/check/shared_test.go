package check_test

import (
	"slices"
	"testing"

	"github.com/epplan/epplan/internal/testkit/plannertest"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/sharing"
)

// sharedCorruptions spoil what a plan says of shared GPUs.
var sharedCorruptions = []struct {
	name  string
	spoil func(p *planner.Problem, plan *planner.Plan)
	want  check.Kind
}{
	{"a clock that can't be set", func(_ *planner.Problem, plan *planner.Plan) {
		plan.Shared.ClockIntervals[0].MHz = 1126
	}, check.Clocks},
	{"another clock", func(_ *planner.Problem, plan *planner.Plan) {
		plan.Shared.ClockIntervals[0].MHz -= 45
	}, check.Rate},
	{"a clock too short", func(_ *planner.Problem, plan *planner.Plan) {
		plan.Shared.ClockIntervals[0].To -= 1e-3
	}, check.Sharing},
	{"a clock gone", func(_ *planner.Problem, plan *planner.Plan) {
		plan.Shared.ClockIntervals = plan.Shared.ClockIntervals[1:]
	}, check.Ledger},
	{"an end too early", func(_ *planner.Problem, plan *planner.Plan) {
		a := &plan.Assignments[1]
		a.End -= 0.01
		a.Point.Time -= 0.01
	}, check.Rate},
	{"one slowed that isn't listed", func(p *planner.Problem, _ *planner.Plan) {
		p.Tasks[1].Profile.Kappa = 1
	}, check.Slowed},
	{"one listed that isn't slowed", func(_ *planner.Problem, plan *planner.Plan) {
		plan.Shared.Slowed = []int{1}
	}, check.Slowed},
	{"too much memory", func(p *planner.Problem, _ *planner.Plan) {
		p.Tasks[1].Profile.MemGB = 30
	}, check.Memory},
	{"no profile", func(p *planner.Problem, _ *planner.Plan) {
		p.Tasks[1].Profile = nil
	}, check.Sharing},
	{"not listed as sharing", func(_ *planner.Problem, plan *planner.Plan) {
		plan.Shared.Tasks = plan.Shared.Tasks[:1]
	}, check.Overlap},
	{"energy of nobody", func(_ *planner.Problem, plan *planner.Plan) {
		plan.Assignments[0].Point.Energy *= 0.99
	}, check.Model},
	{"a GPU that isn't there", func(_ *planner.Problem, plan *planner.Plan) {
		plan.Shared.ClockIntervals[0].GPU = 7
	}, check.Sharing},
	{"a node that isn't there", func(_ *planner.Problem, plan *planner.Plan) {
		plan.Shared.ClockIntervals[0].Node = 7
	}, check.Shape},
	{"a job that isn't there", func(_ *planner.Problem, plan *planner.Plan) {
		plan.Shared.Tasks[1] = 9
	}, check.Sharing},
}

func TestCheckFindsWhatIsWrongWithSharedGPUs(t *testing.T) {
	for _, c := range sharedCorruptions {
		t.Run(c.name, func(t *testing.T) {
			p := &planner.Problem{Mode: planner.Online, Cluster: plannertest.SharedCluster(1, 32)}
			p.Tasks = []planner.Task{
				plannertest.Profiled("a", 0, 100, 4, 1.2, 50, 40), plannertest.Profiled("b", 10, 30, 4, 1.2, 40, 50),
			}
			plan := plannertest.Solve(t, p, "cats-safe,clocks=lowest")
			c.spoil(p, plan)
			if got := found(t, p, plan); !slices.Contains(got, c.want) {
				t.Errorf("found %v, want %v among them", got, c.want)
			}
		})
	}
}

func TestCheckCountsContentionByTheCurve(t *testing.T) {
	curve := &sharing.Curve{Exponent: 1.5, ByTask: .3, ByMemory: .2}
	for _, c := range []struct {
		name  string
		plan  *sharing.Curve // by which it is made
		spoil func(*planner.Plan)
		want  check.Kind
	}{
		{"made by load alone", nil, func(*planner.Plan) {}, check.Rate},
		{"one slowed that isn't listed", curve, func(plan *planner.Plan) {
			plan.Shared.Slowed = nil
		}, check.Slowed},
		{
			"by another number of tasks", &sharing.Curve{Exponent: 1.5, ByTask: .2, ByMemory: .2},
			func(*planner.Plan) {}, check.Rate,
		},
		{
			"by another part of the memory", &sharing.Curve{Exponent: 1.5, ByTask: .3, ByMemory: .1},
			func(*planner.Plan) {}, check.Rate,
		},
	} {
		p := plannertest.Curved(c.plan, 1.2, 60, 50)
		plan := plannertest.Solve(t, p, "hotcloud,place=share-cats")
		if c.plan == curve && len(plan.Shared.Slowed) == 0 {
			t.Fatalf("%s: nobody is slowed down too much", c.name)
		}
		c.spoil(plan)
		p.Cluster.Sharing.Contention = curve
		if got := found(t, p, plan); !slices.Contains(got, c.want) {
			t.Errorf("%s: found %v, want %v among them", c.name, got, c.want)
		}
	}
}
