package place

import "math"

// stream is what the arrivals so far tell of those to come. Times are measured
// in mean run times, so that the unit of time doesn't matter.
type stream struct {
	tasks, seen float64 // tasks seen, and their run time, seconds
	begun, last float64 // first and latest arrival
	rate, count float64 // run time and tasks that arrive per second, fading
	at          float64 // when rate and count are for
	windows     [windowBins]float64
}

const (
	// windowBins is the number of classes of windows; windowSteps of them
	// double the window, the middle one begins at a second.
	windowBins, windowSteps = 512, 8
	// memory is how many mean run times the rate looks back.
	memory = 0.22
	// silence fades the rate when nothing arrives: by e for each four tasks
	// that should have come.
	silence = 0.25
)

// saw notes a task: its window from arrival to due time and its run time. The
// batch that is there first tells nothing of the rate.
func (s *stream) saw(now, window, want float64) {
	if s.tasks == 0 {
		s.begun, s.last, s.at = now, now, now
	}
	s.tasks++
	s.seen += want
	s.windows[windowBin(window)] += want
	if now > s.begun {
		s.fade(now)
		s.rate += want / (memory * s.mean())
		s.count += 1 / (memory * s.mean())
		s.last = now
	}
}

// windowBin is the class of a window; one that is over before it begins is in
// the lowest.
func windowBin(window float64) int {
	if !(window > 0) {
		return 0
	}
	const shortest = 1e-9 // a due time may have passed already
	x := windowBins/2 + windowSteps*math.Log2(max(shortest, window))
	return int(min(max(0, x), windowBins-1))
}

// mean is the mean run time.
func (s *stream) mean() float64 { return s.seen / max(1, s.tasks) }

func (s *stream) fade(now float64) {
	f := math.Exp(-(now - s.at) / (memory * s.mean()))
	s.rate, s.count, s.at = s.rate*f, s.count*f, now
}

// flow is the work per second that is expected to arrive. It fades fast when
// nothing comes for longer than usual.
func (s *stream) flow(now float64) float64 {
	if s.rate == 0 {
		return 0
	}
	s.fade(now)
	return s.rate * math.Exp(-silence*(now-s.last)*s.count)
}

// ahead is how long the stream is expected to go on: as long as it has.
func (s *stream) ahead(now float64) float64 { return now - s.begun }

// within is the share of the work seen with a window of at most x.
func (s *stream) within(x float64) float64 {
	if s.seen == 0 || x <= 0 {
		return 0
	}
	sum, whole := 0.0, windowBin(x)
	for i := range whole {
		sum += s.windows[i]
	}
	low := math.Exp2(float64(whole-windowBins/2) / windowSteps)
	high := math.Exp2(float64(whole+1-windowBins/2) / windowSteps)
	sum += s.windows[whole] * min(1, max(0, (x-low)/(high-low)))
	return sum / s.seen
}

const (
	// horizon is how many mean run times the demand looks ahead, in bins.
	horizon, bins = 3, 32
	// keepMargin times the demand is what the nodes must be able to do before
	// one of them closes; with less than openMargin times, one is opened.
	keepMargin, openMargin = 1.6, 1.05
	// usable is the part of the gaps of closing nodes that tasks will fit.
	usable = 0.8
	// lackOpens is the part of a node that must be lacking to open one.
	lackOpens = 0.5
)

// demand counts the nodes that have to go on taking tasks, in the order of the
// rows, so that what waits and what is expected can be done in time, and the
// GPUs that are lacking beyond the nodes that are on. It compares, at the end
// of each bin, the work due by then with what the GPUs can do.
func (h *hold) demand() (keep int, lack float64) {
	width := h.mean() * horizon / bins
	if width == 0 {
		return len(h.rows), 0
	}
	due, able := h.due(width), h.able(width)
	last := h.v.Now
	var need [bins]float64
	for b := range bins {
		last += width
		all := able[b]
		for i := range h.rows {
			all += h.l * max(0, last-h.rows[i].end)
		}
		lack = max(lack, (due[b]*openMargin-all)/(last-h.v.Now))
		need[b] = due[b]*keepMargin - able[b]
	}
	if h.l == 1 {
		return len(h.rows), lack // a node of one GPU has nothing to align
	}
	for ; keep < len(h.rows) && lacking(&need); keep++ {
		for b := range bins {
			need[b] -= h.l * max(0, h.v.Now+width*float64(b+1)-h.rows[keep].end)
		}
	}
	return keep, lack
}

func lacking(need *[bins]float64) bool {
	for _, n := range need {
		if n > 0 {
			return true
		}
	}
	return false
}

// due is the work that must be done by the end of each bin: what waits, and
// what is expected to arrive with a short enough window.
func (h *hold) due(width float64) (due [bins]float64) {
	for i := range h.pool {
		j := &h.pool[i]
		if b := (j.latest + j.want - h.v.Now) / width; b < bins {
			due[int(max(0, b))] += j.want
		}
	}
	arriving := h.flow(h.v.Now) * width
	var share [bins]float64
	for b := range bins {
		share[b] = h.within(width * float64(b+1))
	}
	stop := min(bins, int(math.Ceil(min(bins, h.ahead(h.v.Now)/width))))
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

// able is the work that the gaps before the nodes' ends can take, by the end
// of each bin.
func (h *hold) able(width float64) (able [bins]float64) {
	now := h.v.Now
	h.eachGPU(func(r, _ int, free float64) {
		for b := int((free - now) / width); b < bins; b++ {
			low, high := now+width*float64(b), now+width*float64(b+1)
			gap := min(high, h.rows[r].end) - max(low, free)
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
