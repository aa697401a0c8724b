package planner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
)

// Options change how [Solve] works; nil means the defaults.
type Options struct {
	// Seed makes improvers repeatable; 0 is one like any other. Nil options have
	// [DefaultSeed].
	Seed uint64
	// NoImprove leaves out the policy's Improve pass.
	NoImprove bool
	// Truth is the problem as it turns out: the same tasks, with the run times
	// and powers that they really have. The engine books it, the policy sees
	// the problem that it is asked to solve. Nil: what is predicted is true.
	// The plan is one for Truth, and isn't improved.
	Truth *Problem
	// Started is told of each task as the policy decides about it, in that order;
	// not of those that run already.
	Started func(task int)
}

// DefaultSeed is the seed of randomised passes unless another one is given.
const DefaultSeed = 1

// Solve runs a policy over a problem and returns its plan. Tasks that cannot be
// placed, or end late, are part of the plan and its status; the error says that
// the problem makes no sense, that a stage doesn't ([StageError]), or that ctx ended.
// A context that ends because of [ErrCut] only cuts the search for a better plan; see
// [Monitor] for one that also ends planning itself.
func Solve(ctx context.Context, p *Problem, policy *Policy, opts *Options) (*Plan, error) {
	if opts == nil {
		opts = &Options{Seed: DefaultSeed}
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := policy.Validate(); err != nil {
		return nil, err
	}
	if opts.Truth != nil {
		if err := opts.Truth.checkActual(p); err != nil {
			return nil, err
		}
	}
	r := requestOf(p, policy, opts)
	if err := r.conflict(policy.Name); err != nil {
		return nil, err
	}
	e := newEngine(p, policy, opts.Truth, opts.Started)
	defer e.release()
	if e.answers.refused != nil {
		return nil, e.answers.refused
	}
	if e.truth != nil && e.endObserver == nil {
		return nil, fmt.Errorf("policy %s books GPUs before they are free: run times must be "+
			"certain for that", policy.Name)
	}
	monitor := MonitorOf(ctx)
	within, leave := monitor.enterSolve()
	defer leave()
	if err := e.run(ctx); err != nil {
		return nil, err
	}
	plan := e.plan
	plan.nameBounds(p)
	if !within {
		monitor.Found(p, plan)
	}
	if !r.improve {
		return plan, nil
	}
	better, err := policy.Improve.Improve(ctx, p, plan, rand.New(rand.NewPCG(opts.Seed, opts.Seed)))
	if err != nil {
		return nil, fmt.Errorf("improve: %w", err)
	}
	if better == nil {
		return nil, &StageError{
			Policy: policy.Name, Stage: "improve",
			Msg: "no plan came back, want a better one or the one that was given",
		}
	}
	better.nameBounds(p)
	better.Cut = better.Cut || StopRequested(ctx)
	return better, nil
}

// request is what a problem, a policy and options ask for at once:
//
//	              the present    shared GPUs    Improve runs
//	Truth         no, an error   no, an error   never
//	the present                  no, an error   offline
//	shared GPUs                                 as without
//	none of them                                offline and clairvoyant; online with Hindsight
//
// Truth needs a Place stage that is told of ends, besides: see [EndObserver].
type request struct {
	truth, present bool
	shares         bool // Place may put tasks on GPUs together, and some are such
	improve        bool // the policy's Improve pass is run on the plan
}

func requestOf(p *Problem, policy *Policy, opts *Options) request {
	r := request{truth: opts.Truth != nil, present: p.Snapshot != nil, shares: policy.Share && p.HasSharing()}
	foreseen := p.Mode != Online || (policy.Hindsight && !r.present)
	r.improve = policy.Improve != nil && !opts.NoImprove && !r.truth && foreseen
	return r
}

// conflict reports what doesn't go together.
func (r request) conflict(policy string) error {
	switch {
	case r.truth && r.present:
		return errors.New("a plan from the present has no other truth than what is predicted")
	case r.shares && (r.truth || r.present):
		return fmt.Errorf("policy %s shares GPUs: such a plan begins at 0, and run times must be "+
			"certain for it", policy)
	}
	return nil
}
