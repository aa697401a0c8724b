package policy

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/improve"
)

// SolveChecked plans a problem by a policy, and has the plan checked. Its errors name
// the policy.
func SolveChecked(
	ctx context.Context, p *planner.Problem, policy *planner.Policy, options *planner.Options,
) (*planner.Plan, error) {
	plan, err := Solve(ctx, p, policy, options)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", policy.Name, err)
	}
	if err := CheckPlan(p, plan, policy); err != nil {
		return nil, err
	}
	return plan, nil
}

// CheckPlan has a plan checked that a policy made. Its error names the policy: it is the
// policy's fault, or the engine's, whatever the problem.
func CheckPlan(p *planner.Problem, plan *planner.Plan, policy *planner.Policy) error {
	if err := check.Plan(p, plan); err != nil {
		return fmt.Errorf("the plan of policy %s is wrong, please report this: %w", policy.Name, err)
	}
	return nil
}

// Hindsight returns the plan that takes least, of those that a search finds, if all tasks of an online plan
// had been known: at no longer a mean time in the system, and with every promise that the plan keeps;
// nil if nothing can be searched.
func Hindsight(ctx context.Context, p *planner.Problem, plan *planner.Plan) (*planner.Plan, error) {
	if !(improve.Hindsight{}).Applies(p, plan) {
		return nil, nil
	}
	rng := rand.New(rand.NewPCG(planner.DefaultSeed, planner.DefaultSeed))
	known, err := improve.Hindsight{}.Improve(ctx, p, plan, rng)
	if err != nil || planner.StopRequested(ctx) { // what a search found that was cut says little
		return nil, err
	}
	seen := *p
	seen.Mode = planner.Clairvoyant
	return known, CheckPlan(&seen, known, &planner.Policy{Name: "hindsight"})
}

// References are the plans that others are held against. Each is nil where it isn't
// known.
type References struct {
	FCFS     *planner.Plan // first come, first served at default clocks
	Easy     *planner.Plan // EASY backfilling at default clocks, which is what sites run
	Constant *planner.Plan // the best clocks that are the same for all tasks of a GPU model
	Cut      bool          // the search for them was stopped before it was done: they are left out
	AlwaysOn bool          // their nodes never sleep
}

// NewReferences plans a problem by each of them. There are no constant clocks where
// the search for them is cut. A plan whose nodes never sleep is held against such as don't let theirs
// sleep either ([Params.AlwaysOn]).
func NewReferences(ctx context.Context, p *planner.Problem, params Params) (r References, err error) {
	r.AlwaysOn = params.AlwaysOn
	if p.Mode == planner.Clairvoyant { // what sites run doesn't know who will come
		blind := *p
		blind.Mode = planner.Online
		p = &blind
	}
	for _, one := range []struct {
		plan **planner.Plan
		text string
	}{{&r.FCFS, "baseline"}, {&r.Easy, EasyDefault}, {&r.Constant, Constant}} {
		if r.AlwaysOn {
			one.text += ",park=" + neverPark
		}
		if *one.plan, err = solveText(ctx, p, one.text, params); err != nil {
			return r, err
		}
	}
	if r.Constant != nil && r.Constant.Cut {
		r.Constant, r.Cut = nil, true
	}
	return r, nil
}

func solveText(ctx context.Context, p *planner.Problem, text string, params Params) (*planner.Plan, error) {
	policy, err := Parse(text, params)
	if err != nil {
		return nil, err
	}
	plan, err := Solve(ctx, p, policy, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	return plan, nil
}
