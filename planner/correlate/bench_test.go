package correlate

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/floats"
)

func BenchmarkPearson(b *testing.B) {
	for _, n := range []int{24, 300, 1000, 10_000, 100_000, 500_000, 1_000_000} {
		x, y := walk(1, n), walk(2, n)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.SetBytes(int64(16 * n))
			for b.Loop() {
				Pearson(x, y)
			}
		})
	}
}

// BenchmarkPlainSum is what memory allows: a sum of the two series that
// BenchmarkPearson/1000000 reads.
func BenchmarkPlainSum(b *testing.B) {
	x, y := walk(1, 1_000_000), walk(2, 1_000_000)
	b.SetBytes(16 * 1_000_000)
	for b.Loop() {
		floats.Sum(x)
		floats.Sum(y)
	}
}

func BenchmarkAllPairs(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("4000x300/threads=%d", threads), func(b *testing.B) {
			series := make([][]float64, 4000)
			for i := range series {
				series[i] = walk(uint64(i), 300)
			}
			for b.Loop() {
				if _, err := AllPairs(b.Context(), series, threads); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkWindow(b *testing.B) {
	const n = 1 << 12
	x, y := walk(1, n), walk(2, n)
	for _, size := range []int{60, 300, 3600} {
		w, err := NewWindow(size)
		if err != nil {
			b.Fatal(err)
		}
		i := 0
		b.Run(fmt.Sprintf("add/window=%d", size), func(b *testing.B) {
			for b.Loop() {
				w.Add(x[i%n], y[i%n])
				i++
			}
		})
		b.Run(fmt.Sprintf("add+pearson/window=%d", size), func(b *testing.B) {
			for b.Loop() {
				w.Add(x[i%n], y[i%n])
				w.Pearson()
				i++
			}
		})
	}
}

// BenchmarkCandidates is one second of 10,000 GPUs, each with 32 candidates,
// at a sample a second: 100 ms is 10 % of a core.
func BenchmarkCandidates(b *testing.B) {
	const series, each, window = 10_000, 32, 300
	r := rand.New(rand.NewPCG(1, 1))
	lists := make([][]int, series)
	for i := range lists {
		for range each {
			lists[i] = append(lists[i], r.IntN(series))
		}
	}
	c, err := NewCandidates(series, window, lists)
	if err != nil {
		b.Fatal(err)
	}
	ticks := make([][]float64, 16)
	for t := range ticks {
		ticks[t] = make([]float64, series)
		for i := range ticks[t] {
			ticks[t][i] = 100 * r.Float64()
		}
	}
	i := 0
	tick := func() {
		if err := c.AddSample(ticks[i%len(ticks)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
	for range window {
		tick()
	}
	b.Run("tick", func(b *testing.B) {
		for b.Loop() {
			tick()
		}
	})
	b.Run("tick+all", func(b *testing.B) {
		for b.Loop() {
			tick()
			for gpu := range series {
				for place := range each {
					c.Pearson(gpu, place)
				}
			}
		}
	})
}
