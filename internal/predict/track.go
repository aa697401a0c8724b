package predict

import (
	"math"
	"slices"
)

const (
	kept      = 150 // values of a track that are kept
	recent    = 7   // of them, those that count as recent
	smoothing = 0.3 // weight of the latest value in exponentially weighted means

	several      = 2   // runs
	littleSpread = 0.3 // of runs that are alike
)

// track is what is remembered of the ended jobs that share a key. Values are
// logarithms of the target.
type track struct {
	lately
	smooth    float64 // exponentially weighted mean
	completed float64 // exponentially weighted part that completed
	last      float64 // s, the latest end
	late      float64 // median of the recent ones
	centre    float64 // mean of the middle half of the kept ones
	normal    float64 // what is usual
	good      *lately // the kept ones that completed; nil: all
}

func (t *track) add(v, end float64, completed bool) {
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
	if !completed && t.good == nil {
		t.good = &lately{count: t.count, ring: slices.Clone(t.ring), sorted: slices.Clone(t.sorted)}
	}
	if completed && t.good != nil {
		t.good.keep(v, kept)
	}
	t.keep(v, kept)
	t.last = end
	t.centre, t.late, t.normal = math.NaN(), math.NaN(), math.NaN() // not computed yet
}

// back is the value k before the latest one; NaN where there is none.
func (t *track) back(k int) float64 {
	if k >= len(t.ring) {
		return math.NaN()
	}
	return t.ring[(t.count-1-k)%kept]
}

// middle is the median of the kept values.
func (t *track) middle() float64 { return middle(t.sorted) }

// spread lies between the lower and the upper fifth of the kept values.
func (t *track) spread() float64 {
	return between(t.sorted)
}

// between lies between the lower and the upper fifth of ascending values.
func between(sorted []float64) float64 {
	n := len(sorted)
	return sorted[n*4/5] - sorted[n/5]
}

// recent is the median of the recent values.
func (t *track) recent() float64 {
	if math.IsNaN(t.late) {
		var buffer [recent]float64
		late := buffer[:0]
		for k := range min(recent, len(t.ring)) {
			late = append(late, t.back(k))
		}
		slices.Sort(late)
		t.late = middle(late)
	}
	return t.late
}

// central is the mean of the middle half of the kept values: as deaf to outliers as
// the median where there are few of them, and less noisy.
func (t *track) central() float64 {
	if math.IsNaN(t.centre) {
		n := len(t.sorted)
		t.centre = mean(t.sorted[n/4 : n-n/4])
	}
	return t.centre
}

// middle is the median of ascending values, of which there is one at least.
func middle(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// completedRuns are the kept values of runs that completed, ascending, or all where
// most runs did not.
func (t *track) completedRuns() []float64 {
	if t.good != nil && 2*len(t.good.sorted) >= len(t.sorted) {
		return t.good.sorted
	}
	return t.sorted
}

// usual is the mean of the middle three quarters of completed runs.
func (t *track) usual() float64 {
	if math.IsNaN(t.normal) {
		runs := t.completedRuns()
		t.normal = mean(runs[len(runs)/8 : len(runs)-len(runs)/8])
	}
	return t.normal
}

// usualMiddle is the median of completed runs.
func (t *track) usualMiddle() float64 { return middle(t.completedRuns()) }

// alike tells whether several completed runs differ little.
func (t *track) alike() bool {
	runs := t.completedRuns()
	return t.count >= several && between(runs) < littleSpread
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
