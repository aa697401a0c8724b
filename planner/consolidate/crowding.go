package consolidate

import (
	"math"

	"github.com/epplan/epplan/planner/sharing"
)

// A curve of contention makes a group slower than its load does: by the
// exponent, by how many pieces there are, and by how full the GPU's memory is.
// So a group may be faster on a larger GPU than the smallest that has its
// memory, and take a lower frequency there: it is of a class of GPU by choice.
// What holds by load alone stays a bound, as a curve takes no less time.

// curveOf is the curve that counts in a problem; nil where load alone does.
func curveOf(in *sharing.Instance, problem Problem) *sharing.Curve {
	if problem != Safe || in.Contention == nil || *in.Contention == sharing.LinearCurve() {
		return nil
	}
	return in.Contention
}

// sizeMatters reports whether a group may be faster on a larger GPU.
func (p *packing) sizeMatters() bool { return p.curve != nil && p.curve.ByMemory > 0 }

// work is how many slots a slot of some load takes on average, GPUs by slot.
func (p *packing) work(load []float64) float64 {
	if p.curve == nil || len(load) == 0 {
		return overload(load)
	}
	sum := 0.0
	for _, u := range load {
		sum += p.curve.Work(u)
	}
	return sum / float64(len(load))
}

// workWith is the work of two loads together.
func (p *packing) workWith(load, more []float64) float64 {
	if len(more) == 0 {
		return 1
	}
	sum := 0.0
	if p.curve == nil {
		for k, u := range more {
			sum += max(1, load[k]+u)
		}
	} else {
		for k, u := range more {
			sum += p.curve.Work(load[k] + u)
		}
	}
	return sum / float64(len(more))
}

// interference is what so many pieces cost each other beside their work on a GPU of a
// class.
func (p *packing) interference(pieces int, memGB float64, class int) float64 {
	if p.curve == nil {
		return 1
	}
	return p.curve.OverheadFactor(&sharing.Occupancy{
		Tasks: pieces, Memory: min(1, memGB/p.hosts.sizes[class]),
	})
}

// setPrice is what the group takes on the smallest GPU from a class on that keeps
// what its tasks allow; false where none does.
func (g *group) setPrice(p *packing, least int) bool {
	work := p.work(g.load)
	g.class = p.hosts.smallestClass(g.memGB)
	if p.sizeMatters() && g.class >= 0 {
		g.class = max(g.class, least)
	}
	for g.class >= 0 && g.class < len(p.hosts.sizes) {
		g.over = work * p.interference(len(g.pieces), g.memGB, g.class)
		if k := p.lowestTier(g.kappa, g.over); k >= 0 {
			g.watts = p.tiers[g.kappa][k].watts
			return true
		}
		if !p.sizeMatters() {
			return false
		}
		g.class++
	}
	return false
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

// placed is the best placement and what it takes: the start where nothing
// better was found, as may be where some sizes of GPU count as smaller ones.
func (e *exactSearch) placed(start Placement) (Placement, float64) {
	e.useLargerGPUs()
	if e.p.hosts.coarse {
		if v := Evaluate(e.p.in, start); v.FeasibleFor(e.p.problem) && v.PowerW < e.bestW {
			return start, v.PowerW
		}
	}
	if math.IsInf(e.bestW, 1) {
		return start, e.bestW
	}
	return e.p.placement(e.best), e.bestW
}

// interferenceBounds is the least that pieces of a set cost each other beside their work
// on any GPU, and those of a set with more of them.
func (q *pricer) interferenceBounds(l *searchLevel) (now, more float64) {
	if q.p.curve == nil {
		return 1, 1
	}
	const rounding = 1e-12
	largest := len(q.p.hosts.sizes) - 1
	return q.p.interference(l.pieces, l.memGB, largest) * (1 - rounding),
		q.p.interference(l.pieces+1, l.memGB, largest) * (1 - rounding)
}

// offerSizes takes the set as groups on GPUs of the classes on which it takes
// less than on smaller ones, where that is worth enough.
func (q *pricer) offerSizes(l *searchLevel, class int) {
	tiers := q.p.tiers[l.kappa]
	most := l.value - tiers[q.p.lowestTier(l.kappa, l.over*l.now)].watts
	work, least := 0.0, math.Inf(1)
	for k := class; k < len(q.p.hosts.sizes); k++ {
		if most > q.targetValue(k) {
			if work == 0 {
				work = q.p.work(l.load)
			}
			if t := q.p.lowestTier(l.kappa, work*q.p.interference(l.pieces, l.memGB, k)); t >= 0 &&
				tiers[t].watts < least {
				least = tiers[t].watts
				q.addFound(l, k, least)
			}
		}
		if !q.p.sizeMatters() {
			return
		}
	}
}
