package policy_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/policy"
)

func TestWhereNodesNeverSleepTheSearchFindsNoWorseThanFirstComeFirstServedWithAllNodesOn(t *testing.T) {
	better := 0
	problems := checkMany(t, 200, 400, func(t *rapid.T) {
		p := drawProblem(t, atZero, atWholeSeconds, atAnyTime)
		if p.Mode == planner.Online {
			p.Mode = planner.Clairvoyant
		}
		name := rapid.SampledFrom([]string{"edl-align", "constant"}).Draw(t, "policy")
		plan := solve(t, p, name+",park=never")
		if err := check.Plan(p, plan); err != nil {
			t.Fatal(err)
		}
		params := policy.DefaultParams()
		params.AlwaysOn = true
		against, err := policy.NewReferences(t.Context(), p, params)
		if err != nil {
			t.Fatal(err)
		}
		allOn(t, p, plan)
		allOn(t, p, against.FCFS)
		if now, before := p.RankOf(plan), p.RankOf(against.FCFS); now.Compare(before) > 0 {
			t.Fatalf("%s %v: %+v, first come, first served %+v", name, p.Mode, now, before)
		} else if now.Compare(before) < 0 {
			better++
		}
	})
	if better < problems/3 {
		t.Errorf("%d of %d plans are better than first come, first served, want more", better, problems)
	}
}

// allOn fails if a node sleeps before the last job ends, or a node of a limited class is left out.
func allOn(t *rapid.T, p *planner.Problem, plan *planner.Plan) {
	t.Helper()
	end, count := 0.0, make([]int, len(p.Cluster.Classes))
	for i := range plan.Assignments {
		if plan.Assignments[i].Node >= 0 {
			end = max(end, plan.Assignments[i].End)
		}
	}
	for i, n := range plan.Nodes {
		count[n.Class]++
		if len(n.On) != 1 || n.On[0].From != 0 || n.On[0].To != end {
			t.Fatalf("%s: node %d is on %v, want all the time until %v s", plan.Policy, i, n.On, end)
		}
	}
	for class, k := range p.Cluster.Classes {
		if k.Count > 0 && count[class] != k.Count {
			t.Fatalf("%s: %d nodes of class %s, want all %d", plan.Policy, count[class], k.Name, k.Count)
		}
	}
}
