package dvfsmodel

import (
	"math"
	"math/bits"
)

// collinear is the least share of a term, in square, that the other terms must
// leave unexplained.
const collinear = 1e-10

// minLeverageRest is the value of 1−leverage below which a fit can't do without a row.
const minLeverageRest = 1e-9

// leastSquares is a weighted linear least-squares problem of at most maxTerms
// unknowns: rows and targets are unweighted, weights apply to squares.
type leastSquares struct {
	cols   []int
	rows   [][maxTerms]float64
	target []float64
	weight []float64
}

// square is a symmetric matrix of at most maxTerms rows.
type square [maxTerms][maxTerms]float64

// solution is the answer to a [leastSquares] problem.
type solution struct {
	coef     [maxTerms]float64
	active   []int     // terms not held at 0
	inverse  square    // (XᵀWX)⁻¹ over the active terms
	residual []float64 // target − prediction, unweighted
	leverage []float64 // diagonal of the hat matrix
	loss     float64   // Σ weight·residual²
}

// solve minimises over the given terms; false when they are collinear.
func (p *leastSquares) solve(active []int) (*solution, bool) {
	var gram square
	var right [maxTerms]float64
	for r := range p.rows {
		x := &p.rows[r]
		for i, a := range active {
			wx := p.weight[r] * x[a]
			right[i] += wx * p.target[r]
			for j, b := range active[:i+1] {
				gram[i][j] += wx * x[b]
			}
		}
	}
	inverse, ok := gram.inverse(len(active))
	if !ok {
		return nil, false
	}
	s := &solution{active: active, inverse: inverse}
	for i, a := range active {
		for j := range active {
			s.coef[a] += inverse[i][j] * right[j]
		}
	}
	p.fillDiagnostics(s)
	return s, true
}

// inverse of the leading k rows of a positive definite matrix of which the
// lower triangle is given; false when its terms are collinear. The matrix is
// scaled to a unit diagonal first; each pivot is then the share of a term that
// the terms before it don't explain. (gonum's general Cholesky, the tests'
// reference, takes over ten times as long on so few rows: BenchmarkInverse.)
//
//nolint:gosec // G602: k is at most maxTerms
func (m *square) inverse(k int) (square, bool) {
	var scale [maxTerms]float64
	var low square // L⁻¹, where L·Lᵀ is the scaled matrix
	var l square
	for i := range k {
		if !isPositive(m[i][i]) {
			return square{}, false
		}
		scale[i] = 1 / math.Sqrt(m[i][i])
		for j := range i + 1 {
			sum := m[i][j] * scale[i] * scale[j]
			for c := range j {
				sum -= l[i][c] * l[j][c]
			}
			if j < i {
				l[i][j] = sum / l[j][j]
				continue
			}
			if !(sum > collinear) {
				return square{}, false
			}
			l[i][i] = math.Sqrt(sum)
		}
		low[i][i] = 1 / l[i][i]
		for j := range i {
			sum := 0.0
			for c := j; c < i; c++ {
				sum -= l[i][c] * low[c][j]
			}
			low[i][j] = sum / l[i][i]
		}
	}
	return low.gramOfColumns(k, &scale), true
}

// gramOfColumns is mᵀm for a lower triangular m, scaled on both sides.
//
//nolint:gosec // G602: k is at most maxTerms
func (m *square) gramOfColumns(k int, scale *[maxTerms]float64) square {
	var g square
	for i := range k {
		for j := range i + 1 {
			sum := 0.0
			for c := i; c < k; c++ {
				sum += m[c][i] * m[c][j]
			}
			g[i][j] = sum * scale[i] * scale[j]
			g[j][i] = g[i][j]
		}
	}
	return g
}

// fillDiagnostics fills in residuals, leverages and the loss.
func (p *leastSquares) fillDiagnostics(s *solution) {
	s.residual = make([]float64, len(p.rows))
	s.leverage = make([]float64, len(p.rows))
	for r := range p.rows {
		x := &p.rows[r]
		left := p.target[r]
		lever := 0.0
		for i, a := range s.active {
			left -= s.coef[a] * x[a]
			dot := 0.0
			for j, b := range s.active {
				dot += s.inverse[i][j] * x[b]
			}
			lever += x[a] * dot
		}
		s.residual[r] = left
		s.leverage[r] = p.weight[r] * lever
		s.loss += p.weight[r] * left * left
	}
}

// solveNonNegative minimises with every coefficient ≥ 0. There are at most
// four terms then, so all choices of terms held at 0 are tried; the free
// optimum is the answer whenever it is allowed.
func (p *leastSquares) solveNonNegative() (*solution, bool) {
	free, ok := p.solve(p.cols)
	if ok && free.isNonNegative() {
		return free, true
	}
	if !ok {
		return nil, false
	}
	var best *solution
	for mask := uint(1); mask < 1<<len(p.cols)-1; mask++ {
		active := make([]int, 0, bits.OnesCount(mask))
		for i, c := range p.cols {
			if mask>>i&1 == 1 {
				active = append(active, c)
			}
		}
		s, ok := p.solve(active)
		if ok && s.isNonNegative() && (best == nil || s.loss < best.loss) {
			best = s
		}
	}
	return best, best != nil
}

func (s *solution) isNonNegative() bool {
	for _, a := range s.active {
		if !(s.coef[a] >= 0) {
			return false
		}
	}
	return true
}

// deletedResidual returns what the residual of row r would be had the fit not seen it, in
// closed form; +Inf when the fit can't do without the row.
func (s *solution) deletedResidual(r int) float64 {
	rest := 1 - s.leverage[r]
	if rest < minLeverageRest {
		return math.Inf(1)
	}
	return s.residual[r] / rest
}

// studentised returns the residual of row r over √(1−leverage): 0 for a row that
// the fit can't do without, which no other row can contradict.
func (s *solution) studentised(r int) float64 {
	rest := 1 - s.leverage[r]
	if rest < minLeverageRest {
		return 0
	}
	return s.residual[r] / math.Sqrt(rest)
}
