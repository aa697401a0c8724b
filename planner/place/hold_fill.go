package place

import "math"

// Lengths of time here are in mean run times of the tasks so far.
const (
	// near is how close a task's latest start must be to go before all others.
	near = 0.35
	// A latest start closer than pressing counts in favour of a task: the closer
	// the more, up to favour of a whole node's idle time.
	pressing, favour = 0.6, 0.035
	// restLeast and restPart say how much of a gap that a task leaves will stay
	// idle: all of it up to restLeast, a part of what is longer.
	restLeast, restPart = 0.09, 0.05
	// worth is the part of a gap's idle cost that filling it may cost.
	worth = 0.8
	// laterOpen is the part of an open node's idle time that is expected to
	// stay idle if it ends later; of a closing node it is all.
	laterOpen = 0.1
	// shortlist is how many waiting tasks are looked at, most urgent first.
	shortlist = 1024
)

// fill starts the task that wastes least on a free GPU: the most urgent one if
// it is near its latest start, on an open node; or else the best one for the
// node that ends first.
func (h *hold) fill() (i int, ok bool) {
	if j := &h.pool[0]; j.latest < h.v.Now+near*h.mean() {
		if r, t := h.bestRow(j); r != nil {
			h.startOn(j, r, t)
			return 0, true
		}
	}
	for n := len(h.rows) - 1; n >= 0; n-- {
		r := &h.rows[n]
		if r.frees == 0 {
			continue
		}
		best, t, waste := h.bestTask(r)
		if best >= 0 && (r.open || waste < worth*h.idle*(r.end-h.v.Now)) {
			h.startOn(&h.pool[best], r, t)
			return best, true
		}
	}
	return 0, false
}

// bestRow is the open node with a free GPU where a task wastes least, and its
// run time there.
func (h *hold) bestRow(j *held) (best *row, run float64) {
	least := math.Inf(1)
	for n := range h.rows {
		r := &h.rows[n]
		if r.frees == 0 || !r.open {
			continue
		}
		if t, waste := h.waste(j, r); waste < least {
			best, run, least = r, t, waste
		}
	}
	return best, run
}

// bestTask is the waiting task that wastes least on a node's free GPU; -1 if
// none can run there.
func (h *hold) bestTask(r *row) (best int, run, least float64) {
	best, least = -1, math.Inf(1)
	for i := range min(len(h.pool), shortlist) {
		if t, waste := h.waste(&h.pool[i], r); waste < least {
			best, run, least = i, t, waste
		}
	}
	return best, run, least
}

// waste is the least that a task costs on a free GPU of a node beyond what it
// takes at its own pace, joules, and the run time for it: its own, one that ends
// with the node, or a shorter one beyond the node's end.
func (h *hold) waste(j *held, r *row) (run, least float64) {
	least = math.Inf(1)
	room, gap := j.room(h.v.Now), r.end-h.v.Now
	if room < j.min {
		return 0, least
	}
	later := h.idle * (h.gpus - 1)
	if r.open {
		later *= laterOpen
	}
	try := func(t float64) {
		if t = min(t, room); t < j.min || t > j.max {
			return
		}
		cost := j.extra(t)
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
		try(max(gap, h.slots(j.paced(later))))
	}
	if gap > 0 {
		try(min(gap, j.max))
	}
	if left := (j.latest - h.v.Now) / (pressing * h.mean()); left < 1 {
		least -= h.idle * h.gpus * favour * h.mean() * (1 - left)
	}
	return run, least
}

// idleRest is the idle cost to be expected of a gap of so many seconds that a task
// leaves.
func (h *hold) idleRest(gap float64) float64 {
	return h.idle * min(gap, restLeast*h.mean()+restPart*gap)
}
