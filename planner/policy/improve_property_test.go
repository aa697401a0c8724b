package policy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/improve"
	"github.com/epplan/epplan/planner/policy"
)

// TestImproveNeverMakesAPlanWorse also says how often it finds something.
func TestImproveNeverMakesAPlanWorse(t *testing.T) {
	improvers := []planner.Improver{improve.Align{Moves: 2000}, improve.Retune{Moves: 2000}}
	better := make([]int, len(improvers))
	problems := checkMany(t, 1_000, 2_000, func(t *rapid.T) {
		p, variant := drawProblem(t, atZero, atZero, atWholeSeconds, atAnyTime), drawVariant(t)
		if p.Mode == planner.Online {
			p.Mode = planner.Clairvoyant
		}
		names := policy.Names()
		plan := solve(t, p, names[rapid.IntRange(0, len(names)-1).Draw(t, "policy")]+variant)
		for i, improver := range improvers {
			if notWorse(t, p, plan, improvedBy(t, p, plan, improver)) {
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

// notWorse checks an improved plan, and reports whether it is better than the one it
// was made of.
func notWorse(t *rapid.T, p *planner.Problem, plan, improved *planner.Plan) (better bool) {
	if err := check.Plan(p, improved); err != nil {
		t.Fatal(err)
	}
	now, before := p.Cost(improved), p.Cost(plan)
	late, lateBefore := len(improved.PastDue(p)), len(plan.PastDue(p))
	if late > lateBefore || late == lateBefore && len(improved.Misses) > len(plan.Misses) ||
		len(improved.Unplaced) != len(plan.Unplaced) {
		t.Fatalf("%d late, %d misses; before %d and %d", late, len(improved.Misses), lateBefore,
			len(plan.Misses))
	}
	if late == lateBefore && len(improved.Misses) == len(plan.Misses) && now > before {
		t.Fatalf("costs %v, before %v", now, before)
	}
	return now < before*(1-1e-6) || late < lateBefore
}

// improvedBy returns a plan after some improvers, one after the other.
func improvedBy(t *rapid.T, p *planner.Problem, plan *planner.Plan, all ...planner.Improver) *planner.Plan {
	for _, improver := range all {
		better, err := improver.Improve(context.Background(), p, plan, rand.New(rand.NewPCG(1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		plan = better
	}
	return plan
}

func TestNoPlanCostsLessThanTheBound(t *testing.T) {
	complete, tight, extra, inTime := 0, 0, 0, 0
	problems := checkMany(t, 300, 1_000, func(t *rapid.T) {
		p, variant := drawProblem(t, atZero, atZero, atWholeSeconds, atAnyTime), drawVariant(t)
		lower := bound.Lower(p)
		for _, name := range policy.Names() {
			plan := solve(t, p, name+variant)
			if plan.Status != planner.Complete {
				continue
			}
			if p.Mode != planner.Online {
				plan = improvedBy(t, p, plan, improve.Align{Moves: 300}, improve.Retune{Moves: 1000})
			}
			complete++
			if of := bound.Of(p, plan); of.Gap(plan.Ledger.Total()) < -1e-7 {
				t.Fatalf("%s: %v J, in time, the bound says %+v", name+variant, plan.Ledger.Total(), of)
			} else if of.Value > lower.Value*(1+1e-6) {
				inTime++
			}
			gap := lower.Gap(plan.Ledger.Total())
			if gap < -1e-7 {
				t.Fatalf("%s: %v J, the bound says %+v", name+variant, plan.Ledger.Total(), lower)
			}
			if gap < 1e-3 {
				tight++
				if lower.Extra > 0 {
					extra++
				}
			}
		}
	})
	told := fmt.Sprintf("%d complete plans, %d within 0.1 %% of the bound, %d of them thanks to its extra "+
		"terms; %d bounds are higher by due times",
		complete, tight, extra, inTime)
	if complete < problems || tight < problems/10 || extra < problems/50 || inTime < problems/50 {
		t.Errorf("%s: too few to tell", told)
	}
	t.Log(told)
}
