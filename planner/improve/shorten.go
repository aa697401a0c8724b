package improve

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/planner"
)

// Limits of the work of a Shorten: how many prices of time are tried, the moves of the search at each, and of
// how many tasks: of more, so few moves change nothing.
const (
	shorterTries     = 3
	mostMovesShorter = mostMovesListed / 4
	mostShortened    = 20 * manyJobs
)

// Shorten searches for the plan with the shortest mean time in the system of those that cost at most a part
// more than the given one, which costs least, and keep as many promises. Where all tasks have deadlines,
// nobody wants them sooner.
type Shorten struct {
	Part   float64
	Effort float64 // as of [Retune]
}

// Improve is [planner.Improver].
func (s Shorten) Improve(
	ctx context.Context, p *planner.Problem, least *planner.Plan, rng *rand.Rand,
) (*planner.Plan, error) {
	sum := totalTurnaround(p, least)
	asked := slices.ContainsFunc(p.Tasks, func(t planner.Task) bool { return math.IsInf(t.Deadline, 1) })
	if s.Part == 0 || sum == 0 || !asked || p.Mode != planner.Offline || len(p.Tasks) > mostShortened ||
		!isListable(p, least) {
		return least, planner.Cancelled(ctx)
	}
	best, most := least, p.RankOf(least)
	most.Cost += s.Part * math.Abs(most.Cost)
	usual := 20 * s.Part * math.Abs(p.Cost(least)) / sum
	prices := timePrices{price: usual, usual: usual, high: math.Inf(1)}
	how := Retune{Moves: min(hindsightMoves*len(p.Tasks), mostMovesShorter), Effort: s.Effort, local: true}
	for range shorterTries {
		if planner.StopRequested(ctx) {
			break
		}
		found := prices.planAtPrice(ctx, p, best, how, rng)
		tooDear := p.RankOf(found).Compare(most) > 0
		if !tooDear && totalTurnaround(p, found) < totalTurnaround(p, best) {
			best = found
		}
		prices.next(tooDear)
	}
	if best != least {
		best.Least = least
	}
	return best, planner.Cancelled(ctx)
}
