package predict

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Truths come late, and the world changes: there are more misses or fewer ones.
func TestIntervalsFollowErrorsToBothSides(t *testing.T) {
	for _, c := range []struct {
		name   string
		factor float64 // of errors, from the middle on
		late   int     // jobs that are submitted before a truth is known
		within float64
	}{
		{"wider", 3, 0, 0.02},
		{"wider, truths late", 3, 30, 0.03},
		{"narrower", 0.8, 0, 0.01},
		{"narrower, truths late", 0.8, 30, 0.02},
	} {
		t.Run(c.name, func(t *testing.T) {
			type known struct {
				low, high, err float64
			}
			intervals := newCalibration()
			random := rand.New(rand.NewPCG(1, 1))
			s := situation{byAll, 3, 1}
			var waiting []known
			inside, asked := 0.0, 0.0
			for i := range 3000 {
				low, high := intervals.interval(s, 1, 0)
				err := random.NormFloat64()
				if i >= 1500 {
					err *= c.factor
					asked++
					if low <= err && err <= high {
						inside++
					}
				}
				waiting = append(waiting, known{low, high, err})
				if len(waiting) > c.late {
					k := waiting[0]
					waiting = waiting[1:]
					p := &Prediction{Low: math.Exp(k.low), High: math.Exp(k.high)}
					intervals.learn(s, k.err, p, math.Exp(k.err), len(waiting))
				}
			}
			if part := inside / asked; math.Abs(part-Coverage) > c.within {
				t.Errorf("%.3f of the truths lie inside once errors changed, want %g", part, Coverage)
			}
		})
	}
}

func TestBoundsLieBetweenErrorsAndBeyondThem(t *testing.T) {
	var e errorWindow
	for i := range 99 {
		e.add(float64(i+1), maxErrors) // 1 to 99: a hundredth of the next ones lies beyond each
	}
	for _, c := range []struct{ part, low float64 }{{0.05, 5}, {0.055, 5.5}, {0.01, 1}, {0.99, 99}, {1, 99}} {
		if got := e.bound(c.part, false); math.Abs(got-c.low) > 1e-9 {
			t.Errorf("part %g: %g, want %g", c.part, got, c.low)
		}
		if got := e.bound(c.part, true); math.Abs(got-(100-c.low)) > 1e-9 {
			t.Errorf("part %g above: %g, want %g", c.part, got, 100-c.low)
		}
	}
	near, far := e.bound(0.005, true), e.bound(0.0005, true)
	if !(near > 99 && far > near && far < 200) {
		t.Errorf("%g and %g, want more than was ever seen, and more the less may lie beyond", near, far)
	}
}
