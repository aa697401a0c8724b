package predict

import (
	"math"
	"slices"
)

const (
	recent    = 7   // values of a track that count as recent
	smoothing = 0.3 // weight of the latest value in exponentially weighted means

	several      = 2   // runs that must have ended for them to be alike
	littleSpread = 0.3 // in logarithms: runs that are alike are within about a third of each other

	// few values are put in order whenever that is needed; of more the order is kept.
	few = 32
)

// track is what is remembered of the ended jobs that share a key. Values are
// logarithms of the target. There are very many tracks, most of them short.
type track struct {
	smooth    float64   // exponentially weighted mean
	completed float64   // exponentially weighted part that completed
	last      float64   // the latest end, seconds
	count     int32     // values that there ever were
	failed    uint32    // while there are few: which did not complete, a bit for each
	ring      []float64 // values that are kept, the latest at (count-1) % len(ring)
	order     *order    // nil: there are few
}

// order is what is kept of a track that isn't short.
type order struct {
	sorted []float64 // the kept values, ascending
	good   *lately   // the kept ones that completed; nil: all
	late   float64   // median of the recent ones
	centre float64   // mean of the middle half of the kept ones
	normal float64   // what is usual
}

// add remembers a value; so many are kept.
func (t *track) add(v, end float64, completed bool, most int) {
	ok := 0.0
	if completed {
		ok = 1
	}
	if t.count == 0 {
		t.smooth, t.completed = v, ok
	} else {
		t.smooth += smoothing * (v - t.smooth)
		t.completed += smoothing * (ok - t.completed)
	}
	t.last = end
	if t.order == nil && t.count == few {
		t.grow()
	}
	if t.order != nil {
		t.keep(v, completed, most)
		return
	}
	if !completed {
		t.failed |= 1 << t.count
	}
	t.ring = append(t.ring, v)
	t.count++
}

// grow begins to keep the order of values.
func (t *track) grow() {
	t.order = &order{sorted: slices.Sorted(slices.Values(t.ring))}
	if t.failed == 0 {
		return
	}
	t.order.good = &lately{}
	for i, v := range t.ring {
		if t.failed&(1<<i) == 0 {
			t.order.good.keep(v, few)
		}
	}
}

// keep is add for a track that isn't short.
func (t *track) keep(v float64, completed bool, most int) {
	all := lately{count: int(t.count), ring: t.ring, sorted: t.order.sorted}
	if !completed && t.order.good == nil {
		t.order.good = &lately{count: all.count, ring: slices.Clone(all.ring), sorted: slices.Clone(all.sorted)}
	}
	if completed && t.order.good != nil {
		t.order.good.keep(v, most)
	}
	all.keep(v, most)
	t.ring, t.order.sorted = all.ring, all.sorted
	t.count++
	t.order.centre, t.order.late, t.order.normal = math.NaN(), math.NaN(), math.NaN() // not computed yet
}

// ascending are the kept values, put into a buffer where there are few.
func (t *track) ascending(buffer []float64) []float64 {
	if t.order != nil {
		return t.order.sorted
	}
	buffer = append(buffer, t.ring...)
	slices.Sort(buffer)
	return buffer
}

// back is the value k before the latest one; NaN where there is none.
func (t *track) back(k int) float64 {
	if k >= len(t.ring) {
		return math.NaN()
	}
	return t.ring[(int(t.count)-1-k)%len(t.ring)]
}

// middle is the median of the kept values.
func (t *track) middle() float64 {
	var buffer [few]float64
	return middle(t.ascending(buffer[:0]))
}

// spread is how far the lower and the upper fifth of the kept values are apart.
func (t *track) spread() float64 {
	var buffer [few]float64
	return between(t.ascending(buffer[:0]))
}

// between is how far the lower and the upper fifth of ascending values are apart.
func between(sorted []float64) float64 {
	n := len(sorted)
	return sorted[n*4/5] - sorted[n/5]
}

// recent is the median of the recent values.
func (t *track) recent() float64 {
	if t.order != nil && !math.IsNaN(t.order.late) {
		return t.order.late
	}
	var buffer [recent]float64
	late := buffer[:0]
	for k := range min(recent, len(t.ring)) {
		late = append(late, t.back(k))
	}
	slices.Sort(late)
	v := middle(late)
	if t.order != nil {
		t.order.late = v
	}
	return v
}

// central is the mean of the middle half of the kept values: as deaf to outliers as
// the median where there are few of them, and less noisy.
func (t *track) central() float64 {
	if t.order != nil && !math.IsNaN(t.order.centre) {
		return t.order.centre
	}
	var buffer [few]float64
	sorted := t.ascending(buffer[:0])
	n := len(sorted)
	v := mean(sorted[n/4 : n-n/4])
	if t.order != nil {
		t.order.centre = v
	}
	return v
}

// middle is the median of ascending values, of which there is one at least.
func middle(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// completedRuns are the kept values of runs that completed, ascending, or all where
// most runs did not; put into a buffer where there are few.
func (t *track) completedRuns(buffer []float64) []float64 {
	if t.order != nil {
		if good := t.order.good; good != nil && 2*len(good.sorted) >= len(t.order.sorted) {
			return good.sorted
		}
		return t.order.sorted
	}
	for i, v := range t.ring {
		if t.failed&(1<<i) == 0 {
			buffer = append(buffer, v)
		}
	}
	if 2*len(buffer) < len(t.ring) {
		buffer = append(buffer[:0], t.ring...)
	}
	slices.Sort(buffer)
	return buffer
}

// usual is the mean of the middle three quarters of completed runs.
func (t *track) usual() float64 {
	if t.order != nil && !math.IsNaN(t.order.normal) {
		return t.order.normal
	}
	var buffer [few]float64
	runs := t.completedRuns(buffer[:0])
	v := mean(runs[len(runs)/8 : len(runs)-len(runs)/8])
	if t.order != nil {
		t.order.normal = v
	}
	return v
}

// usualMiddle is the median of completed runs.
func (t *track) usualMiddle() float64 {
	var buffer [few]float64
	return middle(t.completedRuns(buffer[:0]))
}

// alike tells whether several completed runs differ little.
func (t *track) alike() bool {
	var buffer [few]float64
	return t.count >= several && between(t.completedRuns(buffer[:0])) < littleSpread
}

// mean is the mean of values, of which there is one at least.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
