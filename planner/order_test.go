package planner_test

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/planner"
)

func TestOrderIsAStableSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOf(rapid.OneOf(
			rapid.Float64(), rapid.Float64Range(0, 100), rapid.SampledFrom([]float64{0, 1, 1, 2.5, -1}),
		).Filter(func(x float64) bool { return x == x })).Draw(t, "keys")
		got := make([]int, len(keys))
		for i := range got {
			got[i] = i
		}
		want := slices.Clone(got)
		planner.Order(got, func(i int) float64 { return keys[i] })
		slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v for %v", got, want, keys)
		}
	})
}
