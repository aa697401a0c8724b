package planner_test

import (
	"context"
	"math"
	"testing"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/tune"
)

func soonestPlan(t *testing.T, p *planner.Problem) *planner.Plan {
	t.Helper()
	plan, err := planner.Solve(context.Background(), p,
		&planner.Policy{
			Name: "test", Tune: tune.None, Place: place.Soonest, Pick: pick.FCFS, Park: park.DRS{},
		}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestAJobOnSeveralNodesPaysForAllOfThem(t *testing.T) {
	p := twoByFour()
	plan := soonestPlan(t, p)
	if err := check.Plan(p, plan); err != nil {
		t.Fatal(err)
	}
	a := &plan.Assignments[0]
	if len(a.More) != 1 || a.GPUCount() != 8 || a.Energy(&p.Tasks[0]) != 8000 || a.Power(&p.Tasks[0]) != 800 {
		t.Errorf("on %+v and %+v with %v J at %v W, want 4 GPUs of 2 nodes, 8,000 J and 800 W",
			a.GPUs.Indexes(), a.More, a.Energy(&p.Tasks[0]), a.Power(&p.Tasks[0]))
	}
	// Two full nodes, and one with three idle GPUs, all for 10 s.
	if l := &plan.Ledger; l.Run != 9000 || l.Idle != 300 || l.Host != 600 || l.Nodes[0].Run != 4000 ||
		l.Nodes[1].Run != 4000 {
		t.Errorf("ledger %+v", l)
	}
	if got := plan.GPUSeconds(p); got != 90 {
		t.Errorf("%v GPU-seconds, want 90", got)
	}
	if lower := bound.Lower(p); math.Abs(float64(lower.Run)-9450) > 1e-6 {
		t.Errorf("bound %+v, want 9,450 J of runs and hosts", lower)
	}
}

func TestAJobWaitsUntilItsNodesAreFreeTogether(t *testing.T) {
	p := twoByFour()
	p.Cluster.Classes[0].Count = 2
	p.Tasks[0], p.Tasks[1] = p.Tasks[1], p.Tasks[0]
	plan := soonestPlan(t, p)
	if err := check.Plan(p, plan); err != nil {
		t.Fatal(err)
	}
	if a := &plan.Assignments[1]; a.Start != 10 || len(a.More) != 1 {
		t.Errorf("starts at %v s on %d nodes, want 10 s, when both are free", a.Start, 1+len(a.More))
	}
}

func TestAJobThatTooFewNodesHoldIsNamed(t *testing.T) {
	p := twoByFour()
	p.Cluster.Classes[0].Count = 1
	plan := soonestPlan(t, p)
	if err := check.Plan(p, plan); err != nil {
		t.Fatal(err)
	}
	if len(plan.Unplaced) != 1 ||
		plan.Unplaced[0].Why !=
			"no 2 nodes of a kind have the GPUs, CPUs and memory that it asks for together: it asks for 4 GPUs, "+
				"8 CPUs and 32 GiB on each of 2 nodes; a has 1 node of 4 GPUs, 12 CPUs and 40 GiB" {
		t.Errorf("unplaced %+v", plan.Unplaced)
	}
}

func TestAJobThatRunsOnSeveralNodesHoldsThemAtThePresent(t *testing.T) {
	p := twoByFour()
	p.Mode, p.Cluster.Classes[0].Count = planner.Online, 2
	p.Snapshot = &planner.Snapshot{Now: 5, Running: []planner.RunningTask{{Task: 0, Start: 0, End: 10}}}
	plan, err := planner.Solve(context.Background(), p,
		&planner.Policy{
			Name: "test", Tune: tune.None, Place: place.AtOnce, Pick: pick.FCFS, Park: park.DRS{},
		},
		nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := plan.Assignments; len(a[0].More) != 1 || a[1].Start != 10 {
		t.Errorf("%+v", a)
	}
}
