package predict

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

const (
	reweightRounds = 8   // of reweighting
	minResidual    = 0.1 // logarithm: smaller errors are taken for this one
)

// linearModel is a sum of what a job asks for, in logarithms. Trees fitted to what it leaves
// reach beyond what has been seen: a job with twice the requested time of any before
// it is expected to run longer than those.
type linearModel struct {
	mean, slope []float64
	offset      float64
	ridge       float64 // rows of no slope, that each slope is judged with
}

// fitLinear fits a line to the first features by least absolute errors, as reweighted
// least squares with a ridge of some rows.
func fitLinear(x [][]float64, y, w []float64, terms int, ridge float64) (*linearModel, error) {
	l := &linearModel{mean: make([]float64, terms), slope: make([]float64, terms), ridge: ridge}
	count := make([]float64, terms)
	for _, row := range x {
		for k := range terms {
			if !math.IsNaN(row[k]) {
				l.mean[k] += row[k]
				count[k]++
			}
		}
	}
	for k := range l.mean {
		l.mean[k] /= max(1, count[k])
	}
	weights := append([]float64(nil), w...)
	for range reweightRounds {
		if err := l.solve(x, y, weights); err != nil {
			return nil, err
		}
		for i := range x {
			weights[i] = w[i] / max(minResidual, math.Abs(y[i]-l.value(x[i])))
		}
	}
	return l, nil
}

// solve solves the normal equations.
func (l *linearModel) solve(x [][]float64, y, w []float64) error {
	n := len(l.slope) + 1
	a, b := make([]float64, n*n), make([]float64, n)
	row := make([]float64, n)
	for i := range x {
		row[n-1] = 1
		for k := range n - 1 {
			row[k] = l.centred(x[i], k)
		}
		for k, v := range row {
			b[k] += w[i] * v * y[i]
			for m := range k + 1 {
				a[m*n+k] += w[i] * v * row[m] // the upper triangle
			}
		}
	}
	for k := range n - 1 {
		a[k*n+k] += l.ridge
	}
	var c mat.Cholesky
	var s mat.VecDense
	if !c.Factorize(mat.NewSymDense(n, a)) {
		return fmt.Errorf("fitting a line of %d terms: the equations are not definite", n)
	}
	if err := c.SolveVecTo(&s, mat.NewVecDense(n, b)); err != nil {
		return fmt.Errorf("fitting a line of %d terms: %w", n, err)
	}
	for k := range l.slope {
		l.slope[k] = s.AtVec(k)
	}
	l.offset = s.AtVec(n - 1)
	return nil
}

// centred returns a feature less its mean; 0 where it isn't known.
func (l *linearModel) centred(x []float64, k int) float64 {
	if math.IsNaN(x[k]) {
		return 0
	}
	return x[k] - l.mean[k]
}

// value returns the line at a job's features.
func (l *linearModel) value(x []float64) float64 {
	v := l.offset
	for k := range l.slope {
		v += l.slope[k] * l.centred(x, k)
	}
	return v
}
