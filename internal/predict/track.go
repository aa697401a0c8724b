package predict

import (
	"math"
	"slices"
)

const (
	recentValues    = 7   // values of a track that count as recent
	smoothingWeight = 0.3 // weight of the latest value in exponentially weighted means

	minSteadyRuns   = 2   // runs that must have ended for them to be alike
	maxSteadySpread = 0.3 // in logarithms: runs that are alike are within about a third of each other

	// maxUnordered values are put in order whenever that is needed; of more the order is kept.
	maxUnordered = 32
)

// track is what is remembered of the ended jobs that share a key. Values are
// logarithms of the target. There are very many tracks, most of them short.
type track struct {
	smooth    float64     // exponentially weighted mean
	completed float64     // exponentially weighted part that completed
	last      float64     // the latest end, seconds
	count     int32       // values that there ever were
	failed    uint32      // while there are few: which did not complete, a bit for each
	ring      []float64   // values that are kept, the latest at (count-1) % len(ring)
	order     *orderStats // nil: there are few
}

// orderStats is what is kept of a track that isn't short.
type orderStats struct {
	sorted       []float64   // the kept values, ascending
	completed    *lastValues // the kept ones that completed; nil: all
	recentMedian float64     // median of the recent ones
	midmean      float64     // mean of the middle half of the kept ones
	usual        float64     // what is usual
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
		t.smooth += smoothingWeight * (v - t.smooth)
		t.completed += smoothingWeight * (ok - t.completed)
	}
	t.last = end
	if t.order == nil && t.count == maxUnordered {
		t.startOrder()
	}
	if t.order != nil {
		t.addOrdered(v, completed, most)
		return
	}
	if !completed {
		t.failed |= 1 << t.count
	}
	t.ring = append(t.ring, v)
	t.count++
}

// startOrder begins to keep the order of values.
func (t *track) startOrder() {
	t.order = &orderStats{sorted: slices.Sorted(slices.Values(t.ring))}
	if t.failed == 0 {
		return
	}
	t.order.completed = &lastValues{}
	for i, v := range t.ring {
		if t.failed&(1<<i) == 0 {
			t.order.completed.add(v, maxUnordered)
		}
	}
}

// addOrdered is add for a track that isn't short.
func (t *track) addOrdered(v float64, completed bool, most int) {
	all := lastValues{count: int(t.count), ring: t.ring, sorted: t.order.sorted}
	if !completed && t.order.completed == nil {
		t.order.completed = &lastValues{
			count: all.count, ring: slices.Clone(all.ring), sorted: slices.Clone(all.sorted),
		}
	}
	if completed && t.order.completed != nil {
		t.order.completed.add(v, most)
	}
	all.add(v, most)
	t.ring, t.order.sorted = all.ring, all.sorted
	t.count++
	// Not computed yet.
	t.order.midmean, t.order.recentMedian, t.order.usual = math.NaN(), math.NaN(), math.NaN()
}

// ascending returns the kept values, put into a buffer where there are few.
func (t *track) ascending(buffer []float64) []float64 {
	if t.order != nil {
		return t.order.sorted
	}
	buffer = append(buffer, t.ring...)
	slices.Sort(buffer)
	return buffer
}

// valueBack returns the value k before the latest one; NaN where there is none.
func (t *track) valueBack(k int) float64 {
	if k >= len(t.ring) {
		return math.NaN()
	}
	return t.ring[(int(t.count)-1-k)%len(t.ring)]
}

// median returns the median of the kept values.
func (t *track) median() float64 {
	var buffer [maxUnordered]float64
	return medianOf(t.ascending(buffer[:0]))
}

// spread returns how far the lower and the upper fifth of the kept values are apart.
func (t *track) spread() float64 {
	var buffer [maxUnordered]float64
	return quintileRange(t.ascending(buffer[:0]))
}

// quintileRange returns how far the lower and the upper fifth of ascending values are apart.
func quintileRange(sorted []float64) float64 {
	n := len(sorted)
	return sorted[n*4/5] - sorted[n/5]
}

func (t *track) recentMedian() float64 {
	if t.order != nil && !math.IsNaN(t.order.recentMedian) {
		return t.order.recentMedian
	}
	var buffer [recentValues]float64
	late := buffer[:0]
	for k := range min(recentValues, len(t.ring)) {
		late = append(late, t.valueBack(k))
	}
	slices.Sort(late)
	v := medianOf(late)
	if t.order != nil {
		t.order.recentMedian = v
	}
	return v
}

// midmean returns the mean of the middle half of the kept values: as deaf to outliers as
// the median where there are few of them, and less noisy.
func (t *track) midmean() float64 {
	if t.order != nil && !math.IsNaN(t.order.midmean) {
		return t.order.midmean
	}
	var buffer [maxUnordered]float64
	sorted := t.ascending(buffer[:0])
	n := len(sorted)
	v := mean(sorted[n/4 : n-n/4])
	if t.order != nil {
		t.order.midmean = v
	}
	return v
}

// medianOf returns the median of ascending values, of which there is one at least.
func medianOf(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// completedRuns returns the kept values of runs that completed, ascending, or all where
// most runs did not; put into a buffer where there are few.
func (t *track) completedRuns(buffer []float64) []float64 {
	if t.order != nil {
		if good := t.order.completed; good != nil && 2*len(good.sorted) >= len(t.order.sorted) {
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

// trimmedMean returns the mean of the middle three quarters of completed runs.
func (t *track) trimmedMean() float64 {
	if t.order != nil && !math.IsNaN(t.order.usual) {
		return t.order.usual
	}
	var buffer [maxUnordered]float64
	runs := t.completedRuns(buffer[:0])
	v := mean(runs[len(runs)/8 : len(runs)-len(runs)/8])
	if t.order != nil {
		t.order.usual = v
	}
	return v
}

// isSteady reports whether several completed runs differ little.
func (t *track) isSteady() bool {
	var buffer [maxUnordered]float64
	return t.count >= minSteadyRuns && quintileRange(t.completedRuns(buffer[:0])) < maxSteadySpread
}

// mean returns the mean of values, of which there is one at least.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
