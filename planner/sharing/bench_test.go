package sharing

import (
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
