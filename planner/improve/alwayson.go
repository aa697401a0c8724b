package improve

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/planner"
)

// AlwaysOn improves plans where nodes never sleep. What searches for better plans has nodes sleep where that
// takes less energy, and so a plan of its own may be no good where they don't: the best is taken of it, of the
// plan that it began with, and of those by other policies, each with all nodes on to its end.
type AlwaysOn struct {
	Then   planner.Improver
	Others []StartPolicy
}

// Improve is [planner.Improver].
func (f AlwaysOn) Improve(
	ctx context.Context, p *planner.Problem, plan *planner.Plan, rng *rand.Rand,
) (*planner.Plan, error) {
	name, best := plan.Policy, candidateOf(p, withNodesOn(p, plan))
	best.From = ""
	improved, err := f.Then.Improve(ctx, p, plan, rng)
	if err != nil {
		return nil, err
	}
	if other := candidateOf(p, withNodesOn(p, improved)); other.isBetter(&best) {
		best = other
	}
	for i := range f.Others {
		if most := f.Others[i].MaxTasks; most > 0 && len(p.Tasks) > most {
			continue
		}
		start, err := startPlan(ctx, p, &f.Others[i].Policy, &planner.Options{NoImprove: true})
		if err != nil {
			return nil, err
		}
		start.From = f.Others[i].Name
		if other := candidateOf(p, start); other.isBetter(&best) {
			best = other
		}
	}
	best.Policy, best.Clocks, best.Cut = name, nil, improved.Cut
	return best.Plan, nil
}

// withNodesOn returns a copy of a plan in which all nodes are on to the end.
func withNodesOn(p *planner.Problem, plan *planner.Plan) *planner.Plan {
	kept := *plan
	kept.Nodes = slices.Clone(plan.Nodes)
	kept.KeepNodesOn(p)
	return &kept
}
