package improve

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/planner"
)

// Hindsight searches for what a plan of tasks that arrive over time could have been if all of them had been
// known: the plan that comes back has the least cost of those found, at no longer a mean time in the system
// unless that may be longer, and ends no task after its due time that the given plan didn't end as late. It
// says how much foresight would be worth at most, as far as the search is good.
type Hindsight struct {
	Longer bool // the mean time in the system may be longer
}

// Limits of the work of a Hindsight: how many prices of time are tried, as that is looked for at which the
// time is the same, and the moves of the search at each.
const (
	hindsightTries = 6
	hindsightMoves = enoughMoves / 2 // for each task: the search goes on from a plan
	mostHindsight  = 200_000
)

// Applies reports whether the search is of any use: of whole GPUs that start at any time.
func (Hindsight) Applies(p *planner.Problem, plan *planner.Plan) bool {
	return isListable(hindsightProblem(p, plan), plan)
}

// Improve is [planner.Improver], of online plans too.
func (h Hindsight) Improve(
	ctx context.Context, p *planner.Problem, plan *planner.Plan, rng *rand.Rand,
) (*planner.Plan, error) {
	known := hindsightProblem(p, plan)
	best, limit := recutSleep(known, plan), totalTurnaround(p, plan)
	if !isListable(known, best) {
		return best, planner.Cancelled(ctx)
	}
	if h.Longer {
		limit = math.Inf(1)
	}
	prices := timePrices{usual: p.Cost(plan) / totalTurnaround(p, plan) / 10, high: math.Inf(1)}
	for range hindsightTries {
		found := prices.planAtPrice(
			ctx,
			known,
			best,
			Retune{Moves: min(hindsightMoves*len(p.Tasks), mostHindsight)},
			rng,
		)
		quick := totalTurnaround(p, found) <= limit*(1+narrow)
		if quick && p.Cost(found) < p.Cost(best) {
			best = found
		}
		if prices.next(quick); prices.high == 0 { // nobody needs to be in a hurry
			return best, planner.Cancelled(ctx)
		}
	}
	best.Recount(p)
	return best, planner.Cancelled(ctx)
}

// timePrices looks for the price of a second that a task ends later at which a plan is just quick enough, or
// just costs little enough.
type timePrices struct {
	price, low, high float64 // to be tried; too low; too high, or high enough
	usual            float64 // tried first where none is too high
}

// planAtPrice returns the plan that a search finds at the price.
func (t *timePrices) planAtPrice(
	ctx context.Context, p *planner.Problem, from *planner.Plan, how Retune, rng *rand.Rand,
) *planner.Plan {
	how.ended = t.price
	return searchByLists(ctx, p, from, how, rng)
}

// next says how the plan at the price was, and sets another one.
func (t *timePrices) next(isHigh bool) {
	if isHigh {
		t.high = t.price
	} else {
		t.low = t.price
	}
	switch {
	case math.IsInf(t.high, 1):
		t.price = max(3*t.low, t.usual)
	case t.low == 0:
		t.price = t.high / 3
	default:
		t.price = math.Sqrt(t.low * t.high)
	}
}

// hindsightProblem returns the problem with all tasks known, and none due before a plan of it ends the task.
func hindsightProblem(p *planner.Problem, plan *planner.Plan) *planner.Problem {
	known := *p
	known.Mode, known.Tasks = planner.Clairvoyant, slices.Clone(p.Tasks)
	for i := range known.Tasks {
		if a := &plan.Assignments[i]; a.Node >= 0 {
			known.Tasks[i].Due = max(known.Tasks[i].Due, a.End)
		}
	}
	return &known
}

// recutSleep returns a copy of a plan whose nodes sleep as they would if all had been known, where that costs
// less.
func recutSleep(p *planner.Problem, plan *planner.Plan) *planner.Plan {
	cut := *plan
	cut.Nodes = slices.Clone(plan.Nodes)
	cut.CutIdle(p)
	if cut.Recount(p); p.Cost(&cut) > p.Cost(plan) {
		cut = *plan
		cut.Recount(p)
	}
	return &cut
}

// totalTurnaround returns how long the tasks of a plan are in the system, in all, seconds.
func totalTurnaround(p *planner.Problem, plan *planner.Plan) (sum float64) {
	for i := range plan.Assignments {
		if a := &plan.Assignments[i]; a.Node >= 0 {
			sum += a.End - p.Tasks[i].Arrival
		}
	}
	return sum
}
