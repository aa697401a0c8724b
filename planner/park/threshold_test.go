package park_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/planner/park"
)

// cost returns what idle gaps cost with a threshold, in seconds of idling.
func cost(gaps []float64, threshold, breakEven float64) float64 {
	sum := 0.0
	for _, gap := range gaps {
		if gap <= threshold {
			sum += gap
		} else {
			sum += threshold + breakEven
		}
	}
	return sum
}

func TestThresholdIsTheBreakEvenTimeUntilGapsWereSeen(t *testing.T) {
	if got := park.Threshold([]float64{1, 1, 1}, 60); got != 60 {
		t.Errorf("%v, want 60", got)
	}
	if got := park.Threshold(nil, -1); got != 0 {
		t.Errorf("%v, want 0", got)
	}
}

func TestNoThresholdWithinTheTrustedRangeCostsLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gaps := rapid.SliceOfN(rapid.Float64Range(0, 1000), 10, 60).Draw(t, "gaps")
		breakEven := rapid.Float64Range(1, 500).Draw(t, "break-even")
		got := park.Threshold(gaps, breakEven)
		if got < breakEven/3 || got > 3*breakEven {
			t.Fatalf("%v is out of the trusted range of %v", got, breakEven)
		}
		if got > breakEven/3 && got < 3*breakEven {
			for range 20 {
				other := rapid.Float64Range(0, 1500).Draw(t, "other")
				if c, least := cost(gaps, other, breakEven), cost(gaps, got, breakEven); c <
					least-1e-9*least {
					t.Fatalf("after %v s costs %v, after %v s only %v", got, least, other, c)
				}
			}
		}
	})
}

func TestShortGapsAreIdledThroughAndLongOnesSleptThrough(t *testing.T) {
	gaps := make([]float64, 100)
	for i := range gaps {
		gaps[i] = []float64{25, 3000}[i%2]
	}
	if got := park.Threshold(gaps, 60); got != 25 {
		t.Errorf("%v, want 25: what lasts longer lasts 3000", got)
	}
	for i := range gaps {
		gaps[i] = 3000
	}
	if got := park.Threshold(gaps, 60); math.Abs(got-20) > 1e-9 {
		t.Errorf("%v, want 20, the least that is trusted", got)
	}
}
