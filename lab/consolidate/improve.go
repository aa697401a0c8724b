package consolidate

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

// ImproveOptions are how long and from where [Improve] searches.
type ImproveOptions struct {
	Seed     uint64
	Rounds   int // of ruin and recreate for each start; 0: 8000
	Restarts int // starts beside the first; 0: 1, negative: none
	Sets     int // sets of tasks that are looked at for groups; 0: 20 million, negative: none
}

func (o ImproveOptions) withDefaults() ImproveOptions {
	if o.Rounds <= 0 {
		o.Rounds = 8000
	}
	if o.Restarts == 0 {
		o.Restarts = 1
	}
	if o.Sets == 0 {
		o.Sets = 20_000_000
	}
	return o
}

// maxSubproblems is how many parts of a problem [Improve] looks at.
const maxSubproblems = 8

// Improve looks for a placement that takes less than a start, which may be
// empty or break what the problem asks for. First it takes a few groups of
// tasks apart again and again and puts their pieces where they cost least;
// what gets worse is kept with a chance that falls over the rounds (ruin and
// recreate with simulated annealing). Then it settles the groups that the
// linear relaxation of the problem uses most, as [Exact] does, and goes on
// from there. Which servers are on for the groups is solved exactly each time.
//
// The answer keeps what the problem asks for and is never worse than a start
// that does; watts are +Inf, and the start is handed back, where none was
// found. It depends on the instance, the start and the options alone, unless
// the context ends the search.
func Improve(
	ctx context.Context, in *sharing.Instance, problem share.Problem, start share.Placement, opt ImproveOptions,
) (share.Placement, float64) {
	if len(in.Tasks) == 0 {
		return allAsleep(in), 0
	}
	p, ok := newPacking(in, problem, false)
	if !ok {
		return start, math.Inf(1)
	}
	opt = opt.withDefaults()
	e := newExactSearch(p, opt.Seed)
	e.improve(ctx, start, opt)
	if opt.Sets > 0 {
		e.work, e.limit = opt.Sets, maxSubproblems
		e.run(ctx)
		e.descendFromBest(ctx, opt.Rounds/2)
	}
	return e.placed(start)
}

// improve descends from the start and from scratch.
func (e *exactSearch) improve(ctx context.Context, start share.Placement, opt ImproveOptions) {
	if groups, ok := e.p.groupsOf(start); ok {
		e.best, e.bestW = groups, e.p.total(groups)
	}
	for restart := range max(0, opt.Restarts) + 1 {
		if ctx.Err() != nil {
			return
		}
		var from []group
		if restart == 0 {
			from = e.best
		}
		e.descend(ctx, from, nil, opt.Rounds, hotW)
	}
}

// descendFromBest descends from the best answer, with little heat.
func (e *exactSearch) descendFromBest(ctx context.Context, rounds int) {
	if e.proven() || ctx.Err() != nil || math.IsInf(e.bestW, 1) {
		return
	}
	e.descend(ctx, e.best, nil, rounds, hotW/4)
}

// descend searches from groups and loose pieces, and keeps what takes less than
// the best.
func (e *exactSearch) descend(ctx context.Context, from []group, loose []int, rounds int, hot float64) {
	e.descents++
	s := newLocalSearch(e.p, rand.New(rand.NewPCG(e.seed, e.descents)))
	s.keep, s.loose = e.keepColumn, loose
	s.start(from)
	s.run(ctx, rounds, hot)
	if s.bestW < e.bestW-1e-9 {
		e.best, e.bestW = s.best, s.bestW
	}
}

// useLargerGPUs has each group of the best answer run as slowly as the GPU allows
// that it is on, which may be larger than the one that it needs.
func (e *exactSearch) useLargerGPUs() {
	if !e.p.sizeMatters() || math.IsInf(e.bestW, 1) {
		return
	}
	groups, ok := e.p.groupsOf(e.p.placement(e.best))
	if !ok {
		return
	}
	if watts := e.p.total(groups); watts < e.bestW-1e-9 {
		e.best, e.bestW = groups, watts
	}
}

// placed returns the best placement and what it takes: the start where nothing
// better was found, as may be where some sizes of GPU count as smaller ones.
func (e *exactSearch) placed(start share.Placement) (share.Placement, float64) {
	e.useLargerGPUs()
	if e.p.hosts.coarse {
		if v := share.Evaluate(e.p.in, start); v.FeasibleFor(e.p.problem) && v.PowerW < e.bestW {
			return start, v.PowerW
		}
	}
	if math.IsInf(e.bestW, 1) {
		return start, e.bestW
	}
	return e.p.placement(e.best), e.bestW
}

// allAsleep returns the answer to an instance without tasks.
func allAsleep(in *sharing.Instance) share.Placement {
	return share.Placement{GPUs: [][]int{}, MHz: make([]dvfsmodel.MHz, len(in.GPUs()))}
}
