package record

import (
	"math"
	"slices"
	"time"
)

// SeriesSampler makes a [Series] of samples, in bounded memory: when a run outgrows
// its points ([MaxPoints]), neighbours are joined and the interval doubles. Each point is the
// mean over the sampled time in its interval.
type SeriesSampler struct {
	most     int // points
	interval time.Duration
	points   []intervalSums
}

// intervalSums is the samples of one interval.
type intervalSums struct {
	sum     float64 // utilisation × seconds
	seconds float64
}

// NewSeriesSampler makes a sampler that begins with one point per interval, which is
// rounded to whole milliseconds.
func NewSeriesSampler(interval time.Duration) *SeriesSampler { return newSampler(interval, MaxPoints) }

// NewProfileSampler returns a sampler of at most [MaxProfilePoints] points, for a
// [Profile].
func NewProfileSampler(interval time.Duration) *SeriesSampler {
	return newSampler(interval, MaxProfilePoints)
}

func newSampler(interval time.Duration, most int) *SeriesSampler {
	return &SeriesSampler{most: most, interval: max(interval.Truncate(time.Millisecond), time.Millisecond)}
}

// Add takes the utilisation, clamped to 0..1, between two times since the run's
// start. NaN and what lies before the start are ignored.
func (s *SeriesSampler) Add(from, to time.Duration, utilisation float64) {
	from = max(0, from)
	if from >= to || math.IsNaN(utilisation) {
		return
	}
	for (to-1)/s.interval >= time.Duration(s.most) {
		s.halve()
	}
	last := int((to - 1) / s.interval)
	if last >= len(s.points) {
		s.points = append(s.points, make([]intervalSums, last+1-len(s.points))...)
	}
	value := min(max(utilisation, 0), 1)
	for from < to {
		p := &s.points[from/s.interval]
		d := min(to-from, s.interval-from%s.interval)
		p.sum += value * d.Seconds()
		p.seconds += d.Seconds()
		from += d
	}
}

// halve joins neighbours and doubles the interval. As a time is less than
// 2^63 ns, so is the interval that holds it in so many points.
func (s *SeriesSampler) halve() {
	half := make([]intervalSums, 0, s.most)
	for pair := range slices.Chunk(s.points, 2) {
		var joined intervalSums
		for _, p := range pair {
			joined.sum += p.sum
			joined.seconds += p.seconds
		}
		half = append(half, joined)
	}
	s.points, s.interval = half, 2*s.interval
}

// Series returns what was sampled so far.
func (s *SeriesSampler) Series() Series {
	points := make([]byte, len(s.points))
	for i, p := range s.points {
		points[i] = encodePoint(p)
	}
	return Series{interval: s.interval, points: points}
}

// encodePoint returns a point as a byte.
func encodePoint(p intervalSums) byte {
	if p.seconds == 0 {
		return gapByte
	}
	return byte(math.Round(min(1, p.sum/p.seconds) * pointSteps))
}
