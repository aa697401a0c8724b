package place

import (
	"math"
	"slices"
)

const (
	// openEnds is the part of an open node's idle time after its end that is
	// counted against a task that makes it end later.
	openEnds = 1e-3
	// spare is the part of a limited cluster that tasks may hold back from:
	// with more than that busy or waited for, nothing is held.
	spare = 0.5
)

// urgent starts a task whose latest start has come, if that costs less than
// letting it wait for the next GPU. On a limited cluster where many wait,
// every task is urgent. Gaps are the GPU-seconds before the nodes' ends that
// what waits may fill.
func (h *hold) urgent(gaps float64) (i int, ok bool) {
	crowded := h.crowded()
	var soon []float64
	waiting := 0
	for i := range h.pool {
		j := &h.pool[i]
		if j.latest > h.v.Now && !crowded {
			break
		}
		if math.IsInf(j.latest, -1) {
			h.save(j)
			return i, true
		}
		if soon == nil {
			soon = h.soon()
		}
		later := math.Inf(1)
		if waiting < len(soon) {
			later = h.later(j, soon[waiting])
		}
		r, here := h.cheapest(j, gaps)
		fresh := h.fresh(j, gaps)
		switch {
		case math.IsInf(min(here, fresh, later), 1):
			h.save(j)
			return i, true
		case here <= min(later, fresh) || crowded && r >= 0:
			h.startOn(j, &h.rows[r], min(j.want, j.room(h.v.Now)))
			return i, true
		case fresh < later || crowded && !math.IsInf(fresh, 1):
			h.startFresh(j)
			return i, true
		}
		waiting++
	}
	return 0, false
}

// crowded tells whether a limited cluster has too little to spare to hold
// tasks back.
func (h *hold) crowded() bool {
	count := h.v.Problem.Cluster.Classes[0].Count
	if count == 0 {
		return false
	}
	busy := len(h.pool)
	h.eachGPU(func(_, _ int, free float64) {
		if free > h.v.Now {
			busy++
		}
	})
	return float64(busy) > spare*float64(count)*h.l
}

// save starts a task wherever it still ends in time, or else first, or gives
// it up.
func (h *hold) save(j *held) { h.ready, h.verdict = h.rescue(j.task) }

// soon lists when the GPUs that are busy come free.
func (h *hold) soon() []float64 {
	soon := []float64{}
	h.eachGPU(func(_, _ int, free float64) {
		if free > h.v.Now {
			soon = append(soon, free)
		}
	})
	slices.Sort(soon)
	return soon
}

// later is what it costs to let a task wait until then. It must still be able
// to run on a fresh node if the GPU goes to another.
func (h *hold) later(j *held, start float64) float64 {
	if j.room(h.v.StartFor(j.task, start+h.delay)) < j.min {
		return math.Inf(1)
	}
	cost := j.extra(min(j.want, j.room(start)))
	if now := j.room(h.v.Now); now >= j.min {
		cost -= j.extra(min(j.want, now))
	}
	return cost
}

// cheapest is the node with a free GPU where starting a task now leaves the
// least idle time, and what that costs; -1 if there is none.
func (h *hold) cheapest(j *held, gaps float64) (best int, cost float64) {
	best, cost = -1, math.Inf(1)
	room := j.room(h.v.Now)
	if room < j.min {
		return best, cost
	}
	end := h.v.Now + min(j.want, room)
	for i := range h.rows {
		r := &h.rows[i]
		if r.frees == 0 {
			continue
		}
		added := (h.l - 1) * max(0, end-r.end)
		c := h.idle * openEnds * added
		if !r.open {
			c = h.unfilled(added, gaps)
		}
		if c < cost {
			best, cost = i, c
		}
	}
	return best, cost
}

// fresh is what it costs to run a task on a fresh node: switching it on and
// off, which takes about as much again, and its other GPUs' idle time.
func (h *hold) fresh(j *held, gaps float64) float64 {
	room := j.room(h.v.StartOnNew(j.task, 0))
	if room < j.min || !h.v.CanOpen(j.task, j.option, 0) {
		return math.Inf(1)
	}
	t := min(j.want, room)
	return 2*h.turnOn*h.l + h.unfilled((h.l-1)*t, gaps) + h.idle*h.l*h.delay
}

// unfilled is the idle cost of GPU-seconds that are added to the gaps there
// are and that what waits can't fill.
func (h *hold) unfilled(added, gaps float64) float64 {
	return h.idle * max(0, added-max(0, h.work-gaps))
}
