package predict

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Short tracks keep no order, and what is met once is no track at all.
func TestTracksSayTheSameHoweverTheyAreKept(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	s := newPastByKey(&Settings{ValuesPerKey: 40})
	const values = 100
	all, good := make([]float64, 0, values), make([]float64, 0, values)
	for i := range values {
		v, completed := random.NormFloat64(), random.Float64() < 0.8
		s.add(1, v, float64(i+1), completed)
		all = append(all, v)
		if completed {
			good = append(good, v)
		}
		tr := s.track(1, &scratchTrack{})
		sorted := slices.Sorted(slices.Values(all[max(0, len(all)-40):]))
		runs := slices.Sorted(slices.Values(good[max(0, len(good)-40):]))
		if 2*len(runs) < len(sorted) {
			runs = sorted
		}
		if tr.median() != medianOf(sorted) || tr.spread() != quintileRange(sorted) || tr.valueBack(0) != v ||
			tr.last != float64(i+1) || int(tr.count) != i+1 {
			t.Fatalf("after %d: median %g, spread %g, last %g", i+1, tr.median(), tr.spread(),
				tr.valueBack(0))
		}
		if n := len(runs); tr.trimmedMean() != mean(runs[n/8:n-n/8]) ||
			tr.isSteady() != (i > 0 && quintileRange(runs) < maxSteadySpread) {
			t.Fatalf("after %d: usually %g, want %g", i+1, tr.trimmedMean(), mean(runs[n/8:n-n/8]))
		}
	}
}

func TestKeysMetOnceAreForgottenWhenTheyAreMany(t *testing.T) {
	s := newPastByKey(&Settings{ValuesPerKey: 40, MaxSingleKeys: 100})
	for i := range 1000 {
		s.add(hash(i+1), 1, float64(i+1), i%2 == 0)
		s.add(hash(5000), 2, float64(i+1), true)
	}
	if len(s.singles) > 100 || len(s.singles) < 50 || s.track(1000, &scratchTrack{}) == nil ||
		s.track(1, &scratchTrack{}) != nil {
		t.Errorf("%d keys are remembered, want the latest 50 to 100", len(s.singles))
	}
	if tr := s.track(5000, &scratchTrack{}); tr == nil || tr.count != 1000 {
		t.Errorf("a key that was met often: %+v", tr)
	}
}
