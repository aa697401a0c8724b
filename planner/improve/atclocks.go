package improve

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// AtClocks improves a plan without touching clocks: for Then, every task runs at the
// setting of its GPU model in Clocks, or else at its default one, and at no others.
type AtClocks struct {
	Clocks map[string]dvfsmodel.Point // by GPU model; nil: default clocks
	Then   planner.Improver
}

// Improve is [planner.Improver].
func (c AtClocks) Improve(
	ctx context.Context, p *planner.Problem, plan *planner.Plan, rng *rand.Rand,
) (*planner.Plan, error) {
	fixed := *p
	fixed.Tasks = slices.Clone(p.Tasks)
	for i := range fixed.Tasks {
		t := &fixed.Tasks[i]
		t.Options = slices.Clone(t.Options)
		for j := range t.Options {
			at, _ := c.pointOn(t, &t.Options[j])
			t.Options[j].Response = &dvfsmodel.Fixed{At: at}
		}
	}
	better, err := c.Then.Improve(ctx, &fixed, plan, rng)
	if err != nil || better == nil {
		return better, err
	}
	for i := range better.Assignments {
		a := &better.Assignments[i]
		if a.Node >= 0 && slices.Contains(ownClocks, a.Reason.Clocks) {
			_, a.Reason.Clocks = c.pointOn(&p.Tasks[i], &p.Tasks[i].Options[a.Option])
		}
	}
	return better, nil
}

// ownClocks are reasons for clocks that a task without any others seems to have.
var ownClocks = []planner.ClockReason{
	planner.ClocksNoModel, planner.ClocksFree, planner.ClocksStretched, planner.ClocksShrunk,
}

// pointOn returns a task's point on a GPU model, and why it is that one.
func (c AtClocks) pointOn(t *planner.Task, o *planner.Option) (dvfsmodel.Point, planner.ClockReason) {
	at := o.Response.Default()
	if !dvfsmodel.HasModel(o.Response) {
		return at, planner.ClocksNoModel
	}
	if t.Share == 1 {
		if set, ok := dvfsmodel.PointAt(o.Response, c.Clocks[o.Model]); ok {
			return set, planner.ClocksConstant
		}
	}
	return at, planner.ClocksDefault
}
