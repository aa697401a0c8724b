package consolidate

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// cutsAtOnce is how many cuts are added before the relaxation is solved
// again, and cutRounds how often that is done for one part.
const cutsAtOnce, cutRounds = 40, 12

// indexCuts lists the cuts of each piece, and adds the columns for what the
// cuts leave over.
func (x *relaxation) indexCuts() {
	x.cuts = make([][]int, len(x.p.pieces))
	x.count = make([]int, len(x.subproblem.cuts))
	for c, pieces := range x.subproblem.cuts {
		for _, i := range pieces {
			x.cuts[i] = append(x.cuts[i], c)
		}
		x.addLPColumn([]coefficient{coef(x.convexityRow()+1+c, 1)}, 0, math.MinInt)
	}
}

// eachCut hands over the cuts that a group counts in.
func (x *relaxation) eachCut(pieces []int, counts func(cut int)) {
	if len(x.count) == 0 {
		return
	}
	for _, i := range pieces {
		for _, at := range x.cuts[i] {
			if x.count[at]++; x.count[at] == 2 {
				counts(at)
			}
		}
	}
	for _, i := range pieces {
		for _, at := range x.cuts[i] {
			x.count[at] = 0
		}
	}
}

// cutDuals returns what the cuts are worth by some duals; none is worth more than 0.
func (x *relaxation) cutDuals(dual []float64) float64 {
	sum := 0.0
	for at := range x.subproblem.cuts {
		sum += min(0, dual[x.convexityRow()+1+at])
	}
	return sum
}

// priceListed is [pricer.search] over the listed groups.
func (x *relaxation) priceListed(values, dual, floor []float64) {
	q := x.pricer
	q.found, q.open = q.found[:0], math.Inf(-1)
	copy(q.top, floor)
	for at := range x.subproblem.list {
		c := &x.subproblem.list[at]
		worth := x.worth(c, values, dual)
		if worth > floor[c.class] {
			q.found = append(q.found, *c)
			q.top[c.class] = max(q.top[c.class], worth)
		}
	}
}

// worth returns how much more a group is worth than it takes.
func (x *relaxation) worth(c *column, values, dual []float64) float64 {
	worth := -c.watts
	for _, i := range c.pieces {
		worth += values[i]
	}
	x.eachCut(c.pieces, func(cut int) { worth += min(0, dual[x.convexityRow()+1+cut]) })
	return worth
}

// maxPowerBelow returns the most that an answer of so many groups can take that takes less
// than a limit.
func (p *packing) maxPowerBelow(limitW, hostW float64, groups int) float64 {
	floor := hostW + p.base*float64(groups)
	switch {
	case p.step == 0:
		return limitW
	case math.IsInf(p.step, 1):
		return floor
	default:
		return floor + p.step*math.Floor((limitW-1e-6-floor)/p.step)
	}
}

// gap returns how much more than the relaxation an answer may take that takes less
// than a limit.
func (x *relaxation) gap(limitW float64) float64 {
	most := math.Inf(-1)
	for i := range x.subproblem.mixes {
		c := &x.subproblem.mixes[i]
		most = max(most, x.p.maxPowerBelow(limitW, c.hostW, c.total))
	}
	return most - x.low + rounding*(1+math.Abs(limitW))
}

// enumerate lists all groups that an answer that takes less than a limit can
// have: those that lose less against the best by the program's duals than is
// left between the relaxation and the limit. It is false where they are too
// many.
func (x *relaxation) enumerate(ctx context.Context, limitW float64) ([]column, bool) {
	x.generateColumns(ctx, x.lp.dual)
	gap := x.gap(limitW)
	values, dual := x.pieceValues(x.lp.dual), x.lp.dual
	floor := make([]float64, len(x.top))
	for k := range floor {
		floor[k] = x.top[k] - gap - 1e-6
	}
	if x.subproblem.list != nil {
		var list []column
		for at := range x.subproblem.list {
			c := &x.subproblem.list[at]
			if x.fits(c) && x.worth(c, values, dual) > floor[c.class] {
				list = append(list, *c)
			}
		}
		return list, true
	}
	x.pricer.search(ctx, values, floor, maxBudget, 0)
	if x.pricer.wasTruncated() || len(x.pricer.found) >= maxListed {
		return nil, false
	}
	return slices.Clone(x.pricer.found), true
}

// fits reports whether a group can be in an answer of the part.
func (x *relaxation) fits(c *column) bool {
	for at, i := range c.pieces {
		b := x.bundle[i]
		if b < 0 {
			return false
		}
		bundle := &x.subproblem.bundles[b]
		if len(bundle.pieces) > 1 {
			for _, j := range bundle.pieces {
				if !slices.Contains(c.pieces, j) {
					return false
				}
			}
		}
		for _, j := range c.pieces[:at] {
			if bundle.conflicts.has(x.bundle[j]) {
				return false
			}
		}
	}
	return true
}

// violatedCuts lists cuts that the relaxation doesn't keep, the worst ones.
func (x *relaxation) violatedCuts(used []column, shares []float64) []cut {
	together := newPieceOverlap(len(x.p.pieces), used, shares)
	over := map[cut]float64{}
	var found []cut
	for a := range x.p.pieces {
		for _, b := range together.next[a] {
			for _, c := range together.next[b] {
				t := cut{a, b, c}
				slices.Sort(t[:])
				if _, seen := over[t]; seen || a == c {
					continue
				}
				over[t] = together.violation(t)
				if over[t] > 0.05 && !slices.Contains(x.subproblem.cuts, t) {
					found = append(found, t)
				}
			}
		}
	}
	slices.SortFunc(found, func(s, t cut) int {
		return cmp.Or(cmp.Compare(over[t], over[s]), slices.Compare(s[:], t[:]))
	})
	return fewCutsPerPiece(found, len(x.p.pieces))
}

// fewCutsPerPiece lists the first of some cuts, but only a few of each piece.
func fewCutsPerPiece(found []cut, pieces int) []cut {
	const often = 5
	var cuts []cut
	times := make([]int, pieces)
	for _, t := range found {
		if len(cuts) == cutsAtOnce {
			break
		}
		if max(times[t[0]], times[t[1]], times[t[2]]) >= often {
			continue
		}
		for _, i := range t {
			times[i]++
		}
		cuts = append(cuts, t)
	}
	return cuts
}

// pieceOverlap is how much pieces share groups in a relaxation.
type pieceOverlap struct {
	pieces int
	share  []float64 // by pair
	next   [][]int   // by piece: those that it shares groups with
	used   []column
	shares []float64
}

func newPieceOverlap(pieces int, used []column, shares []float64) *pieceOverlap {
	s := &pieceOverlap{
		pieces: pieces, share: make([]float64, pieces*pieces), next: make([][]int, pieces), used: used,
		shares: shares,
	}
	for i, c := range used {
		for k, a := range c.pieces {
			for _, b := range c.pieces[k+1:] {
				if s.share[a*pieces+b] == 0 {
					s.next[a] = append(s.next[a], b)
					s.next[b] = append(s.next[b], a)
				}
				s.share[a*pieces+b] += shares[i]
				s.share[b*pieces+a] = s.share[a*pieces+b]
			}
		}
	}
	return s
}

// violation is by how much a cut isn't kept: groups with two of its pieces count, and
// one with all three counts once.
func (s *pieceOverlap) violation(t cut) float64 {
	n := s.pieces
	over := s.share[t[0]*n+t[1]] + s.share[t[1]*n+t[2]] + s.share[t[0]*n+t[2]] - 1
	if over <= 0 {
		return over
	}
	for i := range s.used {
		if hasAll(s.used[i].pieces, t) {
			over -= 2 * s.shares[i]
		}
	}
	return over
}

func hasAll(pieces []int, c cut) bool {
	n := 0
	for _, i := range pieces {
		if i == c[0] || i == c[1] || i == c[2] {
			n++
		}
	}
	return n == 3
}
