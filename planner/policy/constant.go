package policy

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/improve"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/tune"
)

// Constant is the policy with one clock pair per GPU model for all tasks: the best
// that `nvidia-smi -lgc` on every node could come to.
const Constant = "constant"

// constantClocks is [Constant]. Its own stages are those of first come, first served
// at the pairs that cost the tasks least; the search is its Improve.
func constantClocks(q Params) planner.Policy {
	own := planner.Policy{
		Tune: cheapestPairs, Place: place.Soonest, Pick: pick.FCFS, Park: park.DRS{Rho: q.Rho}, Map: true,
	}
	search := &constantClockSearch{then: improve.Retune{Moves: constantMoves}}
	add := func(name string, most int, change func(*planner.Policy)) {
		other := own
		other.Name = name
		change(&other)
		search.placed = append(search.placed, improve.StartPolicy{Policy: other, MaxTasks: most})
	}
	add("marginal", maxQuickQueue, func(p *planner.Policy) {
		p.Place, p.Pick, p.Map = place.Marginal, pick.EDF, false
	})
	add("baseline", 0, func(*planner.Policy) {})
	add("edl", 0, func(p *planner.Policy) { p.Place, p.Pick = place.Lightest, pick.DeadlineFirst })
	add("edl,place=latest", 0, func(p *planner.Policy) {
		p.Place, p.Pick = place.ByRule(place.LatestRule), pick.DeadlineFirst
	})
	add("easy", maxQuickQueue, func(p *planner.Policy) {
		p.Place, p.Pick, p.Map = place.AtOnce, q.Queue.Easy.New, false
	})
	own.Improve, own.Hindsight = search, true
	return own
}

// constantClockSearch looks for the clock pairs, one for each GPU model, with the best plan: the
// fewest tasks left out, then the fewest missed deadlines, then the fewest that end after their due
// times, then the least [planner.Problem.Cost].
//
// It begins with the default pairs and with those that cost the tasks least, each GPU
// model by itself, and goes on by coordinate descent: along the pairs of one GPU model
// after the other, and of all together. At each choice the tasks
// are placed in several ways, and then again with those due earlier that were late.
type constantClockSearch struct {
	placed []improve.StartPolicy
	then   planner.Improver // of the best plan, at its clocks
}

// Limits of the work for constant clocks.
const (
	// Of tasks, by all placements together: one takes time that grows with the square.
	placedPairs       = 60_000_000
	maxPlacements     = 1000
	placementsPerTask = 40 // placements, of small batches
	minPlacements     = 8
	// Placements of a choice in which late tasks are due earlier, one after the other.
	maxHurries        = 12
	maxStuck          = 2         // of those without any change
	waysDuringDescent = 2         // ways to place tasks that are tried at each choice: the best ones
	constantMoves     = 1_500_000 // of the search for better places at the best choice
)

// hurryFactors are how much earlier a task is due that was late, as multiples of that:
// the first one at each choice, all at the best.
var hurryFactors = [...]float64{1.5, 3, 1.2, 2}

// replaceStages has all tasks placed in one way, with the stages of a policy string, or in
// several ones where it names none.
func (c *constantClockSearch) replaceStages(p *planner.Policy, given map[string]string) {
	if given["pick"] != "" || given["place"] != "" {
		c.placed = []improve.StartPolicy{{Policy: *p}} // without a name: the plan is the policy's own
	}
	for i := range c.placed {
		c.placed[i].Park = p.Park
	}
}

// constantClockSearchOf returns the search for constant clocks of an improver; nil: it is another one.
func constantClockSearchOf(i planner.Improver) *constantClockSearch {
	switch i := i.(type) {
	case *constantClockSearch:
		return i
	case improve.AtClocks:
		return constantClockSearchOf(i.Then)
	case improve.AlwaysOn:
		return constantClockSearchOf(i.Then)
	}
	return nil
}

// Improve is [planner.Improver].
func (c *constantClockSearch) Improve(
	ctx context.Context, p *planner.Problem, plan *planner.Plan, rng *rand.Rand,
) (*planner.Plan, error) {
	s := c.newSearch(p)
	if err := s.choose(ctx); err != nil {
		return nil, err
	}
	for _, haste := range hurryFactors[1:] {
		if _, err := s.try(ctx, s.best.steps, waysDuringDescent, haste); err != nil {
			return nil, err
		}
	}
	best := s.best
	then := planner.Improver(improve.AtClocks{Clocks: best.plan.Clocks, Then: c.then})
	if planner.NeverSleeps(c.placed[0].Park, &p.Cluster) {
		then = improve.AlwaysOn{Then: then}
	}
	improved, err := then.Improve(ctx, p, best.plan, rng)
	if err != nil {
		return nil, err
	}
	if p.RankOf(improved).Compare(best.rank) < 0 {
		best.plan = improved
	}
	best.plan.Policy = plan.Policy
	return best.plan, nil
}

// newSearch returns a search that hasn't begun.
func (c *constantClockSearch) newSearch(p *planner.Problem) *clockSearch {
	s := &clockSearch{problem: p, ladders: clockLaddersOf(p), tried: make(map[string]bool)}
	n := len(p.Tasks)
	s.left = min(max(placedPairs/n/n, minPlacements), placementsPerTask*n, maxPlacements)
	s.most = s.left
	for i := range c.placed {
		if most := c.placed[i].MaxTasks; most == 0 || len(p.Tasks) <= most {
			s.ways = append(s.ways, placementWay{
				&c.placed[i].Policy, planner.PlanRank{Unplaced: math.MaxInt},
			})
		}
	}
	return s
}

// clockSearch is a search for constant clocks under way.
type clockSearch struct {
	problem *planner.Problem
	ladders []clockLadder
	ways    []placementWay
	left    int // placements that may still be tried
	most    int // of them at first
	tried   map[string]bool
	best    clockTrial
}

// placementWay is a way to place the tasks, and what came of it at best.
type placementWay struct {
	policy *planner.Policy
	best   planner.PlanRank
}

// clockTrial is a choice of clock pairs, with the best of its plans.
type clockTrial struct {
	steps []int // by ladder
	plan  *planner.Plan
	rank  planner.PlanRank
}

// choose finds the clock pairs. All ways to place the tasks are tried at the first
// choices and at the best one, only the best two in between.
func (s *clockSearch) choose(ctx context.Context) error {
	normal, least := make([]int, len(s.ladders)), make([]int, len(s.ladders))
	for i := range s.ladders {
		normal[i], least[i] = s.ladders[i].defaultAt, s.ladders[i].least
	}
	for _, rungs := range [][]int{normal, least} {
		if _, err := s.try(ctx, rungs, len(s.ways), hurryFactors[0]); err != nil {
			return err
		}
	}
	slices.SortStableFunc(s.ways, func(a, b placementWay) int { return a.best.Compare(b.best) })
	if err := s.descend(ctx); err != nil {
		return err
	}
	s.left = max(s.left, len(s.ways))
	_, err := s.try(ctx, s.best.steps, len(s.ways), hurryFactors[0])
	return err
}

// try places the tasks at a choice in the first ways, and reports whether that is the
// best so far. What was tried, or comes after the last placement, isn't.
func (s *clockSearch) try(
	ctx context.Context, rungs []int, ways int, haste float64,
) (better bool, err error) {
	before := s.best.plan
	for i := range s.ways[:min(ways, len(s.ways))] {
		w := &s.ways[i]
		key := fmt.Sprint(rungs, w.policy.Name, haste)
		if s.left <= 0 || s.tried[key] || planner.StopRequested(ctx) && s.best.plan != nil {
			continue
		}
		s.tried[key] = true
		if err := s.place(ctx, rungs, w, haste); err != nil {
			return false, err
		}
	}
	return s.best.plan != before, nil
}

// place places the tasks at a choice in one way, and as long as some are late, again
// with those due earlier: others make room for them then.
func (s *clockSearch) place(ctx context.Context, rungs []int, way *placementWay, haste float64) error {
	at := *way.policy
	clocks := clocksAt(s.ladders, rungs)
	at.Tune = tune.Constant(clocks)
	hurried := *s.problem
	var last planner.PlanRank
	stuck := 0 // placements in a row that were no better or worse
	for hurries := 0; ; hurries++ {
		plan, err := planner.Solve(ctx, &hurried, &at, &planner.Options{NoImprove: true})
		if err != nil {
			return err
		}
		s.left--
		planner.MonitorOf(ctx).SetPhase(Constant, s.most-s.left, s.most)
		w := s.problem.RankOf(plan)
		if w.Compare(way.best) < 0 {
			way.best = w
		}
		if s.best.plan == nil || w.Compare(s.best.rank) < 0 {
			plan.Clocks, plan.From = clocks, at.Name
			s.best = clockTrial{slices.Clone(rungs), plan, w}
			planner.MonitorOf(ctx).Found(s.problem, plan)
		}
		if stuck++; w != last {
			stuck = 0
		}
		if w.Late == 0 || w.Unplaced > s.best.rank.Unplaced || stuck == maxStuck || hurries == maxHurries ||
			s.left <= 0 {
			return nil
		}
		last = w
		if hurries == 0 {
			hurried.Tasks = slices.Clone(s.problem.Tasks)
		}
		for i := range plan.Assignments {
			if late := plan.Assignments[i].End - s.problem.Tasks[i].Due; plan.Assignments[i].Node >= 0 &&
				late > 0 {
				hurried.Tasks[i].Due -= haste * late
			}
		}
	}
}

// descend goes along one ladder after the other, and along all together, until none
// leads to a better plan.
func (s *clockSearch) descend(ctx context.Context) error {
	var lines [][]int
	all := make([]int, len(s.ladders))
	for i := range all {
		all[i] = i
		lines = append(lines, all[i:i+1])
	}
	if len(all) > 1 {
		lines = append(lines, all)
	}
	for improved := true; improved; {
		improved = false
		for _, line := range lines {
			better, err := s.searchAlong(ctx, line)
			if err != nil {
				return err
			}
			improved = improved || better
		}
	}
	return nil
}

// gridSteps is into how many steps a ladder is divided at first.
const gridSteps = 16

// searchAlong looks for better rungs of some ladders: at even distances over the whole of
// each, and then around the best, in steps that halve.
func (s *clockSearch) searchAlong(ctx context.Context, line []int) (better bool, err error) {
	longest := 0
	for _, i := range line {
		longest = max(longest, len(s.ladders[i].pairs)-1)
	}
	grid := min(longest, gridSteps)
	move := func(to func(rung, last int) int) (moved bool) {
		if err != nil {
			return false
		}
		at := slices.Clone(s.best.steps)
		for _, i := range line {
			last := len(s.ladders[i].pairs) - 1
			at[i] = min(max(0, to(at[i], last)), last)
		}
		moved, err = s.try(ctx, at, waysDuringDescent, hurryFactors[0])
		better = better || moved
		return moved
	}
	for k := range grid {
		move(func(_, last int) int { return (k*last + grid/2) / grid })
	}
	move(func(_, last int) int { return last })
	for parts := grid; parts < longest; parts *= 2 {
		step := func(last int) int { return max(1, last/(2*parts)) }
		for moved := true; moved; {
			moved = move(func(rung, last int) int { return rung - step(last) }) ||
				move(func(rung, last int) int { return rung + step(last) })
		}
	}
	return better, err
}
