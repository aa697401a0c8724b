package consolidate

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// classMix is a number of groups by class, and what is known of answers with
// exactly so many.
type classMix struct {
	groups []int   // by class
	above  []int   // by class: groups of it or a larger one
	hostW  float64 // what the servers take
	total  int
	bound  float64 // no answer takes less, watts
}

const (
	// maxBudget is how many sets one search for groups may look at.
	maxBudget = 25_000_000
	// maxRounds is how often groups are looked for to solve one relaxation.
	maxRounds = 5000
)

// subproblem is a part of a problem: bundles of pieces that are still to be put into
// groups, beside groups that are settled, with so many groups in all as one of
// the cells says.
type subproblem struct {
	bundles []bundle
	fixed   []int    // settled groups by class
	fixedW  float64  // what they take
	groups  []column // the settled groups
	mixes   []classMix
	bound   float64
	depth   int
	pool    []column
	list    []column // all groups that an answer that counts can have; nil: any
	cuts    []cut
}

// relaxation is the linear program of a part: each bundle in one group, as many
// groups by class as a mix has, at least cost. With x_g for each group g, a set of
// bundles on one GPU that needs class k(g) or a larger one and takes w_g watts, and y_m
// for each mix m, whose servers take h_m watts and which has above_m(k) groups of class
// k or a larger one:
//
//	minimise    Σ_g w_g x_g + Σ_m h_m y_m
//	such that   Σ_{g has b} x_g  ≥ 1                                  for each bundle b
//	            Σ_m above_m(k) y_m − Σ_{k(g) ≥ k} x_g = settled(k)    for each class k
//	            Σ_m y_m = 1
//	            Σ_{g has two or three of c} x_g  ≤ 1                  for each cut c
//	            x, y ≥ 0
//
// There are far too many groups to list: they are found as they are needed (column
// generation). With duals π, σ, μ of bundles, classes and cuts, a group is worth adding
// where its reduced cost w_g − Σ_{b in g} π_b + Σ_{k ≤ k(g)} σ_k − Σ_c μ_c is negative,
// and [pricer] looks for such groups. Whatever the duals are, the sum of π and of the
// cuts' μ, less what the groups of a mix can be worth more than they take, is a bound on
// all answers with that mix ([relaxation.boundMixes]): it needs no solved program, only
// a finished search. Right-hand sides are off by some 1e-5, each by another amount,
// against cycling at degenerate vertices.
type relaxation struct {
	p          *packing
	subproblem *subproblem
	pricer     *pricer
	top        []float64 // by class: the most that a group is worth more than it takes, by the last duals
	low        float64   // the least that an answer takes, by the last duals
	lp         *simplex
	columns    []column // of the program, from place first on
	columnOf   []int    // by column of the program: place in columns, or -1 minus that of a cell
	mixColumn  []int    // by cell: column of the program; -1: none
	bundle     []int    // by piece: its bundle; -1: settled
	cuts       [][]int  // by piece: cuts that it is in
	count      []int    // by cut, of one column
	best       []float64
	bestAt     float64 // bound by best
	work       *int    // nodes of pricing left
	budget     int     // of them, for one search
}

func newRelaxation(p *packing, n *subproblem, work *int) *relaxation {
	one := len(n.bundles) + len(p.hosts.sizes)
	rows := one + 1 + len(n.cuts)
	right, artificial := make([]float64, rows), make([]float64, rows)
	most := p.mostW()
	for r := range right {
		artificial[r] = most
		disturb := 1e-5 * (1 + float64((r*7919+13)%101)/101)
		switch k := r - len(n.bundles); {
		case k < 0:
			right[r] = 1 + disturb
		case k < len(p.hosts.sizes):
			right[r] = disturb
			for _, f := range n.fixed[k:] {
				right[r] += float64(f)
			}
		case r == one:
			right[r], artificial[r] = 1, most*float64(one)
		default:
			right[r] = 1 + disturb
		}
	}
	x := &relaxation{
		p: p, subproblem: n, pricer: newPricer(p, n.bundles), lp: newSimplex(right, artificial), work: work,
		top: make([]float64, len(p.hosts.sizes)), bundle: make([]int, len(p.pieces)),
		mixColumn: make([]int, len(n.mixes)), bestAt: math.Inf(-1), budget: 100_000,
	}
	for i := range x.bundle {
		x.bundle[i] = -1
	}
	for b := range n.bundles {
		for _, i := range n.bundles[b].pieces {
			x.bundle[i] = b
		}
		x.addLPColumn([]coefficient{coef(b, -1)}, 0, math.MinInt) // may be covered twice
	}
	x.indexCuts()
	for c := range x.mixColumn {
		x.mixColumn[c] = -1
	}
	for _, c := range n.pool {
		x.addColumn(c)
	}
	if n.list != nil {
		n.list = slices.DeleteFunc(slices.Clone(n.list), func(c column) bool { return !x.fits(&c) })
	}
	return x
}

func (x *relaxation) addLPColumn(entries []coefficient, cost float64, what int) int {
	j := x.lp.add(entries, cost)
	for len(x.columnOf) < j {
		x.columnOf = append(x.columnOf, math.MinInt)
	}
	x.columnOf = append(x.columnOf, what)
	return j
}

// addColumn takes in a group, unless it has settled pieces or a part of a
// bundle, or pieces that may not meet.
func (x *relaxation) addColumn(c column) {
	var entries []coefficient
	for _, i := range c.pieces {
		b := x.bundle[i]
		if b < 0 {
			return
		}
		if len(x.subproblem.bundles[b].pieces) > 1 {
			if slices.ContainsFunc(x.subproblem.bundles[b].pieces,
				func(j int) bool { return !slices.Contains(c.pieces, j) }) {
				return
			}
			if i != x.subproblem.bundles[b].pieces[0] {
				continue
			}
		}
		for _, e := range entries {
			if x.subproblem.bundles[b].conflicts.has(int(e.row)) {
				return
			}
		}
		entries = append(entries, coef(b, 1))
	}
	for k := range c.class + 1 {
		entries = append(entries, coef(len(x.subproblem.bundles)+k, -1))
	}
	x.eachCut(c.pieces, func(cut int) { entries = append(entries, coef(x.convexityRow()+1+cut, 1)) })
	x.addLPColumn(entries, c.watts, len(x.columns))
	x.columns = append(x.columns, c)
}

func (x *relaxation) addMix(c int) {
	n := len(x.subproblem.bundles)
	entries := []coefficient{coef(x.convexityRow(), 1)}
	for k, groups := range x.subproblem.mixes[c].above {
		if groups > 0 {
			entries = append(entries, coef(n+k, groups))
		}
	}
	x.mixColumn[c] = x.addLPColumn(entries, x.subproblem.mixes[c].hostW, -1-c)
}

// solve finds the least of the relaxation, or stops once no cell can have an
// answer that takes less than a limit. It is false where work or time ran out
// before; cells' bounds hold in any case.
func (x *relaxation) solve(ctx context.Context, limitW float64) bool {
	smooth := 0.6
	for range maxRounds {
		if !x.solveMaster(ctx) || ctx.Err() != nil || *x.work <= 0 {
			return false
		}
		added := x.generateColumns(ctx, x.smoothedDuals(smooth))
		switch {
		case x.pruneMixes(limitW):
			return true
		case added > 0:
		case x.pricer.wasTruncated() && x.budget < maxBudget:
			x.budget *= 4
		case smooth == 0:
			return !x.pricer.wasTruncated()
		default:
			smooth = max(0, smooth-0.3)
		}
	}
	return false
}

// smoothedDuals returns the program's duals, with a share of those that gave the best bound
// so far: they change less from round to round (Wentges, 1997).
func (x *relaxation) smoothedDuals(share float64) []float64 {
	if share == 0 || x.best == nil {
		return x.lp.dual
	}
	mixed := make([]float64, len(x.lp.dual))
	for r := range mixed {
		mixed[r] = share*x.best[r] + (1-share)*x.lp.dual[r]
	}
	return mixed
}

// solveMaster solves the program over the groups so far and all cells.
func (x *relaxation) solveMaster(ctx context.Context) bool {
	for {
		if !x.lp.solve(ctx, 20000) {
			return false
		}
		x.lp.refresh()
		n := len(x.subproblem.bundles)
		worst, least := -1, -1e-7
		for c := range x.subproblem.mixes {
			if x.mixColumn[c] >= 0 {
				continue
			}
			d := x.subproblem.mixes[c].hostW - x.lp.dual[x.convexityRow()]
			for k, groups := range x.subproblem.mixes[c].above {
				d -= x.lp.dual[n+k] * float64(groups)
			}
			if d < least {
				worst, least = c, d
			}
		}
		if worst < 0 {
			return true
		}
		x.addMix(worst)
	}
}

// generateColumns looks for groups that save something by the program's duals, at
// some duals near them, and bounds what answers in each cell take by those. It
// says how many groups it found.
func (x *relaxation) generateColumns(ctx context.Context, dual []float64) int {
	p, n := x.p, len(x.subproblem.bundles)
	values := x.pieceValues(dual)
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	floor := make([]float64, len(p.hosts.sizes))
	for k := range floor {
		if k > 0 {
			floor[k] = floor[k-1]
		}
		floor[k] += dual[n+k]
	}
	for k := range floor {
		floor[k] += 1e-6
	}
	sum += x.cutDuals(dual)
	if x.subproblem.list != nil {
		x.priceListed(values, dual, floor)
	} else {
		budget := min(*x.work, x.budget)
		x.pricer.search(ctx, values, floor, budget, 0.6)
		*x.work -= budget - max(0, x.pricer.nodes)
	}
	copy(x.top, x.pricer.top)
	x.boundMixes(sum, dual)
	return x.addBestColumns(x.pricer.found)
}

// pieceValues returns what pieces are worth by some duals: a bundle's first piece is
// worth all of it.
func (x *relaxation) pieceValues(dual []float64) []float64 {
	values := make([]float64, len(x.p.pieces))
	for b := range x.subproblem.bundles {
		values[x.subproblem.bundles[b].pieces[0]] = max(0, dual[b])
	}
	return values
}

// addBestColumns adds the groups that save most by the program's duals, but only a few
// of each bundle; it says how many.
func (x *relaxation) addBestColumns(found []column) int {
	n := len(x.subproblem.bundles)
	type rated struct {
		at int
		d  float64
	}
	var all []rated
	for at, c := range found {
		d := x.reducedCost(&c)
		if d < -1e-6 {
			all = append(all, rated{at, d})
		}
	}
	slices.SortStableFunc(all, func(a, b rated) int { return cmp.Compare(a.d, b.d) })
	const often = 6
	times := make([]int, n)
	added := 0
	for _, r := range all {
		c := found[r.at]
		least := often
		for _, i := range c.pieces {
			least = min(least, times[x.bundle[i]])
		}
		if least == often {
			continue
		}
		for _, i := range c.pieces {
			times[x.bundle[i]]++
		}
		x.addColumn(c)
		added++
	}
	return added
}

// reducedCost returns what a group would save by the program's duals, negative where
// it would.
func (x *relaxation) reducedCost(c *column) float64 {
	n := len(x.subproblem.bundles)
	d := c.watts
	for _, i := range c.pieces {
		if b := x.bundle[i]; i == x.subproblem.bundles[b].pieces[0] {
			d -= x.lp.dual[b]
		}
	}
	for k := range c.class + 1 {
		d += x.lp.dual[n+k]
	}
	x.eachCut(c.pieces, func(cut int) { d -= x.lp.dual[x.convexityRow()+1+cut] })
	return d
}

// convexityRow returns the row that says that cells are mixed to one.
func (x *relaxation) convexityRow() int { return len(x.subproblem.bundles) + len(x.p.hosts.sizes) }

// boundMixes bounds what answers in each cell take, by Lagrange: what the bundles
// are worth together, less the most that so many groups can be worth more than
// they take.
func (x *relaxation) boundMixes(sum float64, dual []float64) {
	least := math.Inf(1)
	for c := range x.subproblem.mixes {
		cell := &x.subproblem.mixes[c]
		bound := sum + cell.hostW + x.subproblem.fixedW
		for k, groups := range cell.groups {
			if groups < x.subproblem.fixed[k] {
				bound = math.Inf(1)
				break
			}
			bound -= (x.top[k] + 1e-9) * float64(groups-x.subproblem.fixed[k])
		}
		least = min(least, bound)
		cell.bound = max(cell.bound, x.p.roundUpBound(bound, cell.hostW, cell.total))
	}
	x.low = least
	if least > x.bestAt {
		x.bestAt = least
		x.best = slices.Clone(dual)
	}
}

// pruneMixes leaves cells out that can't have an answer that takes less than a
// limit; it reports whether none is left.
func (x *relaxation) pruneMixes(limitW float64) bool {
	left, changed := 0, false
	for c := range x.subproblem.mixes {
		if x.subproblem.mixes[c].bound < limitW-1e-6 {
			x.subproblem.mixes[left] = x.subproblem.mixes[c]
			x.mixColumn[left] = x.mixColumn[c]
			if j := x.mixColumn[left]; j >= 0 {
				x.columnOf[j] = -1 - left
			}
			left++
			continue
		}
		if j := x.mixColumn[c]; j >= 0 {
			x.lp.cost[j] += x.p.mostW() * float64(x.lp.rows)
			x.lp.skip[j] = true
			changed = true
		}
	}
	x.subproblem.mixes, x.mixColumn = x.subproblem.mixes[:left], x.mixColumn[:left]
	if changed {
		x.lp.refresh()
	}
	return left == 0
}

// cut are three pieces: at most one group of an answer has two of them or more
// (a subset-row inequality, Jepsen et al., 2008).
type cut [3]int
