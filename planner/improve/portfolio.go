package improve

import (
	"context"
	"math/rand/v2"

	"github.com/epplan/epplan/planner"
)

// Portfolio plans anew by other policies, improves each plan by Then, and keeps
// the best of all: the fewest tasks left out, then the fewest late, then the
// least energy. Where every task takes one whole GPU of the only class from
// time 0 on, Then alone does better than any start, and no other is tried.
type Portfolio struct {
	Others []planner.Policy
	Then   planner.Improver
}

// Improve is [planner.Improver].
func (f Portfolio) Improve(ctx context.Context, p *planner.Problem, plan *planner.Plan, rng *rand.Rand) (*planner.Plan, error) {
	best, err := f.Then.Improve(ctx, p, plan, rng)
	if err != nil || f.uniform(p) {
		return best, err
	}
	for i := range f.Others {
		other, err := f.start(ctx, p, &f.Others[i])
		if err != nil {
			return nil, err
		}
		if len(p.Tasks) <= largeBatch || better(other, best) {
			if other, err = f.Then.Improve(ctx, p, other, rng); err != nil {
				return nil, err
			}
		}
		if better(other, best) {
			best = other
		}
	}
	best.Policy = plan.Policy
	return best, nil
}

// start is the plan of another policy. Of tasks that arrive over time it is
// also asked for the one that it would make without knowing them.
func (f Portfolio) start(ctx context.Context, p *planner.Problem, policy *planner.Policy) (*planner.Plan, error) {
	plan, err := planner.Solve(ctx, p, policy, &planner.Options{NoImprove: true})
	if err != nil || p.Mode != planner.Clairvoyant {
		return plan, err
	}
	blind := *p
	blind.Mode = planner.Online
	online, err := planner.Solve(ctx, &blind, policy, nil)
	if err != nil {
		return nil, err
	}
	if better(online, plan) {
		return online, nil
	}
	return plan, nil
}

// better tells whether plan a is to be preferred to plan b.
func better(a, b *planner.Plan) bool {
	switch {
	case len(a.Unplaced) != len(b.Unplaced):
		return len(a.Unplaced) < len(b.Unplaced)
	case len(a.Misses) != len(b.Misses):
		return len(a.Misses) < len(b.Misses)
	}
	return a.Ledger.Total() < b.Ledger.Total()
}

// uniform tells whether the problem is of the EDL paper's kind: one class with as
// many nodes as wanted, and tasks of one whole GPU that are all there at 0.
func (f Portfolio) uniform(p *planner.Problem) bool {
	if len(p.Cluster.Classes) > 1 || p.Mode != planner.Offline || p.Cluster.Classes[0].Count > 0 {
		return false
	}
	for i := range p.Tasks {
		for j := range p.Tasks[i].Options {
			if p.Tasks[i].Options[j].GPUs != 1 {
				return false
			}
		}
	}
	return !p.AnyBinds()
}
