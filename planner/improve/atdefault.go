package improve

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// AtDefault improves a plan without touching clocks: for Then, every task runs at
// its default ones and no others.
type AtDefault struct{ Then planner.Improver }

// Improve is [planner.Improver].
func (d AtDefault) Improve(ctx context.Context, p *planner.Problem, plan *planner.Plan, rng *rand.Rand) (*planner.Plan, error) {
	fixed := *p
	fixed.Tasks = slices.Clone(p.Tasks)
	for i := range fixed.Tasks {
		t := &fixed.Tasks[i]
		t.Options = slices.Clone(t.Options)
		for j := range t.Options {
			t.Options[j].Response = &dvfsmodel.Fixed{At: t.Options[j].Response.Default()}
		}
	}
	better, err := d.Then.Improve(ctx, &fixed, plan, rng)
	if err != nil || better == nil {
		return better, err
	}
	for i := range better.Assignments {
		a := &better.Assignments[i]
		if a.Node < 0 || a.Reason.Clocks != planner.ClocksNoModel {
			continue
		}
		if _, unknown := p.Tasks[i].Options[a.Option].Response.(*dvfsmodel.Fixed); !unknown {
			a.Reason.Clocks = planner.ClocksDefault
		}
	}
	return better, nil
}
