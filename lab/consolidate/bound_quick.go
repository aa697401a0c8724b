package consolidate

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

// QuickBound returns what no answer to an instance takes less than, watts, within
// milliseconds: +Inf where there is none. It holds for every placement that
// keeps what the problem asks for.
func QuickBound(in *sharing.Instance, problem share.Problem) float64 {
	p, ok := newPacking(in, problem, true)
	if !ok {
		return math.Inf(1)
	}
	if len(p.pieces) == 0 {
		return 0
	}
	return p.rootProblem().bound
}

// dualFeasible weighs pieces so that what a group can hold is known: a sum of
// load and memory, each through a function that keeps sums within the
// capacity (dual feasible: pieces that leave less than a threshold free count
// as full, those below it as nothing).
type dualFeasible struct {
	total float64
	holds [][]float64 // by class and choice: the most that a group has
	watts []float64   // by choice: what a group of it takes at least
}

// dualFeasibles are several ways to weigh the pieces.
func (p *packing) dualFeasibles() []dualFeasible {
	thresholds := []float64{0, 0.25, 0.334, 0.5}
	shares := []float64{1, 0.7, 0.4}
	if p.slots == 0 {
		shares = nil
	}
	out := make([]dualFeasible, 0, (1+len(shares))*len(thresholds))
	for _, t := range thresholds {
		out = append(out, p.newDualFeasible(0, 0, t))
		for _, share := range shares {
			out = append(out, p.newDualFeasible(share, t, 0))
		}
	}
	return out
}

// newDualFeasible weighs a share of load by one threshold and the rest as memory by
// another; thresholds are fractions of what a GPU has at most.
func (p *packing) newDualFeasible(share, loadFrom, memFrom float64) dualFeasible {
	size := p.hosts.sizes[len(p.hosts.sizes)-1] + sharing.SlackGB
	top := 1.0
	for _, tiers := range p.tiers {
		top = max(top, tiers[len(tiers)-1].overload)
	}
	var y dualFeasible
	for i := range p.pieces {
		x := &p.pieces[i]
		y.total += share*thresholded(x.mean, top, loadFrom) +
			(1-share)*thresholded(x.memGB, size, memFrom)/size
	}
	y.total *= 1 - 1e-12
	y.holds = make([][]float64, len(p.hosts.sizes))
	for _, tiers := range p.tiers {
		for _, t := range tiers {
			y.watts = append(y.watts, t.watts)
			for k := range y.holds {
				mem := p.hosts.sizes[k] + sharing.SlackGB
				y.holds[k] = append(y.holds[k],
					share*maxThresholded(t.overload, top, loadFrom)+
						(1-share)*maxThresholded(mem, size, memFrom)/size)
			}
		}
	}
	return y
}

// thresholded returns what x of a capacity counts for with a threshold.
func thresholded(x, capacity, threshold float64) float64 {
	switch from := threshold * capacity; {
	case x > capacity-from:
		return capacity
	case x < from:
		return 0
	default:
		return x
	}
}

// maxThresholded returns the most that parts of at most x together count for.
func maxThresholded(x, capacity, threshold float64) float64 {
	if threshold > 0 && x > capacity*(1-threshold) {
		return capacity
	}
	return x
}

// prices returns the worths of a unit of a yardstick at which what groups are worth
// more than they take changes its course.
func (y *dualFeasible) prices() []float64 {
	var prices []float64
	for _, holds := range y.holds {
		for a := range holds {
			if holds[a] > 0 {
				prices = append(prices, y.watts[a]/holds[a])
			}
			for b := range a {
				if d := holds[a] - holds[b]; math.Abs(d) > 1e-9 && (y.watts[a]-y.watts[b])/d > 0 {
					prices = append(prices, (y.watts[a]-y.watts[b])/d)
				}
			}
		}
	}
	slices.Sort(prices)
	return slices.CompactFunc(prices, func(a, b float64) bool { return b-a < 1e-9*b })
}

// raiseBounds bounds what answers in some cells take.
func (y *dualFeasible) raiseBounds(p *packing, cells []classMix) {
	most := make([]float64, len(y.holds))
	for k, holds := range y.holds {
		most[k] = slices.Max(holds)
	}
	prices := y.prices()
	tops := make([][]float64, len(prices))
	for i, price := range prices {
		tops[i] = make([]float64, len(y.holds))
		for k, holds := range y.holds {
			tops[i][k] = math.Inf(-1)
			for a, held := range holds {
				tops[i][k] = max(tops[i][k], price*held-y.watts[a])
			}
		}
	}
	for i := range cells {
		c := &cells[i]
		room := 0.0
		for k, n := range c.groups {
			room += most[k] * float64(n)
		}
		if y.total > room*(1+rounding)+rounding {
			c.bound = math.Inf(1)
			continue
		}
		worth := func(j int) float64 {
			b := c.hostW + prices[j]*y.total
			for k, n := range c.groups {
				b -= tops[j][k] * float64(n)
			}
			return b
		}
		low, high := 0, len(prices)-1 // the bound is concave in the price
		for low < high {
			if mid := (low + high) / 2; worth(mid) < worth(mid+1) {
				low = mid + 1
			} else {
				high = mid
			}
		}
		bound := worth(low)
		c.bound = max(c.bound, p.roundUpBound(bound, c.hostW, c.total))
	}
}

// rootProblem returns the whole problem, with bounds by sums.
func (p *packing) rootProblem() *subproblem {
	n := &subproblem{fixed: make([]int, len(p.hosts.sizes))}
	for i := range p.pieces {
		b := bundle{piece: p.pieces[i], pieces: []int{i}, conflicts: newBitSet(len(p.pieces))}
		for j := range p.pieces {
			if i != j && p.sameTask(i, j) {
				b.conflicts.set(j)
			}
		}
		n.bundles = append(n.bundles, b)
	}
	for i := range p.hosts.table {
		c := classMix{
			groups: make([]int, len(p.hosts.sizes)), above: make([]int, len(p.hosts.sizes)),
			hostW: p.hosts.table[i],
		}
		p.hosts.gpusAt(i, c.above)
		valid := !math.IsInf(c.hostW, 1) && c.above[0] > 0
		for k := range c.above {
			c.groups[k] = c.above[k]
			if k+1 < len(c.above) {
				c.groups[k] -= c.above[k+1]
			}
			valid = valid && c.groups[k] >= 0
		}
		if c.total = c.above[0]; valid {
			n.mixes = append(n.mixes, c)
		}
	}
	for _, y := range p.dualFeasibles() {
		y.raiseBounds(p, n.mixes)
	}
	n.mixes = slices.DeleteFunc(n.mixes, func(c classMix) bool { return math.IsInf(c.bound, 1) })
	n.updateBound()
	return n
}
