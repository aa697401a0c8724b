package place

import "math"

// arrivalStream is what the arrivals so far tell of those to come. A task's window is
// the time from its arrival to its due time.
type arrivalStream struct {
	tasks, seen float64             // tasks seen, and their run time, seconds
	begun, last float64             // first and latest arrival, seconds
	rate, count float64             // run time and tasks that arrive per second, fading
	at          float64             // when rate and count are for, seconds
	windows     [windowBins]float64 // run time by length of the window, seconds
}

const (
	// windowBins is the number of bins for windows; windowSteps of them double the
	// window, the middle one begins at a second.
	windowBins, windowSteps = 512, 8
	// rateMemory is how many mean run times the rate looks back.
	rateMemory = 0.22
	// silenceFade fades the rate when nothing arrives: by e for each four tasks
	// that should have come.
	silenceFade = 0.25
)

// noteArrival notes a task that arrives, its window and the run time that it wants, seconds.
// The batch that is there first tells nothing of the rate.
func (s *arrivalStream) noteArrival(now, window, want float64) {
	if s.tasks == 0 {
		s.begun, s.last, s.at = now, now, now
	}
	s.tasks++
	s.seen += want
	s.windows[windowBin(window)] += want
	if now > s.begun {
		s.decay(now)
		s.rate += want / (rateMemory * s.mean())
		s.count += 1 / (rateMemory * s.mean())
		s.last = now
	}
}

// windowBin returns the bin of a window; one that is over before it begins is in the
// lowest.
func windowBin(window float64) int {
	if !(window > 0) {
		return 0
	}
	const shortest = 1e-9 // a due time may have passed already
	x := windowBins/2 + windowSteps*math.Log2(max(shortest, window))
	return int(min(max(0, x), windowBins-1))
}

func (s *arrivalStream) mean() float64 { return s.seen / max(1, s.tasks) }

// decay lets rate and count forget as much as they do up to now.
func (s *arrivalStream) decay(now float64) {
	f := math.Exp(-(now - s.at) / (rateMemory * s.mean()))
	s.rate, s.count, s.at = s.rate*f, s.count*f, now
}

// expectedRate returns the work per second that is expected to arrive. It fades fast when
// nothing comes for longer than usual.
func (s *arrivalStream) expectedRate(now float64) float64 {
	if s.rate == 0 {
		return 0
	}
	s.decay(now)
	return s.rate * math.Exp(-silenceFade*(now-s.last)*s.count)
}

// expectedDuration returns how long the stream is expected to go on: as long as it has.
func (s *arrivalStream) expectedDuration(now float64) float64 { return now - s.begun }

// shareWithin returns the share of the work seen with a window of at most x seconds. Inside
// a bin it grows evenly.
func (s *arrivalStream) shareWithin(x float64) float64 {
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
