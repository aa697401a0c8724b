package steps_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/steps"
)

// TestWhenAtMostFindsTheFirstTime: an oracle tries each time at which that can begin, and looks at each step.
func TestWhenAtMostFindsTheFirstTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		time := rapid.Float64Range(0, 20)
		f := steps.Constant(rapid.Float64Range(-1, 3).Draw(t, "at first"))
		for range rapid.IntRange(0, 12).Draw(t, "spans") {
			from := time.Draw(t, "from")
			during := planner.Interval{From: from, To: from + time.Draw(t, "for")}
			f.Add(during, rapid.Float64Range(-2, 2).Draw(t, "value"))
		}
		from, length := time.Draw(t, "not before"), time.Draw(t, "length")
		most := rapid.Float64Range(-2, 3).Draw(t, "most")
		want := math.Inf(1)
		for i := range len(f) + 1 {
			start := from
			if i < len(f) {
				start = max(from, f[i].From)
			}
			fits := f.At(start) <= most
			for _, value := range f.During(planner.Interval{From: start, To: start + length}) {
				fits = fits && value <= most
			}
			if fits {
				want = min(want, start)
			}
		}
		if got := f.WhenAtMost(from, length, most); got != want {
			t.Fatalf("at %v, want %v: %v", got, want, f)
		}
	})
}
