package policy

import (
	"context"
	"fmt"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// Checked plans a problem by a policy, and has the plan checked. Its errors name
// the policy.
func Checked(ctx context.Context, p *planner.Problem, policy *planner.Policy, options *planner.Options) (*planner.Plan, error) {
	plan, err := planner.Solve(ctx, p, policy, options)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", policy.Name, err)
	}
	if err := planner.Check(p, plan); err != nil {
		return nil, fmt.Errorf("the plan of policy %s is wrong, please report this: %w", policy.Name, err)
	}
	return plan, nil
}

// Baseline is the energy that savings are stated against: every task at its
// default clocks, first come, first served.
func Baseline(ctx context.Context, p *planner.Problem, params Params) (dvfsmodel.Joule, error) {
	plan, err := BaselinePlan(ctx, p, params)
	if err != nil {
		return 0, err
	}
	return plan.Ledger.Total(), nil
}

// BaselinePlan is the plan that has this energy.
func BaselinePlan(ctx context.Context, p *planner.Problem, params Params) (*planner.Plan, error) {
	baseline, err := Parse("baseline", params)
	if err != nil {
		return nil, err
	}
	plan, err := planner.Solve(ctx, p, baseline, nil)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	return plan, nil
}

// EasyPlan is the plan of EASY at default clocks, what sites run; nil for more than
// [MostQueued] tasks.
func EasyPlan(ctx context.Context, p *planner.Problem, params Params) (*planner.Plan, error) {
	if len(p.Tasks) > MostQueued {
		return nil, nil //nolint:nilnil // there is none
	}
	easy, err := Parse(EasyDefault, params)
	if err != nil {
		return nil, err
	}
	plan, err := planner.Solve(ctx, p, easy, nil)
	if err != nil {
		return nil, fmt.Errorf("easy: %w", err)
	}
	return plan, nil
}
