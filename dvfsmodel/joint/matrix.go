package joint

import "math"

// matrix is square.
type matrix struct {
	n    int
	cell []float64 // row by row
}

func newMatrix(n int) matrix { return matrix{n: n, cell: make([]float64, n*n)} }

func (m matrix) row(i int) []float64 { return m.cell[i*m.n : (i+1)*m.n] }

// cholesky replaces a symmetric matrix by the lower triangle L of L·Lᵀ, zeros above it; false
// where it isn't positive definite.
func (m matrix) cholesky() bool {
	for j := range m.n {
		pivot := m.row(j)
		left := pivot[j]
		for _, x := range pivot[:j] {
			left -= x * x
		}
		if !(left > 0) {
			return false
		}
		pivot[j] = math.Sqrt(left)
		for i := j + 1; i < m.n; i++ {
			row := m.row(i)
			row[j] = (row[j] - dot(row[:j], pivot[:j])) / pivot[j]
			pivot[i] = 0
		}
	}
	return true
}

// logDeterminant is that of L·Lᵀ.
func (m matrix) logDeterminant() float64 {
	sum := 0.0
	for i := range m.n {
		sum += 2 * math.Log(m.row(i)[i])
	}
	return sum
}

// forward is L⁻¹·y.
func (m matrix) forward(y []float64) []float64 {
	z := make([]float64, m.n)
	for i := range z {
		row := m.row(i)
		z[i] = (y[i] - dot(row[:i], z[:i])) / row[i]
	}
	return z
}

// solve is (L·Lᵀ)⁻¹·y.
func (m matrix) solve(y []float64) []float64 {
	z := m.forward(y)
	for i := m.n - 1; i >= 0; i-- {
		z[i] /= m.row(i)[i]
		for k, x := range m.row(i)[:i] {
			z[k] -= x * z[i]
		}
	}
	return z
}

// inverse is (L·Lᵀ)⁻¹.
func (m matrix) inverse() matrix {
	inv := newMatrix(m.n)
	unit := make([]float64, m.n)
	for i := range m.n {
		unit[i] = 1
		copy(inv.row(i), m.solve(unit))
		unit[i] = 0
	}
	return inv
}

// sandwich is Lᵀ·M·L for the symmetric M.
func (m matrix) sandwich(middle matrix) matrix {
	half := newMatrix(m.n) // M·L
	for i := range m.n {
		to := half.row(i)
		for k, x := range middle.row(i) {
			if x == 0 {
				continue
			}
			for j, l := range m.row(k)[:k+1] {
				to[j] += x * l
			}
		}
	}
	product := newMatrix(m.n)
	for k := range m.n {
		for i, l := range m.row(k)[:k+1] {
			to := product.row(i)
			for j, x := range half.row(k) {
				to[j] += l * x
			}
		}
	}
	return product
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}
