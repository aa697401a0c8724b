package powerbudget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// Keep returns a plan of the same jobs on the same nodes that is within a budget at every moment. Jobs
// that take more than the budget leaves whenever they start aren't placed. The error says what no plan
// can change.
//
// Jobs are placed one after the other: each at that of some points of its response, or of the faster ones
// of them, that ends by its due time and costs least, or else ends first. A job of whole GPUs of one node
// may move to another node; others keep their GPUs. Orders that are tried are those of the plan's starts
// and of the latest ones by which jobs end in time, and some between; then a search lets some jobs of the
// best plan move. Where there are few jobs every order is tried. Of further plans, which may be nil, the
// same is tried.
//
// A context that ends with [planner.ErrCut] cuts the search, also before it began. The context's
// [planner.Monitor] is told how far it is.
func Keep(
	ctx context.Context, p *planner.Problem, plan *planner.Plan, b Budget, others ...*planner.Plan,
) (*planner.Plan, error) {
	return keep(ctx, p, plan, b, mostOrders, others)
}

// keep is [Keep] with so many orders at most.
func keep(
	ctx context.Context, p *planner.Problem, plan *planner.Plan, b Budget, most int, others []*planner.Plan,
) (*planner.Plan, error) {
	best, err := newSearch(ctx, p, plan, b)
	if err != nil {
		return nil, err
	}
	all := []*search{best, best.asPlanned()}
	for _, other := range others {
		if other == nil || other.Shared != nil || ctx.Err() != nil {
			continue
		}
		if s, err := newSearch(ctx, p, other, b); err == nil {
			all = append(all, s)
		}
	}
	orders := orderCount(p, most)
	each := orders / 2 / len(all)
	if len(p.Tasks) <= manyTasks {
		each = max(leastOrders, each)
	}
	phase := counter{monitor: planner.MonitorOf(ctx), total: each*len(all) + orders/2}
	phase.monitor.Found(p, best.best)
	for _, s := range all {
		if s.improve(ctx, each, phase.next); s.rank.Compare(best.rank) < 0 {
			best = s
		}
		phase.monitor.Found(p, best.best)
	}
	best.improve(ctx, orders/2, func() bool {
		phase.monitor.Found(p, best.best)
		return phase.next()
	})
	if best.plan != plan {
		best.best.Policy, best.best.From = plan.Policy, best.plan.Policy
	}
	if best.best.Cut = planner.StopRequested(ctx); !best.best.Cut && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	nameBudget(plan, best.best)
	return best.best, nil
}

// nameBudget names the budget as the reason where it has tasks run at other clocks, times or places.
func nameBudget(free, kept *planner.Plan) {
	for i := range kept.Assignments {
		a, was := &kept.Assignments[i], &free.Assignments[i]
		if a.Node < 0 || was.Node < 0 {
			continue
		}
		why := was.Reason
		if a.Point != was.Point {
			why.Clocks, why.Want, why.TimeBudget = planner.ClocksBudget, was.Point.Time, a.Point.Time
		}
		if a.Start != was.Start || a.Node != was.Node {
			why.Place = planner.PlaceBudget
		}
		a.Reason = why
	}
}

// counter tells a monitor of each order that is tried.
type counter struct {
	monitor     *planner.Monitor
	done, total int
}

// next counts an order, and is of searches that end when all were tried.
func (c *counter) next() (enough bool) {
	c.monitor.SetPhase(planner.Searching, c.done, c.total)
	c.done++
	return false
}

// search looks for the order of tasks that makes the best plan.
type search struct {
	p      *planner.Problem
	plan   *planner.Plan
	budget Budget

	best *planner.Plan
	rank planner.PlanRank

	points map[run][]dvfsmodel.Point // some at which a task may run
	rng    *rand.Rand
}

// run names how a task responds on a GPU model.
type run struct{ task, option int32 }

// placing is how tasks are placed one after the other.
type placing struct {
	keys  []float64 // by task: those with the least come first
	moves []bool    // by task: it may run at another point than before; nil: all may
	stay  bool      // but none on other GPUs
	fast  int       // of the points of a task so many of the slowest aren't looked at
	eager bool      // a task runs on the node where it starts first, else where it adds the least energy
}

// newSearch returns a search that knows the best of the orders that follow from the plan, of fewer once the
// context has ended.
func newSearch(ctx context.Context, p *planner.Problem, plan *planner.Plan, b Budget) (*search, error) {
	switch {
	case p.Mode == planner.Online:
		return nil, errors.New("a power budget is for jobs that are all there: with arrivals, by --clairvoyant")
	case plan.Shared != nil:
		return nil, errors.New("a power budget isn't for jobs that share GPUs by profile: want another policy")
	}
	if n := len(p.Tasks); n > mostTasks {
		return nil, fmt.Errorf("%d jobs are too many for a power budget, want at most %d", n, mostTasks)
	}
	if asleep := newKeeper(p, plan, b).asleep; asleep > b.Least() {
		return nil, fmt.Errorf("%w %.6g W while they sleep, the budget is %.6g W", errAsleep,
			float64(asleep), float64(b.Least()))
	}
	s := &search{
		p: p, plan: plan, budget: b, points: make(map[run][]dvfsmodel.Point),
		rng: rand.New(rand.NewPCG(1, uint64(len(p.Tasks)))),
	}
	starts, latest := startsOf(plan), make([]float64, len(p.Tasks))
	for i := range latest {
		latest[i] = s.latestStart(i)
	}
	s.try(plan, placing{keys: starts, moves: make([]bool, len(p.Tasks))})
	weights := len(timeWeights)
	switch n := len(p.Tasks); {
	case n > manyTasks:
		weights = 0
	case n > fewTasks:
		weights = 1
	}
	hasEnded := func() bool { return ctx.Err() != nil }
	for fast := 0; fast <= weights && !hasEnded(); fast++ {
		for _, how := range [...]placing{{eager: true}, {}, {stay: true}} {
			for _, keys := range [...][]float64{starts, latest} {
				if hasEnded() {
					return s, nil
				}
				how.keys, how.fast = keys, fast
				s.try(plan, how)
			}
		}
	}
	return s, nil
}

// asPlanned returns a search that knows only the plan's own order, on its GPUs and at its clocks: jobs
// may be late there, but it costs little.
func (s *search) asPlanned() *search {
	own := *s
	own.best = nil
	own.try(s.plan, placing{keys: startsOf(s.plan), moves: make([]bool, len(s.p.Tasks))})
	return &own
}

// startsOf returns when the tasks of a plan start.
func startsOf(plan *planner.Plan) []float64 {
	starts := make([]float64, len(plan.Assignments))
	for i := range starts {
		starts[i] = plan.Assignments[i].Start
	}
	return starts
}

// orderBetween returns an order of all tasks between that of their starts and that of their latest starts.
func (s *search) orderBetween() placing {
	how := placing{keys: startsOf(s.plan), stay: s.rng.IntN(2) == 0, eager: s.rng.IntN(2) == 0}
	part := s.rng.Float64()
	for i := range how.keys {
		noise := 1 + (s.rng.Float64()-0.5)/2
		how.keys[i] = noise * (part*how.keys[i] + (1-part)*s.latestStart(i))
	}
	return how
}

// inTime returns the order of the best plan, but that tasks which are late there may move, with some of those
// that run on their nodes before: at other clocks, mostly in their places.
func (s *search) inTime() placing {
	how := placing{
		keys: startsOf(s.best), moves: make([]bool, len(s.p.Tasks)), stay: s.rng.IntN(8) > 0,
		fast: s.rng.IntN(1 + len(timeWeights)), eager: s.rng.IntN(2) == 0,
	}
	part, earlier := s.rng.Float64(), s.rng.IntN(3) == 0
	since := make(map[int32]float64) // by node: start of the last late task
	for _, task := range s.best.PastDue(s.p) {
		a := &s.best.Assignments[task]
		how.moves[task] = true
		if earlier {
			how.keys[task] = min(how.keys[task], s.rng.Float64()*max(0, s.latestStart(task)))
		}
		since[a.Node] = max(since[a.Node], a.Start)
	}
	for i := range s.best.Assignments {
		if a := &s.best.Assignments[i]; a.Node >= 0 && a.Start < since[a.Node] && s.rng.Float64() < part*part {
			how.moves[i] = true
		}
	}
	return how
}

// latestStart returns the latest time by which a task starts in time as it is planned.
func (s *search) latestStart(task int) float64 {
	t := &s.p.Tasks[task]
	return min(t.Due, t.Deadline, 1e12) - s.plan.Assignments[task].Point.Time
}

// wastefulTask returns a task of the best plan, more likely one that takes much more than it might.
func (s *search) wastefulTask() (task int) {
	sum := 0.0
	for i := range s.best.Assignments {
		a := &s.best.Assignments[i]
		if a.Node < 0 {
			continue
		}
		least := float64(a.Point.Energy)
		for _, pt := range s.points[run{int32(i), a.Option}] {
			least = min(least, float64(pt.Energy))
		}
		waste := float64(a.GPUCount()) * (float64(a.Point.Energy) - least)
		if sum += waste; s.rng.Float64()*sum < waste {
			task = i
		}
	}
	return task
}

// try places all tasks of a plan anew, and takes that as the best plan if it is no worse.
func (s *search) try(plan *planner.Plan, how placing) {
	k := newKeeper(s.p, plan, s.budget)
	k.known = s.points
	next := k.placeAll(how)
	if rank := s.p.RankOf(next); s.best == nil || rank.Compare(s.rank) <= 0 {
		s.best, s.rank = next, rank
	}
}

// improve lets most of the tasks that start near one of them move, in another order, and keeps what makes the
// best plan better. It ends after so many orders at most, or when the plan is enough.
func (s *search) improve(ctx context.Context, most int, enough func() bool) {
	n := len(s.p.Tasks)
	if n <= mostPermuted {
		for places := range permutations(n) {
			for fast := range 1 + len(timeWeights) {
				s.try(s.plan, placing{keys: places, fast: fast, eager: true})
			}
		}
		return
	}
	rng, order := s.rng, make([]int, n)
	for i := range order {
		order[i] = i
	}
	start := func(task int) float64 { return s.best.Assignments[task].Start }
	for range most {
		if enough() || ctx.Err() != nil {
			return
		}
		switch {
		case s.rank.Late > 0 && rng.IntN(4) > 0:
			s.try(s.best, s.inTime())
			continue
		case n <= fewTasks && rng.IntN(globalEvery) == 0:
			s.try(s.plan, s.orderBetween())
			continue
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(start(a), start(b)) })
		how := placing{
			keys: make([]float64, n), moves: make([]bool, n), stay: rng.IntN(3) == 0,
			fast: rng.IntN(1 + len(timeWeights)), eager: rng.IntN(2) == 0,
		}
		for place, task := range order {
			how.keys[task] = float64(place)
		}
		near := 2 + rng.IntN(min(n-1, mostMoved))
		first := rng.IntN(n - near + 1)
		if rng.IntN(2) == 0 {
			first = min(max(0, slices.Index(order, s.wastefulTask())-rng.IntN(near)), n-near)
		}
		for _, task := range order[first : first+near] {
			if how.moves[task] = rng.IntN(3) > 0; how.moves[task] {
				how.keys[task] = float64(first) + float64(near)*(1.5*rng.Float64()-0.5)
			}
		}
		s.try(s.best, how)
	}
}

var errAsleep = errors.New("the nodes of the plan take")

// orderCount returns how many orders are tried: so many at most, and fewer of many tasks, as each takes the
// square of their number.
func orderCount(p *planner.Problem, most int) int {
	const all = 300 // so many tasks have all orders tried
	n := max(all, len(p.Tasks))
	return max(1, most*all*all/(n*n))
}

const (
	mostOrders  = 3000
	leastOrders = 40 // from each plan
	mostMoved   = 30 // in one go
	globalEvery = 5  // one in so many is an order of all
)

// mostPermuted is up to how many tasks every order is tried.
const mostPermuted = 5

// permutations yields every order of the numbers below n.
func permutations(n int) iter.Seq[[]float64] {
	return func(yield func([]float64) bool) {
		order := make([]float64, n)
		for i := range order {
			order[i] = float64(i)
		}
		var permute func(k int) bool
		permute = func(k int) bool {
			if k == n {
				return yield(slices.Clone(order))
			}
			for i := k; i < n; i++ {
				order[k], order[i] = order[i], order[k]
				if !permute(k + 1) {
					return false
				}
				order[k], order[i] = order[i], order[k]
			}
			return true
		}
		permute(0)
	}
}

// Up to how many tasks many of their points are tried in each order at first, and up to how many two.
const (
	fewTasks  = 500
	manyTasks = 3000
)

// mostTasks is how many jobs are placed within a minute.
const mostTasks = 5000
