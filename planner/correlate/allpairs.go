package correlate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/floats"
)

// Matrix holds the correlations of all pairs of some series.
type Matrix struct {
	n int
	r []float64 // the upper triangle without the diagonal, by rows; NaN: undefined
}

// At is the correlation of series i and j, the same as of j and i. ok is false
// where it is undefined, and r is 0 there. A series' correlation with itself
// isn't computed: it is 1.
func (m *Matrix) At(i, j int) (r float64, ok bool) {
	if i == j {
		return 1, true
	}
	if r = m.r[m.index(min(i, j), max(i, j))]; r != r {
		return 0, false
	}
	return r, true
}

// index is where the pair i < j is.
func (m *Matrix) index(i, j int) int { return i*(2*m.n-i-1)/2 + j - i - 1 }

const (
	// tileRows is how many series a tile has on either side.
	tileRows = 32
	// tileSamples is how many samples of them are multiplied at a time: those
	// of both sides fit a second-level cache of 256 KB.
	tileSamples = 512
)

// AllPairs correlates all pairs of series on so many threads at once. Series
// of one length and without gaps are standardised once, and each pair of them
// is a dot product; pairs with other series are done one by one by [Pearson].
// The outcome doesn't depend on the number of threads. It takes 8 bytes for
// each pair, and the series once more.
func AllPairs(ctx context.Context, series [][]float64, threads int) (*Matrix, error) {
	n := len(series)
	m := &Matrix{n: n, r: make([]float64, n*max(0, n-1)/2)}
	length := usualLength(series)
	standard := standardised(series, length)
	var group errgroup.Group
	group.SetLimit(max(1, threads))
	for row := 0; row < n; row += tileRows {
		for column := row; column < n && ctx.Err() == nil; column += tileRows {
			group.Go(func() error {
				t := tile{rows: tileRange(row, n), columns: tileRange(column, n), length: length}
				t.fill(ctx, m, series, standard)
				return nil
			})
		}
	}
	_ = group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("correlate all pairs of %d series: %w", n, err)
	}
	return m, nil
}

func tileRange(from, n int) [2]int { return [2]int{from, min(n, from+tileRows)} }

// standardised are the series as deviations from their means by the root of
// the sum of their squares, so that their dot product is the correlation. It
// is nil for series with gaps, that don't vary, or that are of another length
// than most of them.
func standardised(series [][]float64, length int) [][]float64 {
	all := make([][]float64, len(series))
	for i, s := range series {
		if len(s) != length {
			continue
		}
		m, _ := momentsOf(s, s)
		if r := m.result(length); !r.OK || r.Gaps > 0 || !isVarying(s, s, m.sumXX) {
			continue
		}
		all[i] = slices.Clone(s)
		floats.AddConst(-floats.Sum(s)/float64(length), all[i])
		floats.Scale(1/math.Sqrt(m.sumXX), all[i])
	}
	return all
}

// usualLength is the length that most series have.
func usualLength(series [][]float64) int {
	count := map[int]int{}
	usual := 0
	for _, s := range series {
		count[len(s)]++
		if c, most := count[len(s)], count[usual]; c > most || c == most && len(s) > usual {
			usual = len(s)
		}
	}
	return usual
}

// tile is the pairs of some rows with some columns of the matrix.
type tile struct {
	rows, columns [2]int
	length        int // of the series that are standardised
}

// fill computes the tile's pairs, a stretch of samples at a time, until it is
// cancelled.
func (t *tile) fill(ctx context.Context, m *Matrix, series, standard [][]float64) {
	var sums [tileRows][tileRows]float64
	for from := 0; from < t.length && ctx.Err() == nil; from += tileSamples {
		t.eachPair(func(i, j int) {
			if a, b := standard[i], standard[j]; a != nil && b != nil {
				to := min(len(a), from+tileSamples)
				sums[i-t.rows[0]][j-t.columns[0]] += floats.Dot(a[from:to], b[from:to])
			}
		})
	}
	t.eachPair(func(i, j int) {
		r := min(1, max(-1, sums[i-t.rows[0]][j-t.columns[0]]))
		if standard[i] == nil || standard[j] == nil {
			r = math.NaN()
			if p := Pearson(series[i], series[j]); p.OK {
				r = p.R
			}
		}
		m.r[m.index(i, j)] = r
	})
}

// eachPair calls back for every pair of the tile above the diagonal.
func (t *tile) eachPair(pair func(i, j int)) {
	for i := t.rows[0]; i < t.rows[1]; i++ {
		for j := max(i+1, t.columns[0]); j < t.columns[1]; j++ {
			pair(i, j)
		}
	}
}
