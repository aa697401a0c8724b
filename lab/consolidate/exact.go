package consolidate

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

// ExactOptions are how [Exact] searches.
type ExactOptions struct {
	Start share.Placement // an answer to set out from; may be empty
	Seed  uint64
}

// Result is an answer and what is known of better ones.
type Result struct {
	Placement share.Placement
	PowerW    float64 // what it takes; +Inf where there is no answer
	BoundW    float64 // no answer takes less; +Inf where there is proof that there is none
	Proven    bool    // no answer takes less than this one
	Parts     int     // parts of the problem that were looked at
}

// maxDescents is how often [Exact] goes on from the best answer where it found
// no proof.
const maxDescents = 100

// Exact looks for the placement that takes least and proves that nothing takes
// less, until the context ends; what it has found and knows by then is the
// result. The bound holds in any case: every sum that it rests on is rounded
// towards less.
//
// It solves any problem of this form: pieces that don't divide, with memory and
// a load over slots, go in groups onto GPUs. What a group takes depends on the
// group and the size of its GPU alone and grows with the group (here by the
// frequency that contention and the least kappa need), a group needs a GPU with
// its memory, pieces of one task need different GPUs, and what the servers take
// depends on how many GPUs of each size are needed (a knapsack). The answer is a
// set partition over groups, whose linear relaxation is solved by column
// generation over a master problem with a row for each piece and each size of
// GPU, and one that mixes numbers of GPUs. Bounds by Lagrange leave numbers of
// GPUs out of account one by one; what is left is split by them and by pairs of
// pieces (Ryan and Foster, 1981). Where few enough groups can be part of a
// better answer, they are all listed, and subset-row cuts (Jepsen et al., 2008)
// sharpen the relaxation. Groups are looked for by load alone, which bounds them
// under a curve of contention too, and each that is found counts by the curve.
func Exact(ctx context.Context, in *sharing.Instance, problem share.Problem, opt ExactOptions) Result {
	if len(in.Tasks) == 0 {
		return Result{Placement: allAsleep(in), Proven: true}
	}
	p, ok := newPacking(in, problem, false)
	if !ok {
		return Result{Placement: opt.Start, PowerW: math.Inf(1), BoundW: math.Inf(1)}
	}
	e := newExactSearch(p, opt.Seed)
	e.improve(ctx, opt.Start, ImproveOptions{Rounds: 100 + 60*len(p.pieces), Restarts: -1})
	if p.hosts.coarse {
		e.rooted, e.cut = true, QuickBound(in, problem)
	} else {
		e.prove(ctx)
	}
	for range maxDescents {
		e.descendFromBest(ctx, 20000)
	}
	r := Result{Parts: e.visited}
	r.Placement, r.PowerW = e.placed(opt.Start)
	r.BoundW, r.Proven = e.bound(), e.proven() && !math.IsInf(e.bestW, 1)
	return r
}

// prove looks for a proof by sums, then for better answers, then for a proof
// with some effort, then for better answers again, and then for a proof for as
// long as it takes.
func (e *exactSearch) prove(ctx context.Context) {
	const sets, rounds = 20_000_000, 4000
	e.begin()
	for _, work := range []int{sets, math.MaxInt} {
		if e.proven() || ctx.Err() != nil {
			return
		}
		if len(e.p.pieces) > fewPieces {
			e.descend(ctx, nil, nil, rounds, hotW)
			e.descendFromBest(ctx, rounds)
		}
		if e.proven() {
			return
		}
		e.work = work
		e.run(ctx)
	}
}

// fewPieces is up to how many pieces a short search finds a good answer.
const fewPieces = 16

// exactSearch is a branch and price: parts of the problem, by the bound of their
// relaxations, are split by the number of groups by class, and by whether two
// pieces share a GPU (Ryan and Foster).
type exactSearch struct {
	p         *packing
	best      []group
	bestW     float64
	seed      uint64
	pool      []column // groups of good answers
	knownKeys map[string]bool
	queue     subproblemQueue
	visited   int
	pure      int     // those of them that had nothing to be split by but pairs
	listAt    int     // how many of those there have to be for groups to be listed
	descents  uint64  // searches by ruin and recreate so far
	limit     int     // of parts
	rooted    bool    // the search for a proof has begun
	work      int     // sets of pieces that may still be looked at
	cut       float64 // least bound of parts that were given up
}

func newExactSearch(p *packing, seed uint64) *exactSearch {
	return &exactSearch{
		p: p, seed: seed, bestW: math.Inf(1), knownKeys: map[string]bool{}, work: math.MaxInt,
		limit: math.MaxInt, cut: math.Inf(1),
	}
}

// keepColumn notes a group of a good answer as one to begin the relaxation with.
func (e *exactSearch) keepColumn(g *group) {
	pieces := slices.Sorted(slices.Values(g.pieces))
	key := append(strconv.AppendInt(make([]byte, 0, 4*len(pieces)+4), int64(g.class), 36), ':')
	for _, i := range pieces {
		key = append(strconv.AppendInt(key, int64(i), 36), ' ')
	}
	if !e.knownKeys[string(key)] {
		e.knownKeys[string(key)] = true
		e.pool = append(e.pool, column{pieces: pieces, watts: g.watts, class: g.class})
	}
}

// bound returns what no answer takes less than.
func (e *exactSearch) bound() float64 {
	least := e.cut
	for _, n := range e.queue {
		least = min(least, n.bound)
	}
	if least >= e.bestW-1e-6 {
		return e.bestW
	}
	return least
}

// proven reports whether no answer takes less than the best.
func (e *exactSearch) proven() bool { return e.rooted && e.bound() >= e.bestW }

// begin sets out from the whole problem.
func (e *exactSearch) begin() {
	if e.rooted {
		return
	}
	e.rooted = true
	if len(e.p.pieces) > 0 {
		e.queue = subproblemQueue{e.p.rootProblem()}
	}
}

// run looks at parts until none is left, or as long as there are work and time.
func (e *exactSearch) run(ctx context.Context) {
	e.begin()
	if e.visited == 0 && len(e.queue) > 0 {
		e.queue[0].pool = e.pool
	}
	for len(e.queue) > 0 && ctx.Err() == nil && e.visited < e.limit && e.work > 0 {
		n, ok := heap.Pop(&e.queue).(*subproblem)
		if !ok || n.bound >= e.bestW-1e-6 {
			continue
		}
		e.visited++
		e.visit(ctx, n)
	}
}

// visit solves the relaxation of a part and splits it where it is still open.
func (e *exactSearch) visit(ctx context.Context, n *subproblem) {
	x := newRelaxation(e.p, n, &e.work)
	done := x.solve(ctx, e.bestW)
	for round := 0; done && n.list != nil && len(n.mixes) > 0 && round < cutRounds; round++ {
		cuts := x.violatedCuts(x.usedColumns())
		if len(cuts) == 0 {
			break
		}
		n.pool = x.nearlyOptimalColumns(e.bestW - n.bound)
		n.cuts = append(x.bindingCuts(), cuts...)
		before := x.low
		x = newRelaxation(e.p, n, &e.work)
		done = x.solve(ctx, e.bestW)
		if x.low < before+0.02 && round > 2 {
			break
		}
	}
	n.updateBound()
	if len(n.mixes) == 0 {
		return
	}
	if !done || x.isInfeasible() {
		if e.work <= 0 {
			heap.Push(&e.queue, n) // until there is more work
		} else {
			e.cut = min(e.cut, n.bound)
		}
		e.dive(ctx, n, x)
		return
	}
	used, shares := x.usedColumns()
	e.acceptIfIntegral(n, used, shares)
	if n.bound >= e.bestW-1e-6 {
		return
	}
	children := e.split(ctx, x, used, shares)
	if len(children) == 0 {
		e.cut = min(e.cut, n.bound) // nothing left to cut, numerically
	}
	for _, child := range children {
		child.updateBound()
		if len(child.mixes) > 0 {
			heap.Push(&e.queue, child)
		}
	}
}

// bindingCuts lists the cuts that matter to the relaxation.
func (x *relaxation) bindingCuts() []cut {
	var cuts []cut
	for at, c := range x.subproblem.cuts {
		if x.lp.dual[x.convexityRow()+1+at] < -1e-6 {
			cuts = append(cuts, c)
		}
	}
	return cuts
}

// updateBound works out the bound of a part from its cells.
func (n *subproblem) updateBound() {
	n.bound = math.Inf(1)
	for i := range n.mixes {
		n.bound = min(n.bound, n.mixes[i].bound)
	}
}

// acceptIfIntegral takes the groups of a relaxation as an answer where they are whole.
func (e *exactSearch) acceptIfIntegral(n *subproblem, used []column, shares []float64) {
	groups := slices.Clone(n.groups)
	for i, c := range used {
		if shares[i] > 0.99 {
			groups = append(groups, c)
		}
	}
	e.offerSolution(groups)
}

// offerSolution takes groups as an answer where they are one; a piece that is in more
// than one group stays in the first.
func (e *exactSearch) offerSolution(sets []column) {
	seen := make([]bool, len(e.p.pieces))
	covered := 0
	var groups []group
	for _, set := range sets {
		var pieces []int
		for _, i := range set.pieces {
			if !seen[i] {
				seen[i] = true
				covered++
				pieces = append(pieces, i)
			}
		}
		var g group
		if len(pieces) > 0 && g.setPieces(e.p, pieces, set.class) {
			groups = append(groups, g)
		}
	}
	if covered < len(seen) {
		return
	}
	if watts := e.p.total(groups); watts < e.bestW-1e-9 {
		e.best, e.bestW = groups, watts
	}
}

// isInfeasible reports whether the relaxation has no answer at all.
func (x *relaxation) isInfeasible() bool {
	for r := range x.lp.rows {
		if row := x.lp.place[r]; row >= 0 && x.lp.value[row] > 1e-3 {
			return true
		}
	}
	return false
}

// usedColumns lists the groups that a relaxation uses, and how much of each.
func (x *relaxation) usedColumns() (columns []column, shares []float64) {
	for r, j := range x.lp.basis {
		if at := x.columnIndex(j); at >= 0 && x.lp.value[r] > 1e-3 {
			columns = append(columns, x.columns[at])
			shares = append(shares, x.lp.value[r])
		}
	}
	return columns, shares
}

func (x *relaxation) columnIndex(j int) int {
	if j < len(x.columnOf) {
		return x.columnOf[j]
	}
	return math.MinInt
}

// nearlyOptimalColumns lists the groups that can be part of an answer that takes less than
// watts more than the relaxation; the best ones where they are many.
func (x *relaxation) nearlyOptimalColumns(gapW float64) []column {
	type rated struct {
		at int
		d  float64
	}
	var all []rated
	for j := range x.lp.cost {
		if at := x.columnIndex(j); at >= 0 {
			if d := x.lp.reducedCost(j); d < gapW+1e-6 {
				all = append(all, rated{at, d})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b rated) int { return cmp.Compare(a.d, b.d) })
	all = all[:min(len(all), 4000)]
	out := make([]column, 0, len(all))
	for _, r := range all {
		out = append(out, x.columns[r.at])
	}
	return out
}

// subproblemQueue is a queue of parts by bound, deep ones first.
type subproblemQueue []*subproblem

func (q subproblemQueue) Len() int { return len(q) }

func (q subproblemQueue) Less(i, j int) bool {
	if q[i].bound != q[j].bound {
		return q[i].bound < q[j].bound
	}
	return q[i].depth > q[j].depth
}

func (q subproblemQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push adds a part.
func (q *subproblemQueue) Push(x any) {
	if n, ok := x.(*subproblem); ok {
		*q = append(*q, n)
	}
}

// Pop takes the last part.
func (q *subproblemQueue) Pop() any {
	old := *q
	n := old[len(old)-1]
	*q = old[:len(old)-1]
	return n
}
