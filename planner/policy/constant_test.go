package policy_test

import (
	"cmp"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

// compareWorth orders plans as policy constant does, the better one first.
func compareWorth(p *planner.Problem, a, b *planner.Plan) int {
	return cmp.Or(
		cmp.Compare(len(a.Unplaced), len(b.Unplaced)), cmp.Compare(len(a.PastDue(p)), len(b.PastDue(p))),
		cmp.Compare(len(a.Misses), len(b.Misses)), cmp.Compare(p.Cost(a), p.Cost(b)))
}

// TestCoordinateDescentFindsWhatAllPairsHold draws small batches on one or two
// GPU models of ten clock pairs each, of which every choice can be tried.
func TestCoordinateDescentFindsWhatAllPairsHold(t *testing.T) {
	cases := shareddata.Rounds[uint64](40, 50, 200)
	equal, kept, excess, most := 0, 0, 0.0, 0.0
	for seed := range cases {
		p := drawBatch(t, 1000+seed)
		p.Tasks = p.Tasks[:8+seed%13]
		for i := range p.Cluster.Classes {
			p.Cluster.Classes[i].Count = 1
		}
		all, err := policy.EnumerateClocks(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		found, err := policy.DescendClocks(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		switch c := compareWorth(p, found, all); {
		case c < 0:
			t.Errorf("seed %d: coordinate descent finds what isn't there: %v J, all choices %v J", seed,
				p.Cost(found), p.Cost(all))
		case c == 0:
			equal++
		}
		if len(found.Unplaced) == len(all.Unplaced) && len(found.PastDue(p)) == len(all.PastDue(p)) &&
			len(found.Misses) == len(all.Misses) {
			kept++
			more := p.Cost(found)/p.Cost(all) - 1
			excess, most = excess+more, max(most, more)
		}
	}
	t.Logf("the same as all choices in %d of %d, as many promises in %d, there %.3f %% more on average, "+
		"%.2f %% at most",
		equal, cases, kept, 100*excess/float64(kept), 100*most)
	if equal < int(cases)*4/5 || kept < int(cases)*19/20 || excess/float64(kept) > 0.02 {
		t.Error("want the same in four of five, as many promises in 19 of 20, and 2 % more on " +
			"average at most")
	}
}

func TestConstantClocksAreOnePairPerGPUModelAndNeverWorseThanDefaultClocks(t *testing.T) {
	t.Parallel()
	slower := 0
	for seed := range shareddata.Rounds[uint64](6, 8, 20) {
		p := drawBatch(t, seed)
		plan, _ := pastDue(t, p, policy.Constant)
		base, _ := pastDue(t, p, "baseline")
		if compareWorth(p, plan, base) > 0 {
			t.Errorf("seed %d: worse than first come, first served at default clocks", seed)
		}
		for i := range plan.Assignments {
			a := &plan.Assignments[i]
			if a.Node < 0 {
				continue
			}
			model := p.Cluster.Classes[plan.Nodes[a.Node].Class].Model
			if at := plan.Clocks[model]; at.Core == 0 || a.Point.Core != at.Core || a.Point.Mem != at.Mem ||
				a.Reason.Clocks != planner.ClocksConstant {
				t.Errorf("seed %d: task %d runs at %v/%v MHz on %s, all do at %v/%v (%v)", seed, i,
					a.Point.Core, a.Point.Mem, model, at.Core, at.Mem, a.Reason)
			}
		}
		if plan.Clocks["A"].Core < 1400 {
			slower++
		}
	}
	if slower < 3 {
		t.Errorf("clocks are below the default in %d of 20 batches, want it more often", slower)
	}
}

func TestConstantClocksLeaveFixedPointsAndSharesAlone(t *testing.T) {
	p := drawBatch(t, 3)
	at := p.Tasks[0].Options[0].Response.Default()
	for j := range p.Tasks[0].Options {
		p.Tasks[0].Options[j].Response = &dvfsmodel.Fixed{At: at}
		p.Tasks[1].Options[j].GPUs = 1
	}
	p.Tasks[1].Share = 0.5
	plan, _ := pastDue(t, p, policy.Constant)
	if a := &plan.Assignments[0]; a.Reason.Clocks != planner.ClocksNoModel || a.Point != at {
		t.Errorf("without a model: %+v, want %+v", a, at)
	}
	if a := &plan.Assignments[1]; a.Reason.Clocks != planner.ClocksShared || a.Point.Core != 1400 {
		t.Errorf("part of a GPU: %+v, want default clocks", a)
	}
}

func TestOnlineConstantClocksAreTheBestInHindsightAndPlacedAsJobsArrive(t *testing.T) {
	chosen := 0
	for seed := range uint64(6) {
		p := drawBatch(t, 40+seed)
		p.Mode = planner.Online
		for i := range p.Tasks {
			t := &p.Tasks[i]
			t.Arrival = 600 * float64(i)
			t.Due, t.Deadline = t.Due+t.Arrival, t.Deadline+t.Arrival
		}
		plan, _ := pastDue(t, p, policy.Constant)
		for _, other := range []string{"baseline", "marginal,clocks=default", policy.EasyDefault} {
			if base, _ := pastDue(t, p, other); compareWorth(p, plan, base) > 0 {
				t.Errorf("seed %d: worse than %s", seed, other)
			}
		}
		if plan.Clocks["A"].Core != 1400 {
			chosen++
		}
	}
	if chosen == 0 {
		t.Error("clocks are never other than the default ones")
	}
}

// From the present on, and with run times that turn out otherwise, there is nothing
// to look back at.
func TestConstantClocksOfAQueueAtWorkAreThoseThatCostTheTasksLeast(t *testing.T) {
	p := drawBatch(t, 3)
	p.Mode = planner.Online
	pol, err := policy.Parse(policy.Constant, policy.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	p.Snapshot = &planner.Snapshot{}
	plan, err := policy.Solve(t.Context(), p, pol, nil)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Clocks != nil {
		t.Errorf("the clocks were looked for: %v", plan.Clocks)
	}
	for i := range plan.Assignments {
		if a := &plan.Assignments[i]; a.Node >= 0 && a.Reason.Clocks != planner.ClocksConstant {
			t.Errorf("task %d: %v", i, a.Reason)
		}
	}
}
