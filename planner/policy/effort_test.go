package policy_test

import (
	"context"
	"testing"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/policy"
)

// evaluations returns the work of the search of a policy at an effort: the total that it tells
// of.
func evaluations(t *testing.T, p *planner.Problem, name string, effort float64) (total int) {
	t.Helper()
	params := policy.DefaultParams()
	params.Effort = effort
	params.Queue.Look.Futures = 2
	pol, err := policy.Parse(name, params)
	if err != nil {
		t.Fatal(err)
	}
	w := &planner.Monitor{OnProgress: func(at planner.Progress) {
		if at.Doing == planner.Searching {
			total = max(total, at.Total)
		}
	}}
	ctx, end := w.Begin(t.Context())
	defer end()
	if _, err := policy.SolveChecked(ctx, p, pol, nil); err != nil {
		t.Fatal(err)
	}
	return total
}

func TestEffortActsOnExactlyThePoliciesThatTakeIt(t *testing.T) {
	t.Parallel()
	p := drawBatch(t, 3)
	for _, name := range policy.Names() {
		usual, little := evaluations(t, p, name, 0), evaluations(t, p, name, 0.01)
		if acts := usual != little; acts != policy.AcceptsNumber(name, "effort") {
			t.Errorf("%s tries %d moves, and %d with a hundredth of the effort; it takes the option: %t",
				name, usual, little, !acts)
		}
	}
}

func TestConstantClocksWhoseSearchIsCutAreNoReference(t *testing.T) {
	p := drawBatch(t, 3)
	whole, err := policy.NewReferences(t.Context(), p, policy.DefaultParams())
	if err != nil || whole.Constant == nil || whole.Easy == nil {
		t.Fatalf("%+v, %v", whole, err)
	}
	ctx, cut := context.WithCancelCause(t.Context())
	cut(planner.ErrCut)
	some, err := policy.NewReferences(ctx, p, policy.DefaultParams())
	if err != nil || some.Constant != nil || some.FCFS == nil || some.Easy == nil {
		t.Errorf("%+v, %v: want all but constant clocks", some, err)
	}
}

// TestNobodyWaitsForAPlanThatIsAsGoodAsAtItsBound, unless more effort is asked for.
func TestNobodyWaitsForAPlanThatIsAsGoodAsAtItsBound(t *testing.T) {
	p := drawOffline(t, 5, 150)
	if len(p.Cluster.Classes) != 1 {
		t.Fatalf("%d kinds of nodes, want one, whose bound is near", len(p.Cluster.Classes))
	}
	k := &p.Cluster.Classes[0]
	k.Count, k.IdleW, k.TurnOnDelay = 20, 5, 0
	for effort, cut := range map[float64]bool{0: false, 1: false, 10: true} {
		params := policy.DefaultParams()
		params.Effort = effort
		pol, err := policy.Parse(policy.SearchPolicy, params)
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := (&planner.Monitor{MaxWork: 7_000_000}).Begin(t.Context()) // half of what a search does
		defer end()
		plan, err := policy.SolveChecked(ctx, p, pol, nil)
		if err != nil {
			t.Fatal(err)
		}
		lower := bound.Of(p, plan)
		if gap := lower.Gap(plan.Ledger.Total()); plan.Cut != cut || !cut && gap > 1.5e-3 {
			t.Errorf("effort %v: cut %t, %.4f %% above the bound, want %t and at most .15 %%", effort,
				plan.Cut, 100*gap, cut)
		}
	}
}
