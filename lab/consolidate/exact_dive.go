package consolidate

import (
	"context"
	"math"
	"slices"
)

// dive settles the groups that the relaxation uses most, one or a few at a
// time, until all are.
func (e *exactSearch) dive(ctx context.Context, n *subproblem, x *relaxation) {
	for len(n.bundles) > 0 && len(n.mixes) > 0 && ctx.Err() == nil {
		used, shares := x.usedColumns()
		n.pool = x.nearlyOptimalColumns(math.Inf(1))
		next := n.fixGroups(e.p, used, shares)
		if next == nil {
			return
		}
		work := 3_000_000
		x = newRelaxation(e.p, next, &work)
		x.solve(ctx, math.Inf(1))
		n = next
	}
	e.completeDive(ctx, n)
}

// completeDive makes an answer of the settled groups of a part: its bundles go where
// they cost least, and what comes out is improved for a while.
func (e *exactSearch) completeDive(ctx context.Context, n *subproblem) {
	var groups []group
	for _, settled := range n.groups {
		var g group
		if g.setPieces(e.p, settled.pieces, settled.class) {
			groups = append(groups, g)
		}
	}
	var loose []int
	for i := range n.bundles {
		loose = append(loose, n.bundles[i].pieces...)
	}
	e.descend(ctx, groups, loose, 100+20*len(e.p.pieces), hotW/4)
}

// fixGroups returns the part with the groups that are used most settled; nil
// where there are none.
func (n *subproblem) fixGroups(p *packing, used []column, shares []float64) *subproblem {
	if len(used) == 0 {
		return nil
	}
	c := n.copy()
	c.fixed, c.groups = slices.Clone(n.fixed), slices.Clone(n.groups)
	most := slices.Max(shares)
	gone := make([]bool, len(p.pieces))
	for i := range used {
		if shares[i] < min(most, 0.99) ||
			slices.ContainsFunc(used[i].pieces, func(j int) bool { return gone[j] }) {
			continue
		}
		for _, j := range used[i].pieces {
			gone[j] = true
		}
		c.groups = append(c.groups, used[i])
		c.fixed[used[i].class]++
		c.fixedW += used[i].watts
		if most < 0.99 {
			break
		}
	}
	c.bundles, c.list, c.cuts = nil, nil, nil
	var from [][]int
	for i := range n.bundles {
		if !gone[n.bundles[i].pieces[0]] {
			c.bundles = append(c.bundles, n.bundles[i])
			from = append(from, []int{i})
		}
	}
	c.keepApart(n, from)
	return c
}
