package place

import "math"

const (
	// openEndCost is the part of an open node's idle time after its end that is
	// counted against a task that makes it end later: hardly any, for other tasks
	// will use it.
	openEndCost = 1e-3
	// minSpare is the part of a limited cluster's GPUs that may be busy or waited for
	// while tasks are still held back.
	minSpare = 0.5
)

// startUrgent starts a task whose latest start has come, if that costs less than
// letting it wait for the next GPU. On a limited cluster where many wait,
// every task is urgent. Gaps are as look counts them: what waits may fill them.
func (h *lateBinding) startUrgent(gaps float64) (i int, ok bool) {
	crowded := h.isCrowded()
	var soon []float64
	for i := range h.pool {
		j := &h.pool[i]
		if j.latest > h.v.Now && !crowded {
			break
		}
		if soon == nil {
			soon = h.openNodes.busyUntil(h.v)
		}
		later := math.Inf(1)
		if i < len(soon) { // each urgent task before this one waits for a GPU of its own
			later = j.laterCost(soon[i])
		}
		r, here := h.cheapestNode(j, gaps)
		fresh := h.freshCost(j, gaps)
		switch {
		case math.IsInf(min(here, fresh, later), 1):
			h.ready, h.verdict = placeAsLastResort(h.v, j.task)
			return i, true
		case here <= min(later, fresh) || crowded && r >= 0:
			h.startOn(j, &h.openNodes[r], min(j.want, j.timeBudget(h.v.Now)))
			return i, true
		case fresh < later || crowded && !math.IsInf(fresh, 1):
			h.startFresh(j)
			return i, true
		}
	}
	return 0, false
}

// isCrowded reports whether a limited cluster has too little to spare to hold
// tasks back.
func (h *lateBinding) isCrowded() bool {
	count := h.v.Problem.Cluster.Classes[0].Count
	if count == 0 {
		return false
	}
	busy := len(h.pool)
	h.openNodes.eachGPU(h.v, func(_, _ int, free float64) {
		if free > h.v.Now {
			busy++
		}
	})
	return float64(busy) > minSpare*float64(count)*h.gpus
}

// laterCost returns what it costs more to start a task then, on a GPU that comes free,
// than to start it now; +Inf where it could no longer run on a fresh node if that
// GPU went to another task.
func (j *deferredTask) laterCost(start float64) float64 {
	v := j.on.v
	if j.timeBudget(v.StartFor(j.task, start+j.on.delay)) < j.min {
		return math.Inf(1)
	}
	cost := j.stretchCost(min(j.want, j.timeBudget(start)))
	if now := j.timeBudget(v.Now); now >= j.min {
		cost -= j.stretchCost(min(j.want, now))
	}
	return cost
}

// cheapestNode returns the row with a free GPU where starting a task now leaves the
// least idle time, and what that costs, joules; -1 and +Inf if there is none.
func (h *lateBinding) cheapestNode(j *deferredTask, gaps float64) (best int, cost float64) {
	best, cost = -1, math.Inf(1)
	room := j.timeBudget(h.v.Now)
	if room < j.min {
		return best, cost
	}
	end := h.v.Now + min(j.want, room)
	for i := range h.openNodes {
		r := &h.openNodes[i]
		if r.freeCount == 0 {
			continue
		}
		added := (h.gpus - 1) * max(0, end-r.end)
		c := h.idle * openEndCost * added
		if !r.keepsOpen {
			c = h.unfilled(added, gaps)
		}
		if c < cost {
			best, cost = i, c
		}
	}
	return best, cost
}

// freshCost returns what it costs to run a task on a fresh node, joules: switching it
// on, the wait until it goes off again, which is worth about as much, and its other
// GPUs' idle time.
func (h *lateBinding) freshCost(j *deferredTask, gaps float64) float64 {
	room := j.timeBudget(h.v.StartOnNew(j.task, 0))
	if room < j.min || !h.v.CanOpen(j.task, int(j.option), 0) {
		return math.Inf(1)
	}
	t := min(j.want, room)
	return 2*h.turnOn*h.gpus + h.unfilled((h.gpus-1)*t, gaps) + h.idle*h.gpus*h.delay
}

// unfilled returns the idle cost, joules, of GPU-seconds that are added to the gaps
// there are, as far as what waits can't fill them.
func (h *lateBinding) unfilled(added, gaps float64) float64 {
	return h.idle * max(0, added-max(0, h.work-gaps))
}
