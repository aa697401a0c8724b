package livetest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// slope is how a series rises: the median of the slopes between all pairs of its points, with the
// interval that has the true one with 99 in 100 (Theil 1950, Sen 1968).
type slope struct{ Low, Mid, High float64 }

// slopeOf returns the slope of points, y over x. A few points tell nothing: from minus to plus infinity.
func slopeOf(xs, ys []float64) slope {
	var all []float64
	for i := range xs {
		for k := range i {
			if xs[i] > xs[k] {
				all = append(all, (ys[i]-ys[k])/(xs[i]-xs[k]))
			}
		}
	}
	unknown := slope{Low: math.Inf(-1), Mid: math.NaN(), High: math.Inf(1)}
	if len(all) == 0 {
		return unknown
	}
	slices.Sort(all)
	// Kendall's S of points without a trend is normal with this deviation, from about ten points on; ties
	// only make it smaller.
	const z = 2.5758
	n := float64(len(xs))
	c := z * math.Sqrt(n*(n-1)*(2*n+5)/18)
	low := int(math.Floor((float64(len(all)) - c) / 2))
	if low < 0 {
		return slope{Low: unknown.Low, Mid: quantile(all, 0.5), High: unknown.High}
	}
	return slope{Low: all[low], Mid: quantile(all, 0.5), High: all[len(all)-1-low]}
}

// blocks returns the medians of so many parts of a series, one after the other: what is sampled every few
// seconds goes with the sample before it, which an interval would take for one more witness.
func blocks(xs, ys []float64, count int) (mx, my []float64) {
	count = min(count, len(xs))
	for i := range count {
		from, to := i*len(xs)/count, (i+1)*len(xs)/count
		mx = append(mx, quantile(slices.Sorted(slices.Values(xs[from:to])), 0.5))
		my = append(my, quantile(slices.Sorted(slices.Values(ys[from:to])), 0.5))
	}
	return mx, my
}

// A series that is level but for noise is seldom said to rise, whatever the noise goes by, and one that rises
// by a third of its noise in all of it always.
func TestTheSlopeOfALevelSeriesIsNone(t *testing.T) {
	const series, samples, parts = 400, 600, 30
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(rise, before float64, sawtooth bool) (rising int) {
		for range series {
			xs, ys := make([]float64, samples), make([]float64, samples)
			last := 0.0
			for i := range xs {
				last = before*last + random.NormFloat64()
				xs[i], ys[i] = float64(i), last+rise*float64(i)/samples
				if sawtooth {
					ys[i] += float64(i*7%100) / 10
				}
			}
			bx, by := blocks(xs, ys, parts)
			if slopeOf(bx, by).Low > 0 {
				rising++
			}
		}
		return rising
	}
	for _, of := range []struct {
		what         string
		rise, before float64
		sawtooth     bool
		least, most  int
	}{
		{"level", 0, 0, false, 0, 8},
		{"level, each sample like the one before", 0, 0.8, false, 0, 16},
		{"a level sawtooth", 0, 0, true, 0, 16},
		{"rising", 1, 0, false, 395, series},
		{"falling", -1, 0, false, 0, 0},
	} {
		if n := draw(of.rise, of.before, of.sawtooth); n < of.least || n > of.most {
			t.Errorf("%s: %d of %d are said to rise, want %d to %d", of.what, n, series, of.least, of.most)
		}
	}
	if s := slopeOf([]float64{1, 2, 3}, []float64{4, 5, 6}); s.Low > 0 || s.Mid != 1 {
		t.Errorf("three points tell %+v", s)
	}
	if s := slopeOf(nil, nil); !math.IsInf(s.Low, -1) || !math.IsNaN(s.Mid) {
		t.Errorf("no points tell %+v", s)
	}
	if s := fmt.Sprint(slopeOf([]float64{1, 1}, []float64{1, 2}).Mid); s != "NaN" {
		t.Errorf("points at one place tell %s", s)
	}
}
