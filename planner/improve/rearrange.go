package improve

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
)

// isSearchable reports whether plans of a problem may be lists: all tasks are known, and start
// at any time.
func isSearchable(p *planner.Problem) bool {
	return p.Mode != planner.Online && p.Start == planner.StartContinuous
}

// isListable reports whether the plan is one whose tasks start at any time and share GPUs by their
// shares alone, on nodes that are on for as long as their tasks need, or not at all.
func isListable(p *planner.Problem, plan *planner.Plan) bool {
	if !isSearchable(p) || plan.Shared != nil {
		return false
	}
	if p.Mode == planner.Clairvoyant {
		return true // nodes sleep wherever that takes less
	}
	for n, last := range lastEnds(plan) {
		if v := &plan.Nodes[n]; (len(v.On) > 0 || last > 0) && !isOnToLastEnd(v, last) {
			return false
		}
	}
	return true
}

// Limits of the work that a search over lists does unasked: moves for each three tasks,
// or where that is more, the fewer of those for each four and for each one; moves in all,
// and jobs timed. Batches of manyJobs get half of that, and larger ones less by as much as they are larger.
const (
	movesPerTriple  = 20
	movesPerFour    = 12
	movesPerTask    = 150_000
	mostMovesListed = 12_000_000
	mostTimed       = 600_000_000
	manyJobs        = 1_000
)

// partsEffort is by how much less is tried where jobs are on parts of GPUs: each move takes the more time.
const partsEffort = 0.4

// Temperatures of the search, in parts of what a job costs in the mean.
const (
	hottestStart = 0.3
	mildStart    = 0.1
	briefStart   = 0.02 // where there are few moves
	coolEnd      = 1e-3
	coldestEnd   = 1e-4
)

// searchRounds is how often a search starts anew before it goes on from the best.
const searchRounds = 8

// searchByLists searches for a better plan by lists. Half of the moves try several starts,
// the other half go on from the best of them.
func searchByLists(
	ctx context.Context, p *planner.Problem, plan *planner.Plan, how Retune, rng *rand.Rand,
) *planner.Plan {
	n, moves := len(p.Tasks), how.Moves
	if slices.ContainsFunc(p.Tasks, func(t planner.Task) bool { return t.Share < 1 }) {
		how.Effort = partsEffort * cmp.Or(how.Effort, 1)
	}
	if moves <= 0 {
		moves = mostMovesListed
	}
	moves = scaledWork(min(moves/max(1, 2*n/manyJobs),
		max(movesPerTriple*n*n, min(movesPerFour*n*n*n, movesPerTask))*n), how.Effort)
	work := scaledWork(mostTimed/max(1, 2*n/manyJobs), how.Effort)
	w := weightsOf(p, plan)
	w.ended = how.ended
	l := newListSchedule(p, w, usableNodes(p, plan))
	mean := math.Abs(w.joule*float64(plan.Ledger.Total())+w.second*plan.GPUSeconds(p)+
		w.waited*plan.WaitedGPUSeconds(p)) / float64(n)
	l.late = lateness{fixed: mean, perSecond: lateWatts*w.joule + lateTime*(w.second+w.waited)}
	l.setRunning(plan)
	if !l.copyPlan(plan) {
		return plan
	}
	search := &listAnnealing{l: l, trial: trial{l: l}, rng: rng, from: plan, moves: moves}
	given := l.clone()
	if !how.local {
		newPricedList(l, plan).place()
	}
	start := l.clone()
	rounds, hot, enough := searchRounds, hottestStart, enoughWork
	if l.hasLinks() { // a move takes the work of many
		rounds, hot, enough = searchRounds/2, mildStart, enoughWorkLinked
		work = scaledWork(mostTimedLinked/max(1, n/manyLinked), how.Effort)
		if how.Moves > 0 {
			work /= briefLinked
		}
	}
	if moves < enoughMoves*n || work < enough*n {
		rounds, hot = 1, briefStart
		if given.isBetter(start) {
			start = given
		}
	}
	best := given
	var dual *bound.DueDual
	if rounds > 1 {
		dual = bound.NewDueDual(p, w.joule, w.second)
	}
	for range rounds {
		l.copyFrom(start)
		search.share = 0.5 / float64(rounds)
		search.anneal(ctx, moves/2/rounds, work/2/rounds, hot*mean, coolEnd*mean)
		if l.isBetter(best) {
			best = l.clone()
		}
		if cost, late := best.total(); dual != nil && late == 0 &&
			cost <= dual.Value*(1+closeEnough/max(1, how.Effort)) {
			moves, work = moves/rounds, work/rounds
			break
		}
	}
	l.copyFrom(best)
	search.begun, search.share = 0.5, 0.5
	search.anneal(ctx, moves/2, work/2, min(hot, mildStart)*mean, coldestEnd*mean)
	return l.toPlan(plan)
}

// closeEnough is how far above its bound a plan is, as a part of it, that is worth only a
// short search more.
const closeEnough = 1e-3

const (
	lateWatts   = 3_000 // what a second of lateness costs, as power
	lateTime    = 20    // and as time of GPUs
	enoughMoves = 2_000 // for each job, so that a search may start several times
	enoughWork  = 10 * enoughMoves
	// With gangs, nodes that these link are played, too.
	enoughWorkLinked = 200 * enoughMoves
	mostTimedLinked  = 100_000_000
	manyLinked       = 300
	briefLinked      = 4 // where less is to be searched, the part of that
)

// weightsOf returns the weights in the objective, as they are at a plan: those of a small
// change.
func weightsOf(p *planner.Problem, plan *planner.Plan) weights {
	o := p.Objective
	w := weights{joule: o.EnergyWeight, second: o.TimeWeight, waited: p.WaitWeight}
	if w.joule == 0 && w.second == 0 {
		w.joule = 1
	}
	if seconds := plan.GPUSeconds(p); o.DelayPower > 0 && seconds > 0 {
		w.second += float64(o.DelayPower) * (w.joule*float64(plan.Ledger.Total()) + w.second*seconds) /
			seconds
	}
	if w.joule == 0 {
		w.joule = w.second * tinyJouleWeight
	}
	return w
}

// tinyJouleWeight is the weight of a joule where only time counts, by a second's: of two
// plans that take as long, the one that takes less energy is better.
const tinyJouleWeight = 1e-8

// usableNodes returns how many nodes of each class a search may use: all that there are,
// unless these are many more than the plan has.
func usableNodes(p *planner.Problem, plan *planner.Plan) []int {
	used := make([]int, len(p.Cluster.Classes))
	for n := range plan.Nodes {
		if len(plan.Nodes[n].On) > 0 {
			used[plan.Nodes[n].Class]++
		}
	}
	for class := range used {
		most := max(2*used[class], 16)
		if count := p.Cluster.Classes[class].Count; count > 0 {
			most = min(most, count)
		} else if p.WaitWeight == 0 { // more would only be on for longer
			most = used[class] + 2
		}
		used[class] = most
	}
	return used
}
