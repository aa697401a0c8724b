package sharing_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/planner/sharing"
)

func TestTheLinearCurveIsLinearContention(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		load := rapid.SliceOf(rapid.Float64Range(0, 400)).Draw(t, "load")
		n, m := rapid.IntRange(1, 9).Draw(t, "tasks"), rapid.Float64Range(0, 1).Draw(t, "memory")
		linear, o := 0.0, sharing.Occupancy{LoadPct: load, Tasks: n, Memory: m}
		for _, u := range load {
			linear += max(1, u/100)
		}
		if linear /= float64(len(load)); len(load) == 0 {
			linear = 1
		}
		if got := sharing.LinearCurve().Slowdown(o); got != linear {
			t.Fatalf("%g, want %g", got, linear)
		}
		worse := sharing.Curve{Exponent: 1.5, ByTask: .1, ByMemory: .1}
		if got := worse.Slowdown(o); got < linear {
			t.Fatalf("%g, less than %g without overhead", got, linear)
		}
	})
}
