package policy_test

import (
	"context"
	"testing"

	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

// TestLargeBatchesKeepTheirPromisesAndTakeNoMoreThanNamedPolicies draws batches with deadlines and jobs over
// nodes, by seed with cores, partitions or running jobs, too. Plans are searched for briefly, so that what
// they begin with counts.
func TestLargeBatchesKeepTheirPromisesAndTakeNoMoreThanNamedPolicies(t *testing.T) {
	t.Parallel()
	const most = 1.005 // of the energy of another plan that keeps as much
	batches := shareddata.Rounds[uint64](1, 2, 40)
	params := policy.DefaultParams()
	params.Effort = 0.02
	for seed := uint64(500); seed < 500+batches; seed++ {
		p := drawBatchOf(t, seed, 300, 2000)
		widen(t, p, seed)
		ours, err := policy.Parse(policy.DefaultName(planner.Offline), params)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := policy.SolveChecked(context.Background(), p, ours, nil)
		if err != nil {
			t.Fatal(err)
		}
		rank := p.RankOf(plan)
		for _, name := range []string{"baseline", "edl", "marginal", policy.EasyDefault} {
			other, _ := pastDue(t, p, name)
			than := p.RankOf(other)
			switch kept := than.Unplaced <= rank.Unplaced && than.Late <= rank.Late; {
			case name == "baseline" && (rank.Unplaced > than.Unplaced || rank.Late > than.Late):
				t.Errorf("seed %d, %d jobs: %d left out and %d late, by %s %d and %d", seed, len(p.Tasks),
					rank.Unplaced, rank.Late, name, than.Unplaced, than.Late)
			case kept && plan.Ledger.Total() > most*other.Ledger.Total():
				t.Errorf("seed %d, %d jobs: %.2f %% more energy than by %s", seed, len(p.Tasks),
					100*float64(plan.Ledger.Total()/other.Ledger.Total()-1), name)
			}
		}
	}
}
