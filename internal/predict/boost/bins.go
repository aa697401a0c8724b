package boost

import (
	"math"
	"slices"
	"sort"
)

// maxBins is how many bins a feature has at most; bin 0 is for NaN.
const maxBins = 255

// cutSampleSize bounds the values that a feature's cuts are taken from.
const cutSampleSize = 20000

// binnedRows are the rows of a training set with each feature cut into bins.
type binnedRows struct {
	rows    int
	cuts    [][]float64 // by feature, ascending: bin b > 0 holds values up to cuts[b-1]
	columns [][]uint8   // by feature, by row
}

// cutIntoBins cuts features into bins that hold about as many rows each.
func cutIntoBins(x [][]float64, features, most int) *binnedRows {
	b := &binnedRows{rows: len(x), cuts: make([][]float64, features), columns: make([][]uint8, features)}
	step := max(1, len(x)/cutSampleSize)
	values := make([]float64, 0, len(x)/step+1)
	for f := range features {
		values = values[:0]
		for i := 0; i < len(x); i += step {
			if v := x[i][f]; !math.IsNaN(v) {
				values = append(values, v)
			}
		}
		b.cuts[f] = cutsOf(values, most)
		column := make([]uint8, len(x))
		for i := range x {
			column[i] = binOf(b.cuts[f], x[i][f])
		}
		b.columns[f] = column
	}
	return b
}

// cutsOf are upper ends of bins: halfway between neighbours where there are few
// distinct values, else quantiles. It sorts the values.
func cutsOf(values []float64, most int) []float64 {
	slices.Sort(values)
	distinct := slices.Compact(slices.Clone(values))
	if len(distinct) < 2 {
		return nil
	}
	var cuts []float64
	if len(distinct) <= most {
		for i := range len(distinct) - 1 {
			cuts = append(cuts, distinct[i]+(distinct[i+1]-distinct[i])/2)
		}
		return cuts
	}
	for k := 1; k < most; k++ {
		v := values[k*len(values)/most]
		if len(cuts) == 0 || v > cuts[len(cuts)-1] {
			cuts = append(cuts, v)
		}
	}
	return cuts
}

// binOf returns the bin of a value: 0 for NaN, else 1 + the number of cuts below it.
func binOf(cuts []float64, v float64) uint8 {
	if math.IsNaN(v) {
		return 0
	}
	return uint8(1 + sort.SearchFloat64s(cuts, v))
}
