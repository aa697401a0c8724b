package consolidate

import (
	"context"
	"math"
	"slices"

	"github.com/epplan/epplan/planner/sharing"
)

// split cuts a part in two that have no answer in common and all of them
// together, or lists the groups that matter in it.
func (e *exactSearch) split(
	ctx context.Context, x *relaxation, used []column, shares []float64,
) []*subproblem {
	n := x.subproblem
	n.pool = x.nearlyOptimalColumns(e.bestW - n.bound)
	if children := x.splitByMix(); children != nil {
		return children
	}
	if e.pure%40 == 0 {
		e.dive(ctx, n, x)
	}
	e.pure++
	if e.tryEnumerate(ctx, x) {
		return []*subproblem{n}
	}
	a, b := x.branchingPair(used, shares)
	if a < 0 {
		return x.halveMixes()
	}
	return []*subproblem{n.branchTogether(x.p, a, b), n.branchApart(a, b)}
}

// tryEnumerate finds the groups that matter in a part, if there are few, or fewer
// than before; it reports whether there was no list yet. Where there are too
// many it isn't tried again for a while.
func (e *exactSearch) tryEnumerate(ctx context.Context, x *relaxation) bool {
	n := x.subproblem
	if n.list == nil && e.pure < e.listAt {
		return false
	}
	list, ok := x.enumerate(ctx, e.bestW)
	if !ok {
		e.listAt = 2*e.pure + 8
		return false
	}
	first := n.list == nil
	n.list = list
	return first
}

// splitByMix cuts by the number of groups of a class or larger ones where the
// relaxation mixes several.
func (x *relaxation) splitByMix() []*subproblem {
	mean := make([]float64, len(x.p.hosts.sizes))
	low, high := make([]int, len(mean)), make([]int, len(mean))
	for k := range low {
		low[k] = math.MaxInt
	}
	for c := range x.subproblem.mixes {
		j := x.mixColumn[c]
		if j < 0 || x.lp.place[j] < 0 || x.lp.value[x.lp.place[j]] < 1e-3 {
			continue
		}
		share := x.lp.value[x.lp.place[j]]
		for k, n := range x.subproblem.mixes[c].above {
			mean[k] += share * float64(n)
			low[k], high[k] = min(low[k], n), max(high[k], n)
		}
	}
	for k := range mean {
		if low[k] < high[k] {
			return x.subproblem.cutAt(k, min(high[k]-1, max(low[k], int(mean[k]))))
		}
	}
	return nil
}

// cutAt parts by whether there are at most so many groups of a class or larger.
func (n *subproblem) cutAt(class, most int) []*subproblem {
	less, more := n.copy(), n.copy()
	less.mixes, more.mixes = nil, nil
	for _, c := range n.mixes {
		if c.above[class] <= most {
			less.mixes = append(less.mixes, c)
		} else {
			more.mixes = append(more.mixes, c)
		}
	}
	return []*subproblem{less, more}
}

// halveMixes cuts a part by its cells where there is nothing else to cut; where
// there is one cell, its answer is the relaxation's own.
func (x *relaxation) halveMixes() []*subproblem {
	cells := x.subproblem.mixes
	for k := range x.p.hosts.sizes {
		low, high := math.MaxInt, 0
		for c := range cells {
			low, high = min(low, cells[c].above[k]), max(high, cells[c].above[k])
		}
		if low < high {
			return x.subproblem.cutAt(k, (low+high)/2)
		}
	}
	return nil
}

func (n *subproblem) copy() *subproblem {
	c := *n
	c.mixes = slices.Clone(n.mixes)
	c.depth++
	return &c
}

// branchingPair returns the pair of bundles whose sharing a group is least decided; -1: all
// are.
func (x *relaxation) branchingPair(used []column, shares []float64) (first, second int) {
	n := len(x.subproblem.bundles)
	share := make([]float64, n*n)
	var in []int
	for i, c := range used {
		in = in[:0]
		for _, piece := range c.pieces {
			b := x.bundle[piece]
			if x.subproblem.bundles[b].pieces[0] == piece {
				in = append(in, b)
			}
		}
		for k, a := range in {
			for _, b := range in[k+1:] {
				share[min(a, b)*n+max(a, b)] += shares[i]
			}
		}
	}
	first, second = -1, -1
	most := 0.0
	for a := range n {
		for b := a + 1; b < n; b++ {
			f := share[a*n+b]
			if f < 0.02 || f > 0.98 {
				continue
			}
			rank := min(f, 1-f) + 0.1*(x.subproblem.bundles[a].mean+x.subproblem.bundles[b].mean)
			if rank > most {
				first, second, most = a, b, rank
			}
		}
	}
	return first, second
}

// branchTogether returns the part in which two bundles share a group.
func (n *subproblem) branchTogether(p *packing, a, b int) *subproblem {
	c := n.copy()
	c.bundles = nil
	var g group
	pieces := slices.Concat(n.bundles[a].pieces, n.bundles[b].pieces)
	if n.bundles[a].conflicts.has(b) || !g.setPieces(p, pieces, 0) {
		c.mixes = nil
		return c
	}
	slices.Sort(pieces)
	merged := bundle{pieces: pieces}
	merged.load, merged.memGB, merged.kappa, merged.mean = g.load, g.memGB, g.kappa, sharing.MeanPct(g.load)
	var from [][]int
	for i := range n.bundles {
		if i != a && i != b {
			c.bundles = append(c.bundles, n.bundles[i])
			from = append(from, []int{i})
		}
	}
	c.bundles = append(c.bundles, merged)
	from = append(from, []int{a, b})
	c.keepApart(n, from)
	return c
}

// keepApart carries over which bundles may not meet, from those that each
// bundle was made of.
func (n *subproblem) keepApart(old *subproblem, from [][]int) {
	for i := range n.bundles {
		n.bundles[i].conflicts = newBitSet(len(n.bundles))
		for j := range n.bundles {
			for _, a := range from[i] {
				for _, b := range from[j] {
					if i != j && old.bundles[a].conflicts.has(b) {
						n.bundles[i].conflicts.set(j)
					}
				}
			}
		}
	}
}

// branchApart returns the part in which two bundles don't share a group.
func (n *subproblem) branchApart(a, b int) *subproblem {
	c := n.copy()
	c.bundles = slices.Clone(n.bundles)
	for _, at := range [][2]int{{a, b}, {b, a}} {
		c.bundles[at[0]].conflicts = slices.Clone(c.bundles[at[0]].conflicts)
		c.bundles[at[0]].conflicts.set(at[1])
	}
	return c
}
