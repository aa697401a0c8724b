package place

import "math"

const (
	// horizon is how many mean run times the demand looks ahead, in bins.
	horizon, bins = 3, 32
	// keepMargin times the demand is what the nodes must be able to do before
	// one of them closes; with less than openMargin times, one is opened.
	keepMargin, openMargin = 1.6, 1.05
	// usable is the part of the gaps of closing nodes that tasks will fit.
	usable = 0.8
	// openShortage is the part of a node that must be lacking to open one.
	openShortage = 0.5
)

// demand counts the nodes that have to go on taking tasks, in the order of the
// rows, so that what waits and what is expected can be done in time, and the
// GPUs that are lacking beyond the nodes that are on. The time ahead is cut into
// bins; at the end of each it compares the work due by then with what the GPUs can
// do until then, both in GPU-seconds.
func (h *lateBinding) demand() (keep int, lack float64) {
	width := h.arrivals.mean() * horizon / bins
	if width == 0 {
		return len(h.openNodes), 0
	}
	due, able := h.dueWork(width), h.gapCapacity(width)
	last := h.v.Now
	var need [bins]float64
	for b := range bins {
		last += width
		all := able[b]
		for i := range h.openNodes {
			all += h.gpus * max(0, last-h.openNodes[i].end)
		}
		lack = max(lack, (due[b]*openMargin-all)/(last-h.v.Now))
		need[b] = due[b]*keepMargin - able[b]
	}
	if h.gpus == 1 {
		return len(h.openNodes), lack // closing is for GPUs of a node to end together
	}
	for ; keep < len(h.openNodes) && isLacking(&need); keep++ {
		for b := range bins {
			need[b] -= h.gpus * max(0, h.v.Now+width*float64(b+1)-h.openNodes[keep].end)
		}
	}
	return keep, lack
}

func isLacking(need *[bins]float64) bool {
	for _, n := range need {
		if n > 0 {
			return true
		}
	}
	return false
}

// dueWork returns the work that must be done by the end of each bin, GPU-seconds: what
// waits, and what is expected to arrive with a short enough window.
func (h *lateBinding) dueWork(width float64) (due [bins]float64) {
	for i := range h.pool {
		j := &h.pool[i]
		if b := (j.latest + j.want - h.v.Now) / width; b < bins {
			due[int(max(0, b))] += j.want
		}
	}
	arriving := h.arrivals.expectedRate(h.v.Now) * width
	var share [bins]float64
	for b := range bins {
		share[b] = h.arrivals.shareWithin(width * float64(b+1))
	}
	stop := min(bins, int(math.Ceil(min(bins, h.arrivals.expectedDuration(h.v.Now)/width))))
	waiting := 0.0
	for b := range bins {
		waiting += due[b]
		due[b] = waiting
		for i := 0; i <= b && i < stop; i++ {
			due[b] += arriving * share[b-i]
		}
	}
	return due
}

// gapCapacity returns the work that the gaps before the nodes' ends can take, by the end
// of each bin, GPU-seconds.
func (h *lateBinding) gapCapacity(width float64) (able [bins]float64) {
	now := h.v.Now
	h.openNodes.eachGPU(h.v, func(r, _ int, free float64) {
		for b := int((free - now) / width); b < bins; b++ {
			low, high := now+width*float64(b), now+width*float64(b+1)
			gap := min(high, h.openNodes[r].end) - max(low, free)
			if gap <= 0 {
				return
			}
			able[b] += gap * usable
		}
	})
	for b := 1; b < bins; b++ {
		able[b] += able[b-1]
	}
	return able
}
