package place

import (
	"math"
	"slices"
)

const (
	// fewPerGPU is the number of waiting tasks, for each GPU that is on, below which
	// all of them are planned; maxFew bounds the time for it.
	fewPerGPU, maxFew = 0.5, 400
	// minFlow is the flow of work, in GPUs that it keeps busy for each GPU that is
	// on, below which what is still to come is left out of account.
	minFlow = 0.7
	// leftGapWeight is the part of its idle cost by which a gap that a task leaves counts:
	// so the smaller of two gaps that it fits is preferred.
	leftGapWeight = 0.01
)

// isTailing reports whether little waits and little is expected. It never is with nodes
// of one GPU, which have nothing to align, nor before a second batch has arrived:
// only then is there a rate.
func (h *lateBinding) isTailing() bool {
	on := h.gpus * float64(len(h.openNodes)) // GPUs
	now := h.v.Now
	if h.gpus == 1 || h.arrivals.last == h.arrivals.begun || float64(len(h.pool)) >= min(maxFew, fewPerGPU*on) {
		return false
	}
	return h.arrivals.expectedRate(now)*min(1, h.arrivals.expectedDuration(now)/h.arrivals.mean()) < minFlow*on
}

// tailPlan is a plan for what waits, as if nothing more came.
type tailPlan struct {
	h     *lateBinding
	lanes []gpuLane // the GPUs that are on, and those of nodes to be opened
	ends  []float64 // of their nodes, by row
}

// gpuLane is a GPU in a plan for what waits.
type gpuLane struct {
	row, gpu int     // row is beyond the rows for a node to be opened
	free     float64 // when the last task planned so far ends, seconds
	tasks    int     // how many are planned on it
	first    int     // place in the pool of the task that would start now; -1: none
	run      float64 // run time of that task, seconds
}

// planTail plans what waits as if nothing more came, and starts a task that the
// plan starts now. Longest tasks first, each goes where it makes a node end
// later by least; the first of a node that isn't on yet waits for its latest
// start.
func (h *lateBinding) planTail() (i int, ok bool) {
	p := newTailPlan(h)
	for _, i := range longestFirst(h.pool) {
		j := &h.pool[i]
		at, run, cost := p.bestLane(j)
		if h.gpus*(2*h.turnOn+h.idle*j.want) < cost && h.v.CanOpen(j.task, int(j.option), 0) {
			p.addNode(j)
			continue
		}
		if at < 0 {
			continue
		}
		u := &p.lanes[at]
		if u.tasks == 0 && u.free <= h.v.Now && u.row < len(h.openNodes) {
			u.first, u.run = i, run
		}
		u.tasks++
		u.free += run
		p.ends[u.row] = max(p.ends[u.row], u.free)
	}
	for k := range p.lanes {
		if u := &p.lanes[k]; u.first >= 0 {
			h.start(&h.pool[u.first], h.openNodes[u.row].node, u.gpu, p.alignedRunTime(k))
			return u.first, true
		}
	}
	return 0, false
}

func newTailPlan(h *lateBinding) *tailPlan {
	p := &tailPlan{
		h: h, lanes: make([]gpuLane, 0, len(h.openNodes)*int(h.gpus)),
		ends: make([]float64, len(h.openNodes)),
	}
	for r := range h.openNodes {
		p.ends[r] = h.openNodes[r].end
	}
	h.openNodes.eachGPU(h.v, func(r, gpu int, free float64) {
		p.lanes = append(p.lanes, gpuLane{row: r, gpu: gpu, free: free, first: -1})
	})
	return p
}

// longestFirst returns the pool by falling run time.
func longestFirst(pool []deferredTask) []int {
	order := make([]int, len(pool))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case pool[a].want > pool[b].want:
			return -1
		case pool[a].want < pool[b].want:
			return 1
		}
		return 0
	})
	return order
}

// bestLane returns the lane where a task costs least, with its run time there and what
// it costs, joules: by what it is shortened, and by what its node ends later. A
// task that would end after its node is shortened towards that end as far as it
// pays. It is -1 where the task would be late everywhere.
func (p *tailPlan) bestLane(j *deferredTask) (best int, run, least float64) {
	h := p.h
	best, least = -1, math.Inf(1)
	shortest := h.wholeSlots(j.pacedRunTime(h.idle * h.gpus))
	for k := range p.lanes {
		u := &p.lanes[k]
		t := min(j.want, j.timeBudget(u.free))
		if t < j.min {
			continue
		}
		if over := u.free + t - p.ends[u.row]; over > 0 {
			t = max(j.min, min(t, max(t-over, shortest)))
		}
		cost := j.stretchCost(t)
		if over := u.free + t - p.ends[u.row]; over > 0 {
			cost += h.idle * h.gpus * over
		} else {
			cost -= h.idle * leftGapWeight * over
		}
		if cost < least {
			best, run, least = k, t, cost
		}
	}
	return best, run, least
}

// addNode plans a node that is opened for a task when that must start.
func (p *tailPlan) addNode(j *deferredTask) {
	h := p.h
	start := max(h.v.Now, j.latest) + h.delay
	for g := range int(h.gpus) {
		u := gpuLane{row: len(p.ends), gpu: g, free: start, first: -1}
		if g == 0 {
			u.free, u.tasks = start+j.want, 1
		}
		p.lanes = append(p.lanes, u)
	}
	p.ends = append(p.ends, start+j.want)
}

// alignedRunTime returns the run time of the first task of lane k. If it is the only one there
// it is stretched or shortened towards the end of the other GPUs of its node.
func (p *tailPlan) alignedRunTime(k int) float64 {
	h, u := p.h, &p.lanes[k]
	if u.tasks > 1 {
		return u.run
	}
	j, now := &h.pool[u.first], h.v.Now
	end := h.openNodes[u.row].end
	for m := range p.lanes {
		if m != k && p.lanes[m].row == u.row {
			end = max(end, p.lanes[m].free)
		}
	}
	cost := func(t float64) float64 {
		if over := now + t - end; over > 0 {
			return j.stretchCost(t) + h.idle*h.gpus*over
		}
		return j.stretchCost(t) + h.idle*(end-now-t)
	}
	run := u.run
	for _, t := range [...]float64{end - now, h.wholeSlots(j.pacedRunTime(h.idle * h.gpus)), j.want} {
		if t >= j.min && t <= min(j.max, j.timeBudget(now)) && cost(t) < cost(run) {
			run = t
		}
	}
	return run
}
