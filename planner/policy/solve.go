package policy

import (
	"context"
	"fmt"

	"github.com/epplan/epplan/planner"
)

// Checked plans a problem by a policy, and has the plan checked. Its errors name
// the policy.
func Checked(ctx context.Context, p *planner.Problem, policy *planner.Policy, options *planner.Options) (*planner.Plan, error) {
	plan, err := Solve(ctx, p, policy, options)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", policy.Name, err)
	}
	if err := planner.Check(p, plan); err != nil {
		return nil, fmt.Errorf("the plan of policy %s is wrong, please report this: %w", policy.Name, err)
	}
	return plan, nil
}

// References are the plans that others are held against: every task at its default
// clocks, first come, first served and by EASY backfilling, which is what sites run.
// The latter is nil for more than [MostQueued] tasks.
func References(ctx context.Context, p *planner.Problem, params Params) (fcfs, easy *planner.Plan, err error) {
	if fcfs, err = solved(ctx, p, "baseline", params); err != nil || len(p.Tasks) > MostQueued {
		return fcfs, nil, err
	}
	easy, err = solved(ctx, p, EasyDefault, params)
	return fcfs, easy, err
}

// solved is the plan of a policy string.
func solved(ctx context.Context, p *planner.Problem, text string, params Params) (*planner.Plan, error) {
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
