package planner

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// Options change how [Solve] works; nil means the defaults.
type Options struct {
	// Seed makes improvers repeatable. Default 1.
	Seed uint64
	// NoImprove leaves out the policy's Improve pass.
	NoImprove bool
}

// DefaultSeed is the seed of randomised passes unless another one is given.
const DefaultSeed = 1

// Solve runs a policy over a problem and returns its plan. Tasks that cannot be
// placed, or end late, are part of the plan and its status; the error says that
// the problem makes no sense or that ctx ended.
func Solve(ctx context.Context, p *Problem, policy *Policy, opts *Options) (*Plan, error) {
	if opts == nil {
		opts = &Options{Seed: DefaultSeed}
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	e := newEngine(p, policy)
	defer e.view.release()
	if err := e.run(ctx); err != nil {
		return nil, err
	}
	plan := e.plan
	if policy.Improve == nil || opts.NoImprove || p.Mode == Online {
		return plan, nil
	}
	better, err := policy.Improve.Improve(ctx, p, plan, rand.New(rand.NewPCG(opts.Seed, opts.Seed))) //nolint:gosec // not for secrets
	if err != nil {
		return nil, fmt.Errorf("improve: %w", err)
	}
	return better, nil
}
