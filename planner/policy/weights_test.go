package policy_test

import (
	"context"
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

// goals are objectives from energy alone to time alone.
var goals = []dvfsmodel.Objective{
	{EnergyWeight: 1},
	{EnergyWeight: 1, TimeWeight: 10},
	{EnergyWeight: 1, TimeWeight: 50},
	{EnergyWeight: 1, TimeWeight: 100},
	{EnergyWeight: 1, TimeWeight: 500},
	{EnergyWeight: 1, TimeWeight: 5000},
	{EnergyWeight: 1, DelayPower: 1},
	{EnergyWeight: 1, DelayPower: 2},
}

// The default plan for one objective is hardly better by another one than the default
// plan for that: of plans that are all in time, each is the best by its own.
func TestThePlanForAnObjectiveIsTheBestByIt(t *testing.T) {
	const most, meanMost = 0.03, 0.003 // search is by chance
	batches := uint64(3)
	if testing.Short() {
		batches = 1
	}
	compared, sum, worst := 0, 0.0, 0.0
	for seed := range batches {
		p := drawBatch(t, 100+seed)
		plans := make([]*planner.Plan, len(goals))
		for i, goal := range goals {
			p.Objective = goal
			plans[i] = bestPlan(t, p)
		}
		for i, goal := range goals {
			p.Objective = goal
			own, best := p.Cost(plans[i]), math.Inf(1)
			late := len(plans[i].PastDue(p))
			for _, other := range plans {
				if len(other.PastDue(p)) == late {
					best = min(best, p.Cost(other))
				}
			}
			lost := own/best - 1
			compared, sum, worst = compared+1, sum+lost, max(worst, lost)
			if lost > most {
				t.Errorf("seed %d, %d jobs, %s: %.2f %% above the plan for another objective", seed, len(p.Tasks), p.CostUnit(), 100*lost)
			}
		}
	}
	t.Logf("%d plans: %.3f %% above the best by their objectives in the mean, %.2f %% at most", compared, 100*sum/float64(compared), 100*worst)
	if sum/float64(compared) > meanMost {
		t.Errorf("%.2f %% above the best plan by their objectives in the mean, want at most %.1f %%", 100*sum/float64(compared), 100*meanMost)
	}
}

// bestPlan is the default plan.
func bestPlan(tb testing.TB, p *planner.Problem) *planner.Plan {
	tb.Helper()
	pol, err := policy.Parse(policy.Best(p.Mode), policy.DefaultParams())
	if err != nil {
		tb.Fatal(err)
	}
	plan, err := policy.Checked(context.Background(), p, pol, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return plan
}
