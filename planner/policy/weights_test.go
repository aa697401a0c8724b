package policy_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/shareddata"
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

// lostBy is by objective how far the default plan is above the best of the default plans
// for the others, as a part, of those with as many jobs past due.
func lostBy(tb testing.TB, p *planner.Problem) []float64 {
	tb.Helper()
	plans, lost := make([]*planner.Plan, len(goals)), make([]float64, len(goals))
	for i, goal := range goals {
		p.Objective = goal
		plans[i] = bestPlan(tb, p)
	}
	for i, goal := range goals {
		p.Objective = goal
		late, best := len(plans[i].PastDue(p)), math.Inf(1)
		for _, other := range plans {
			if len(other.PastDue(p)) == late {
				best = min(best, p.Cost(other))
			}
		}
		lost[i] = p.Cost(plans[i])/best - 1
	}
	return lost
}

// The default plan for one objective is hardly better by another one than the default
// plan for that: of plans that are all in time, each is the best by its own.
func TestThePlanForAnObjectiveIsTheBestByIt(t *testing.T) {
	t.Parallel()
	const most, meanMost = 0.03, 0.003 // search is by chance
	batches := shareddata.Rounds[uint64](1, 1, 3)
	var all []float64
	for seed := range batches {
		p := drawBatch(t, 100+seed)
		for i, lost := range lostBy(t, p) {
			if all = append(all, lost); lost > most {
				p.Objective = goals[i]
				t.Errorf("seed %d, %d jobs, %s: %.2f %% above the plan for another objective", seed,
					len(p.Tasks), p.CostUnit(), 100*lost)
			}
		}
	}
	mean, _ := meanOf(all)
	t.Logf("%d plans: %.3f %% above the best by their objectives in the mean, %.2f %% at most", len(all),
		100*mean, 100*slices.Max(all))
	if mean > meanMost {
		t.Errorf("%.2f %% above the best plan by their objectives in the mean, want at most %.1f %%",
			100*mean, 100*meanMost)
	}
}

// BenchmarkWeightFigures prints how far plans are above the best by their objectives, over
// 50 drawn batches.
func BenchmarkWeightFigures(b *testing.B) {
	by := make([][]float64, len(goals))
	for seed := range uint64(50) {
		for i, lost := range lostBy(b, drawBatch(b, 40_000+seed)) {
			by[i] = append(by[i], 100*lost)
		}
	}
	for i, lost := range by {
		mean, half := meanOf(lost)
		beyond := 0
		for _, l := range lost {
			if l > 0.3 {
				beyond++
			}
		}
		p := planner.Problem{Objective: goals[i]}
		b.Logf("%s: %.3f ± %.3f %% above the best in the mean, %.2f %% at most, %d above .3 %%", p.CostUnit(),
			mean, half, slices.Max(lost), beyond)
	}
}

// bestPlan returns the best plan by the objective alone.
func bestPlan(tb testing.TB, p *planner.Problem) *planner.Plan {
	tb.Helper()
	name := policy.SearchPolicy
	if p.Mode == planner.Online {
		name = policy.DefaultName(p.Mode)
	}
	pol, err := policy.Parse(name, policy.DefaultParams())
	if err != nil {
		tb.Fatal(err)
	}
	plan, err := policy.SolveChecked(context.Background(), p, pol, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return plan
}
