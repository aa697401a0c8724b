package colocate

import (
	"math/rand/v2"
	"testing"
)

// A GPU is in use at a moment or isn't, which says little of how much it is: that
// much noise must not make a job unknown, and still something be found.
func TestWhatIsAsRecordedIsHardlyEverTakenForSomethingElse(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	drawn := func(p float64) float64 {
		if r.Float64() < p {
			return 1
		}
		return 0
	}
	const draws = 5000
	for _, samples := range []int{minSamples, 2 * minSamples, 40} {
		var wrong, more, opposite int
		for range draws {
			low, high := 0.3*r.Float64(), 0.6+0.4*r.Float64()
			turn := samples/4 + r.IntN(samples/2)
			var right, busier, turned recentUse
			for i := range samples {
				u := low
				if i >= turn {
					u = high
				}
				add := func(to *recentUse, use float64) {
					to.use, to.least, to.most = append(to.use, drawn(use)), append(to.least, u),
						append(to.most, u)
				}
				add(&right, u)
				add(&busier, min(1, u+0.6))
				add(&turned, low+high-u)
			}
			for found, what := range map[*int]*recentUse{&wrong: &right, &more: &busier, &opposite: &turned} {
				if what.deviation(0.25) != "" {
					*found++
				}
			}
		}
		t.Logf("%d samples: as recorded %.2f %%, busier %.0f %%, the opposite %.0f %%", samples,
			100*float64(wrong)/draws, 100*float64(more)/draws, 100*float64(opposite)/draws)
		if wrong > draws/200 || samples == 40 && (more < draws/2 || opposite < draws/2) {
			t.Errorf("%d samples, of %d: as recorded %d, busier %d, the opposite %d", samples, draws, wrong,
				more, opposite)
		}
	}
}
