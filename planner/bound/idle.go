package bound

import (
	"cmp"
	"math"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/heap"
	"github.com/epplan/epplan/planner"
)

// idleBound returns how far the idle time of the node that runs the longest task
// lifts the bound above the sum of the tasks' own minima.
//
// Let M be the longest run time, w_i the GPUs of task i and t_i its run time. The
// node of the longest task is on for at least M, all nodes together for at least
// the work Σw_i·t_i; so idle ≥ l·M − Σw_i·t_i, and idle ≥ 0. With idle power x,
// any β in [0, x] and c_i(t) the cost of task i at run time t,
//
//	cost ≥ Σc_i(t_i) + β·(l·M − Σw_i·t_i) ≥ min_M β·l·M + Σ min_{t ≤ M} (c_i(t) − β·w_i·t)
//
// with l the GPUs of the node, idleDual.gpus.
//
// The right side is concave in β and 0 above Run at β = 0, where its slope is
// l·M − Σw_i·t_i at the tasks' own optima: where that isn't positive, nothing is
// to be gained. Any β proves a bound; the best one is searched for.
func idleBound(p *planner.Problem, tasks []boundTask) float64 {
	d := newIdleDual(p, tasks)
	if d == nil {
		return 0
	}
	// Golden-section search for the best β. 16 steps narrow it down to a part in
	// 2,000; as any β proves a bound, that is a matter of tightness alone.
	const golden, steps = 0.6180339887498949, 16
	low, high := 0.0, d.idle
	best := 0.0
	at := [2]float64{high - golden*(high-low), low + golden*(high-low)}
	value := [2]float64{d.value(at[0]), d.value(at[1])}
	for range steps {
		best = max(best, value[0], value[1])
		if value[0] < value[1] {
			low = at[0]
			at[0], value[0] = at[1], value[1]
			at[1] = low + golden*(high-low)
			value[1] = d.value(at[1])
		} else {
			high = at[1]
			at[1], value[1] = at[0], value[0]
			at[0] = high - golden*(high-low)
			value[0] = d.value(at[0])
		}
	}
	return max(best, d.value(d.idle))
}

// idleDual is the dual function of idleBound.
type idleDual struct {
	p     *planner.Problem
	tasks []boundTask
	gpus  float64 // fewest GPUs of a node that can run the tasks
	idle  float64 // least price of an idle GPU, watts
	run   float64 // sum of the tasks' own minima
}

// newIdleDual is nil where the bound cannot be lifted.
func newIdleDual(p *planner.Problem, tasks []boundTask) *idleDual {
	d := &idleDual{p: p, tasks: tasks, gpus: math.Inf(1), idle: math.Inf(1)}
	for i := range p.Cluster.Classes {
		k := &p.Cluster.Classes[i]
		d.gpus, d.idle = min(d.gpus, float64(k.GPUs)), min(d.idle, float64(k.IdleW+k.HostW))
	}
	longest, work := 0.0, 0.0
	for i := range tasks {
		longest = max(longest, tasks[i].time)
		work += tasks[i].weight * tasks[i].time
		d.run += tasks[i].least
	}
	if d.idle == 0 || d.gpus*longest <= work {
		return nil
	}
	return d
}

// value returns the dual function at a price β, less Run, rounded down. The minimum
// over M is found by halving intervals: on [a, b] the function is at least
// β·l·a plus the tasks' minima for M = b, which fall as M grows.
func (d *idleDual) value(beta float64) float64 {
	s := dualSlice{idleDual: d, beta: beta, unbounded: make([]unboundedMinimum, len(d.tasks))}
	low, high := 0.0, 0.0
	for i := range d.tasks {
		s.unbounded[i] = d.minimum(&d.tasks[i], beta, math.Inf(1))
		low, high = max(low, d.tasks[i].shortest), max(high, s.unbounded[i].time)
	}
	high = max(low, high) // beyond it, nothing falls any more
	q := heap.Heap[boundedInterval]{{low, high, beta*d.gpus*low + s.sum(high)}}
	for range maxHalvings {
		top := q[0]
		if top.to-top.from <= narrowEnough*top.to {
			break
		}
		mid := 0.5 * (top.from + top.to)
		q[0] = boundedInterval{top.from, mid, beta*d.gpus*top.from + s.sum(mid)}
		q.FixFirst()
		q.Push(boundedInterval{mid, top.to, top.least - beta*d.gpus*(top.from-mid)})
	}
	least := q[0].least
	return least - d.run - roundedDown*math.Abs(least)
}

const (
	// maxHalvings bounds the time of the search. What is proved by then is about
	// 1e-5 below the dual function.
	maxHalvings = 400
	// narrowEnough is the relative width of an interval of M that isn't halved any more.
	narrowEnough = 1e-7
	// roundedDown keeps rounding in the sums from lifting the bound, relative.
	roundedDown = 1e-9
)

// dualSlice is the dual function at one price.
type dualSlice struct {
	*idleDual
	beta      float64
	unbounded []unboundedMinimum // by task
}

// unboundedMinimum is the least of c(t) − β·w·t over all t that the task allows, and
// a run time from which on a longer one allowed doesn't lower it.
type unboundedMinimum struct{ value, time float64 }

// sum adds up the tasks' minima over t ≤ m.
func (s *dualSlice) sum(m float64) float64 {
	total := 0.0
	for i := range s.tasks {
		if s.unbounded[i].time <= m {
			total += s.unbounded[i].value
		} else {
			total += s.minimum(&s.tasks[i], s.beta, m).value
		}
	}
	return total
}

// minimum returns the least of c(t) − β·w·t over t ≤ m and the task's room, on any
// class.
func (d *idleDual) minimum(b *boundTask, beta, m float64) unboundedMinimum {
	t := &d.p.Tasks[b.task]
	least := unboundedMinimum{value: math.Inf(1)}
	room := min(b.timeBudget, m)
	for i := range d.p.Cluster.Classes {
		k := &d.p.Cluster.Classes[i]
		o := t.Option(k.Model)
		if !k.CanRun(t, o) {
			continue
		}
		weight := gpuWeight(t, o)
		price := min(beta, maxTimePrice(t, o, k))
		pt, ok := cheapest(t, o, dvfsmodel.PricedTime(k.HostW-dvfsmodel.Watt(price)), room)
		if !ok {
			continue
		}
		value := float64(pt.Energy) + (float64(k.HostW)-price)*pt.Time
		until := pt.Time
		if beta > price {
			value -= (beta - price) * room
			until = room
		}
		if value *= weight; value < least.value {
			least.value = value
		}
		least.time = max(least.time, until)
	}
	return least
}

// maxTimePrice returns the highest price of time, subtracted from a task's power, at
// which its response is known to find the true minimum; host power may go in any case.
func maxTimePrice(t *planner.Task, option int, k *planner.NodeClass) float64 {
	if t.Share < 1 {
		return math.Inf(1)
	}
	return float64(dvfsmodel.MaxDiscount(t.Options[option].Response) + k.HostW)
}

// boundedInterval is an interval of M with a lower bound of the dual function there.
type boundedInterval struct{ from, to, least float64 }

// Compare is that of a heap: the interval with the lowest bound first.
func (a boundedInterval) Compare(b boundedInterval) int { return cmp.Compare(a.least, b.least) }
