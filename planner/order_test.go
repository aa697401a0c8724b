package planner_test

import (
	"cmp"
	"math"
	"math/rand/v2"
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
		planner.SortByKey(got, func(i int) float64 { return keys[i] })
		slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v for %v", got, want, keys)
		}
	})
}

func TestOrderSortsLongListsOfAnySpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	for name, draw := range map[string]func() float64{
		"wide":         func() float64 { return rng.NormFloat64() * math.Exp(40*rng.Float64()) },
		"one second":   func() float64 { return 1.7e9 + rng.Float64() },
		"few values":   func() float64 { return float64(rng.IntN(5) - 2) },
		"all the same": func() float64 { return 7 },
		"two clusters": func() float64 { return float64(rng.IntN(2))*1e300 + rng.Float64() },
		"some endless": func() float64 { return 1 / float64(rng.IntN(3)) },
	} {
		for _, n := range []int{63, 64, 65, 3000} {
			keys, got := make([]float64, n), make([]int32, n)
			for i := range keys {
				keys[i], got[i] = draw(), int32(n-i-1)
			}
			key := func(i int32) float64 { return keys[i] }
			want := slices.Clone(got)
			slices.SortStableFunc(want, func(a, b int32) int { return cmp.Compare(key(a), key(b)) })
			planner.SortByKey(got, key)
			if !slices.Equal(got, want) {
				t.Errorf("%d keys, %s: not sorted stably", n, name)
			}
		}
	}
}
