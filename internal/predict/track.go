package predict

import (
	"math"
	"slices"
)

const (
	kept      = 150 // values of a track that are kept
	recent    = 7   // of them, those that count as recent
	smoothing = 0.3 // weight of the latest value in exponentially weighted means
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
	t.keep(v, kept)
	t.last = end
	t.centre, t.late = math.NaN(), math.NaN() // not computed yet
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
	n := len(t.sorted)
	return t.sorted[n*4/5] - t.sorted[n/5]
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
		values := t.sorted[n/4 : n-n/4]
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		t.centre = sum / float64(len(values))
	}
	return t.centre
}

// middle is the median of ascending values, of which there is one at least.
func middle(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
