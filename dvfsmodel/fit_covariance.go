package dvfsmodel

// covariance of a fitted curve's coefficients, in the order in which
// [Fitted.Coefficients] lists them: with relative residuals of variance σ²,
// weights wᵢ and Jacobian rows xᵢ it is σ²·A⁻¹(Σ wᵢ²·xᵢxᵢᵀ)A⁻¹, A = Σ wᵢ·xᵢxᵢᵀ.
// The weights say what the fit cares about, not how noisy a sample is, hence
// the product rather than A⁻¹ alone.
func (o *observations) covariance(f *curveFit) [][]float64 {
	cols := f.columns(o.oneMem)
	size := f.size(o.oneMem)
	full := zeros(size)
	place := make([]int, 0, size) // of each free coefficient
	for i, c := range cols {
		for _, a := range f.solution.active {
			if a == c {
				place = append(place, i)
			}
		}
	}
	jacobian := o.jacobian(f)
	if f.axis != nil {
		if cov, ok := o.sandwich(f, jacobian); ok {
			scatterCovariance(full, append(place, size-1), cov)
			return full
		}
	}
	for i := range jacobian {
		jacobian[i] = jacobian[i][:len(place)]
	}
	if cov, ok := o.sandwich(f, jacobian); ok {
		scatterCovariance(full, place, cov)
	}
	return full
}

func zeros(n int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	return m
}

// scatterCovariance puts a covariance into a larger one: row and column i at place[i].
func scatterCovariance(full [][]float64, place []int, cov *square) {
	for i, a := range place {
		for j, b := range place {
			full[a][b] = cov[i][j]
		}
	}
}

// jacobian has a row for each observation: the derivative of the prediction,
// on the scale of the residuals, by each free coefficient and then the knee.
func (o *observations) jacobian(f *curveFit) [][]float64 {
	p := o.linearProblem(f.shape, f.knee)
	rows := make([][]float64, o.len())
	for r := range rows {
		for _, a := range f.solution.active {
			rows[r] = append(rows[r], p.rows[r][a])
		}
	}
	if f.axis == nil {
		return rows
	}
	const step = 1e-4 // relative
	up, down := o.linearProblem(f.shape, f.knee*(1+step)), o.linearProblem(f.shape, f.knee*(1-step))
	for r := range rows {
		slope := 0.0
		for _, a := range f.solution.active {
			slope += f.coef[a] * (up.rows[r][a] - down.rows[r][a])
		}
		rows[r] = append(rows[r], slope/(2*step*f.knee))
	}
	return rows
}

// sandwich returns the covariance for Jacobian rows; false when they are collinear.
func (o *observations) sandwich(f *curveFit, rows [][]float64) (*square, bool) {
	k := len(rows[0])
	var bread, cov square
	sum, freedom := 0.0, -float64(k)
	for r, x := range rows {
		w := o.trust[r] * o.focus[r]
		sum += o.trust[r] * f.solution.residual[r] * f.solution.residual[r]
		freedom += o.trust[r]
		for i := range k {
			for j := range k {
				bread[i][j] += w * x[i] * x[j]
			}
		}
	}
	inverse, ok := bread.inverse(k)
	if !ok || freedom <= 0 {
		return nil, false
	}
	for r, x := range rows { // a sum of squares: no variance is below 0, however collinear the rows
		var y [maxTerms]float64
		for i := range k {
			for j := range k {
				y[i] += o.trust[r] * o.focus[r] * inverse[i][j] * x[j]
			}
		}
		for i := range k {
			for j := range k {
				cov[i][j] += y[i] * y[j] * sum / freedom
			}
		}
	}
	return &cov, true
}

// blockDiagonal returns the covariance of two quantities that are fitted independently.
func blockDiagonal(a, b [][]float64) [][]float64 {
	m := zeros(len(a) + len(b))
	for i := range a {
		copy(m[i], a[i])
	}
	for i := range b {
		copy(m[len(a)+i][len(a):], b[i])
	}
	return m
}
