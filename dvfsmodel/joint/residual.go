package joint

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// residuals are what the fits of a table's applications leave of one quantity: the logarithm of
// what was measured over what was fitted.
type residuals struct {
	places []place     // of the table's settings
	of     [][]int     // by application: its settings
	value  [][]float64 // by application and setting
	// doubt is by how much more than usual an application's own part and noise vary at a setting, for
	// those where its fit was asked to care less.
	doubt [][]float64
}

// place is where a setting lies: the logarithms of core clock, memory clock and cap.
type place [3]float64

func (p *place) squaredDistance(q *place) float64 {
	sum := 0.0
	for i := range p {
		sum += (p[i] - q[i]) * (p[i] - q[i])
	}
	return sum
}

// covariance is that of residuals: standard deviations of logarithms, and how far apart settings
// are alike. See the package.
type covariance struct {
	step, shared, own, noise float64
	sharedReach, ownReach    float64
}

// The hyperparameters are taken as log-normal before anything is known, around these with these
// deviations of the logarithm: a per cent, and noise of .4 %, the spread of a mean of many runs, give
// or take a factor of e² = 7, since single runs scatter by 2 % and more; over distances of 15 %, give
// or take a factor of 2.
const (
	usualSize, usualNoise, sizeSpread = 0.01, 0.004, 2
	usualReach, reachSpread           = 0.15, 0.7
	minSize, maxSize                  = 1e-5, 3
)

// gaussianKernel is exp(−d²/2r²): how alike a smooth function is at two places.
func gaussianKernel(square, reach float64) float64 { return math.Exp(-square / 2 / (reach * reach)) }

// sharedCovariance is that of what all applications have in common, at all settings.
func (r *residuals) sharedCovariance(h *covariance) *mat.SymDense {
	n := len(r.places)
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for k := i; k < n; k++ {
			s.SetSym(i, k, h.shared*h.shared*gaussianKernel(r.places[i].squaredDistance(&r.places[k]), h.sharedReach))
		}
		s.SetSym(i, i, s.At(i, i)+h.step*h.step)
	}
	return s
}

// ownCovariance is that of what one application has to itself, at settings of these doubts, without noise.
func (r *residuals) ownCovariance(h *covariance, at []int, doubt []float64) *mat.SymDense {
	o := mat.NewSymDense(len(at), nil)
	for i, a := range at {
		for k, b := range at[:i+1] {
			o.SetSym(
				i,
				k,
				h.own*h.own*gaussianKernel(r.places[a].squaredDistance(&r.places[b]), h.ownReach)*doubt[i]*doubt[k],
			)
		}
	}
	return o
}

// addNoise adds that of a measurement to the diagonal.
func (h *covariance) addNoise(to *mat.SymDense, doubt []float64) {
	for i, d := range doubt {
		to.SetSym(i, i, to.At(i, i)+h.noise*h.noise*d*d)
	}
}

// evidence is what applications say of the function that they share, as a precision and a
// precision times mean; and what their own parts add to −2·ln likelihood.
type evidence struct {
	precision *mat.SymDense
	weighted  *mat.VecDense
	minusTwoL float64
}

// evidenceOf adds up all applications but one (-1: none is left out).
func (r *residuals) evidenceOf(h *covariance, without int) *evidence {
	e := &evidence{
		precision: mat.NewSymDense(len(r.places), nil), weighted: mat.NewVecDense(len(r.places), nil),
	}
	for a, at := range r.of {
		if a == without {
			continue
		}
		own := r.ownCovariance(h, at, r.doubt[a])
		h.addNoise(own, r.doubt[a])
		var factor mat.Cholesky
		var inverse mat.SymDense
		if !factor.Factorize(own) || factor.InverseTo(&inverse) != nil {
			return nil
		}
		y := mat.NewVecDense(len(at), r.value[a])
		var z mat.VecDense
		z.MulVec(&inverse, y)
		e.minusTwoL += mat.Dot(&z, y) + factor.LogDet()
		for i, p := range at {
			e.weighted.SetVec(p, e.weighted.AtVec(p)+z.AtVec(i))
			for k, q := range at[:i+1] {
				e.precision.SetSym(p, q, e.precision.At(p, q)+inverse.At(i, k))
			}
		}
	}
	return e
}

// common is the distribution of what all applications share, at all settings.
type common struct {
	mean *mat.VecDense
	cov  *mat.SymDense
}

// commonWithout returns what the applications but one say of it (-1: all), and −2·ln of their
// likelihood; nil where the numbers don't allow it.
func (r *residuals) commonWithout(h *covariance, without int) (*common, float64) {
	e := r.evidenceOf(h, without)
	var shared mat.Cholesky
	if e == nil || !shared.Factorize(r.sharedCovariance(h)) {
		return nil, 0
	}
	// With S = L·Lᵀ, (S⁻¹+M)⁻¹ is L·(1+LᵀML)⁻¹·Lᵀ.
	var low, innerLow mat.TriDense
	var half, product, root mat.Dense
	shared.LTo(&low)
	half.Mul(e.precision, &low)
	product.Mul(low.T(), &half)
	n := len(r.places)
	inner := mat.NewSymDense(n, nil)
	for i := range n {
		for k := i; k < n; k++ {
			inner.SetSym(i, k, product.At(i, k))
		}
		inner.SetSym(i, i, inner.At(i, i)+1)
	}
	var factor mat.Cholesky
	if !factor.Factorize(inner) {
		return nil, 0
	}
	factor.LTo(&innerLow)
	if err := root.Solve(&innerLow, low.T()); err != nil {
		return nil, 0
	}
	c := &common{mean: new(mat.VecDense), cov: new(mat.SymDense)}
	c.cov.SymOuterK(1, root.T())
	c.mean.MulVec(c.cov, e.weighted)
	return c, e.minusTwoL - mat.Dot(c.mean, e.weighted) + factor.LogDet()
}

// loss is −ln of the likelihood times the prior of the hyperparameters.
func (r *residuals) loss(h *covariance, without int) float64 {
	c, minusTwoL := r.commonWithout(h, without)
	if c == nil {
		return math.Inf(1)
	}
	loss := minusTwoL / 2
	for _, x := range [...]float64{h.step, h.shared, h.own} {
		loss += square(math.Log(x/usualSize)/sizeSpread) / 2
	}
	loss += square(math.Log(h.noise/usualNoise)/sizeSpread) / 2
	for _, x := range [...]float64{h.sharedReach, h.ownReach} {
		loss += square(math.Log(x/usualReach)/reachSpread) / 2
	}
	return loss
}

// learnCovariance finds the covariance that is most plausible for the applications but one (-1: all), by
// steps along one hyperparameter after another, of a factor that gets smaller.
func (r *residuals) learnCovariance(without int) covariance {
	h := covariance{usualSize / 2, usualSize, usualSize, usualSize / 2, usualReach, usualReach}
	best := r.loss(&h, without)
	nearest := leastReach * r.spacing()
	all := [...]*float64{&h.step, &h.shared, &h.own, &h.noise, &h.sharedReach, &h.ownReach}
	const first, last, enough = 2, 1.3, 1e-3
	for factor := float64(first); factor > last; factor = math.Sqrt(factor) {
		for better := true; better; {
			better = false
			for _, x := range all {
				for _, f := range [...]float64{factor, 1 / factor} {
					old := *x
					*x *= f
					loss := math.Inf(1)
					if *x > minSize && *x < maxSize && h.ownReach >= nearest {
						loss = r.loss(&h, without)
					}
					if loss < best-enough {
						best, better = loss, true
					} else {
						*x = old
					}
				}
			}
		}
	}
	return h
}

// leastReach is how many times the usual spacing what an application has to itself reaches at least:
// what is another at each setting couldn't be told from noise.
const leastReach = 1.5

// spacing returns the median distance from a setting to the nearest other one.
func (r *residuals) spacing() float64 {
	nearest := make([]float64, 0, len(r.places))
	for i := range r.places {
		least := math.Inf(1)
		for k := range r.places {
			if i != k {
				least = min(least, r.places[i].squaredDistance(&r.places[k]))
			}
		}
		nearest = append(nearest, math.Sqrt(least))
	}
	slices.Sort(nearest)
	return min(nearest[len(nearest)/2], 2*usualReach)
}

// expected returns what is expected of an application's residuals at settings, where others say what
// they share and some of the application's were seen.
func (r *residuals) expected(
	c *common, h *covariance, seen *ownResiduals, at []int, doubt []float64,
) []float64 {
	n := len(seen.at)
	expected := make([]float64, len(at))
	for i, a := range at {
		expected[i] = c.mean.AtVec(a)
	}
	if n == 0 || len(at) == 0 {
		return expected
	}
	own := r.ownCovariance(h, slices.Concat(seen.at, at), slices.Concat(seen.doubt, doubt))
	noisy, miss := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for i, a := range seen.at {
		for k, b := range seen.at[:i+1] {
			noisy.SetSym(i, k, c.cov.At(a, b)+own.At(i, k))
		}
		miss.SetVec(i, seen.value[i]-c.mean.AtVec(a))
	}
	h.addNoise(noisy, seen.doubt)
	var factor mat.Cholesky
	var weights mat.VecDense
	if !factor.Factorize(noisy) || factor.SolveVecTo(&weights, miss) != nil {
		return expected
	}
	for i, a := range at {
		for k, b := range seen.at {
			expected[i] += (c.cov.At(a, b) + own.At(n+i, k)) * weights.AtVec(k)
		}
	}
	return expected
}

// ownResiduals are those of one application at settings.
type ownResiduals struct {
	at           []int
	value, doubt []float64
}

func (r *residuals) ofApplication(a int) *ownResiduals {
	return &ownResiduals{r.of[a], r.value[a], r.doubt[a]}
}

// smooth returns what is expected of an application's residuals where all of them were seen, and how many
// numbers of theirs that takes: the trace of the matrix that turns the ones into the others.
func (r *residuals) smooth(
	c *common, h *covariance, seen *ownResiduals,
) (expected []float64, freedom float64) {
	n := len(seen.at)
	signal := r.ownCovariance(h, seen.at, seen.doubt)
	expected, miss := make([]float64, n), mat.NewVecDense(n, nil)
	for i, a := range seen.at {
		for k, b := range seen.at[:i+1] {
			signal.SetSym(i, k, signal.At(i, k)+c.cov.At(a, b))
		}
		expected[i] = c.mean.AtVec(a)
		miss.SetVec(i, seen.value[i]-expected[i])
	}
	noisy := mat.NewSymDense(n, nil)
	noisy.CopySym(signal)
	h.addNoise(noisy, seen.doubt)
	var factor mat.Cholesky
	var weights, rest mat.VecDense
	var smoother mat.Dense
	if !factor.Factorize(noisy) || factor.SolveVecTo(&weights, miss) != nil ||
		factor.SolveTo(&smoother, signal) != nil {
		return expected, 0
	}
	rest.MulVec(signal, &weights)
	for i := range expected {
		expected[i] += rest.AtVec(i)
	}
	return expected, mat.Trace(&smoother)
}

func square(x float64) float64 { return x * x }
