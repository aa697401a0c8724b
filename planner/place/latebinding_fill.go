package place

import "math"

// Lengths of time here are in mean run times of the tasks so far.
const (
	// urgentWithin is how close a task's latest start must be to go before all others.
	urgentWithin = 0.35
	// A latest start closer than pressing counts in favour of a task: the closer
	// the more, up to favour of a whole node's idle time.
	favourWithin, maxFavour = 0.6, 0.035
	// minRest and restPart say how much of a gap that a task leaves will stay
	// idle: all of it up to minRest, a part of what is longer.
	minRest, restPart = 0.09, 0.05
	// fillWorth is the part of a gap's idle cost that filling it may cost.
	fillWorth = 0.8
	// laterOpenIdle is the part of an open node's idle time that is expected to
	// stay idle if it ends later; of a closing node it is all.
	laterOpenIdle = 0.1
	// shortlist is how many waiting tasks are looked at, most urgent first.
	shortlist = 1024
)

// fillGap starts the task that wastes least on a free GPU: the most urgent one if
// it is near its latest start, on an open node; or else the best one for the
// node that ends first.
func (h *lateBinding) fillGap() (i int, ok bool) {
	if j := &h.pool[0]; j.latest < h.v.Now+urgentWithin*h.arrivals.mean() {
		if r, t := h.bestNode(j); r != nil {
			h.startOn(j, r, t)
			return 0, true
		}
	}
	for n := len(h.openNodes) - 1; n >= 0; n-- {
		r := &h.openNodes[n]
		if r.freeCount == 0 {
			continue
		}
		best, t, waste := h.bestTask(r)
		if best >= 0 && (r.keepsOpen || waste < fillWorth*h.idle*(r.end-h.v.Now)) {
			h.startOn(&h.pool[best], r, t)
			return best, true
		}
	}
	return 0, false
}

// bestNode returns the open node with a free GPU where a task wastes least, and its
// run time there.
func (h *lateBinding) bestNode(j *deferredTask) (best *openNode, run float64) {
	least := math.Inf(1)
	for n := range h.openNodes {
		r := &h.openNodes[n]
		if r.freeCount == 0 || !r.keepsOpen {
			continue
		}
		if t, waste := h.leastWaste(j, r); waste < least {
			best, run, least = r, t, waste
		}
	}
	return best, run
}

// bestTask returns the waiting task that wastes least on a node's free GPU; -1 if
// none can run there.
func (h *lateBinding) bestTask(r *openNode) (best int, run, least float64) {
	best, least = -1, math.Inf(1)
	for i := range min(len(h.pool), shortlist) {
		if t, waste := h.leastWaste(&h.pool[i], r); waste < least {
			best, run, least = i, t, waste
		}
	}
	return best, run, least
}

// leastWaste returns the least that a task costs on a free GPU of a node beyond what it
// takes at its own pace, joules, and the run time for it: its own, one that ends
// with the node, or a shorter one beyond the node's end.
func (h *lateBinding) leastWaste(j *deferredTask, r *openNode) (run, least float64) {
	least = math.Inf(1)
	room, gap := j.timeBudget(h.v.Now), r.end-h.v.Now
	if room < j.min {
		return 0, least
	}
	later := h.idle * (h.gpus - 1)
	if r.keepsOpen {
		later *= laterOpenIdle
	}
	try := func(t float64) {
		if t = min(t, room); t < j.min || t > j.max {
			return
		}
		cost := j.stretchCost(t)
		if t > gap {
			cost += later * (t - gap)
		} else {
			cost += h.idleRest(gap - t)
		}
		if cost < least {
			run, least = t, cost
		}
	}
	try(j.want)
	if j.want > gap {
		try(max(gap, h.wholeSlots(j.pacedRunTime(later))))
	}
	if gap > 0 {
		try(min(gap, j.max))
	}
	if left := (j.latest - h.v.Now) / (favourWithin * h.arrivals.mean()); left < 1 {
		least -= h.idle * h.gpus * maxFavour * h.arrivals.mean() * (1 - left)
	}
	return run, least
}

// idleRest returns the idle cost to be expected of a gap of so many seconds that a task
// leaves.
func (h *lateBinding) idleRest(gap float64) float64 {
	return h.idle * min(gap, minRest*h.arrivals.mean()+restPart*gap)
}
