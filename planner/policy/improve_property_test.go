package policy_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/improve"
	"github.com/epplan/epplan/planner/policy"
)

// TestImproveNeverMakesAPlanWorse also says how often it finds something.
func TestImproveNeverMakesAPlanWorse(t *testing.T) {
	improvers := []planner.Improver{improve.Align{Moves: 2000}, improve.Retune{Moves: 2000}}
	better := make([]int, len(improvers))
	problems := checkMany(t, 3_000, func(t *rapid.T) {
		p, variant := drawProblem(t, atZero, atZero, atWholeSeconds, atAnyTime), drawVariant(t)
		if p.Mode == planner.Online {
			p.Mode = planner.Clairvoyant
		}
		names := policy.Names()
		plan := solve(t, p, names[rapid.IntRange(0, len(names)-1).Draw(t, "policy")]+variant)
		for i, improver := range improvers {
			improved, err := improver.Improve(context.Background(), p, plan, rand.New(rand.NewPCG(1, 1))) //nolint:gosec // not for secrets
			if err != nil {
				t.Fatal(err)
			}
			if err := planner.Check(p, improved); err != nil {
				t.Fatalf("%T: %v", improver, err)
			}
			now, before := p.Cost(improved), p.Cost(plan)
			late, lateBefore := len(improved.PastDue(p)), len(plan.PastDue(p))
			if late > lateBefore || late == lateBefore && len(improved.Misses) > len(plan.Misses) || len(improved.Unplaced) != len(plan.Unplaced) {
				t.Fatalf("%T: %d late, %d misses; before %d and %d", improver, late, len(improved.Misses), lateBefore, len(plan.Misses))
			}
			if late == lateBefore && len(improved.Misses) == len(plan.Misses) && now > before {
				t.Fatalf("%T: costs %v, before %v", improver, now, before)
			}
			if now < before*(1-1e-6) || late < lateBefore {
				better[i]++
			}
		}
	})
	least := []int{problems / 100, problems / 6} // few of the problems are of the kind that Align is for
	for i, n := range better {
		if n < least[i] {
			t.Errorf("%T: %d of %d plans got better, want more", improvers[i], n, problems)
		}
	}
	t.Logf("got better: %v of %d", better, problems)
}

func TestNoPlanCostsLessThanTheBound(t *testing.T) {
	complete, tight, extra := 0, 0, 0
	checkMany(t, 2_000, func(t *rapid.T) {
		p, variant := drawProblem(t, atZero, atZero, atWholeSeconds, atAnyTime), drawVariant(t)
		bound := planner.LowerBound(p)
		for _, name := range policy.Names() {
			plan := solve(t, p, name+variant)
			if plan.Status != planner.Complete {
				continue
			}
			if p.Mode != planner.Online {
				better, err := improve.Align{Moves: 300}.Improve(context.Background(), p, plan, rand.New(rand.NewPCG(1, 1))) //nolint:gosec // not for secrets
				if err != nil {
					t.Fatal(err)
				}
				plan = better
			}
			complete++
			gap := bound.Gap(plan.Ledger.Total())
			if gap < -1e-7 {
				t.Fatalf("%s: %v J, the bound says %+v", name+variant, plan.Ledger.Total(), bound)
			}
			if gap < 1e-3 {
				tight++
				if bound.Extra > 0 {
					extra++
				}
			}
		}
	})
	if complete < 1000 || tight < 100 || extra < 10 {
		t.Errorf("%d complete plans, %d within 0.1 %% of the bound, %d of them thanks to its extra terms: too few to tell", complete, tight, extra)
	}
	t.Logf("%d complete plans, %d within 0.1 %% of the bound, %d of them thanks to its extra terms", complete, tight, extra)
}
