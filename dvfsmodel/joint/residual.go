package joint

import (
	"math"
	"slices"
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

func (p *place) squareTo(q *place) float64 {
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
// deviations of the logarithm: a per cent, give or take a factor of e² = 7, over distances of
// 15 %, give or take a factor of 2; and noise of .4 %, the spread of a mean of many runs, give or take
// a fifth: what else few settings leave unexplained is the application's own, not noise.
const (
	usualSize, sizeSpread   = 0.01, 2
	usualReach, reachSpread = 0.15, 0.7
	usualNoise, noiseSpread = 0.004, 0.2
	leastSize, mostSize     = 1e-5, 3
)

// alike is exp(−d²/2r²): how alike a smooth function is at two places.
func alike(square, reach float64) float64 { return math.Exp(-square / 2 / (reach * reach)) }

// sharedCovariance is that of what all applications have in common, at all settings.
func (r *residuals) sharedCovariance(h *covariance) matrix {
	s := newMatrix(len(r.places))
	for i := range s.n {
		for k := range i + 1 {
			c := h.shared * h.shared * alike(r.places[i].squareTo(&r.places[k]), h.sharedReach)
			s.row(i)[k], s.row(k)[i] = c, c
		}
		s.row(i)[i] += h.step * h.step
	}
	return s
}

// ownCovariance is that of what one application has to itself, at settings of these doubts, without noise.
func (r *residuals) ownCovariance(h *covariance, at []int, doubt []float64) matrix {
	o := newMatrix(len(at))
	for i, a := range at {
		for k, b := range at[:i+1] {
			c := h.own * h.own * alike(r.places[a].squareTo(&r.places[b]), h.ownReach) * doubt[i] * doubt[k]
			o.row(i)[k], o.row(k)[i] = c, c
		}
	}
	return o
}

// addNoise adds that of a measurement to the diagonal.
func (m matrix) addNoise(h *covariance, doubt []float64) {
	for i, d := range doubt {
		m.row(i)[i] += h.noise * h.noise * d * d
	}
}

// evidence is what applications say of the function that they share, as a precision and a
// precision times mean; and what their own parts add to −2·ln likelihood.
type evidence struct {
	precision matrix
	weighted  []float64
	minusTwoL float64
}

// evidenceOf adds up all applications but one (-1: none is left out).
func (r *residuals) evidenceOf(h *covariance, without int) *evidence {
	e := &evidence{precision: newMatrix(len(r.places)), weighted: make([]float64, len(r.places))}
	for a, at := range r.of {
		if a == without {
			continue
		}
		own := r.ownCovariance(h, at, r.doubt[a])
		own.addNoise(h, r.doubt[a])
		if !own.cholesky() {
			return nil
		}
		z := own.solve(r.value[a])
		e.minusTwoL += dot(z, r.value[a]) + own.logDeterminant()
		inverse := own.inverse()
		for i, p := range at {
			e.weighted[p] += z[i]
			for k, q := range at {
				e.precision.row(p)[q] += inverse.row(i)[k]
			}
		}
	}
	return e
}

// common is the distribution of what all applications share, at all settings.
type common struct {
	mean []float64
	cov  matrix
}

// commonWithout is what the applications but one say of it (-1: all), and −2·ln of their
// likelihood; nil where the numbers don't allow it.
func (r *residuals) commonWithout(h *covariance, without int) (*common, float64) {
	e := r.evidenceOf(h, without)
	s := r.sharedCovariance(h)
	if e == nil || !s.cholesky() {
		return nil, 0
	}
	inner := s.sandwich(e.precision) // with S = L·Lᵀ, (S⁻¹+M)⁻¹ is L·(1+LᵀML)⁻¹·Lᵀ
	for i := range inner.n {
		inner.row(i)[i]++
	}
	if !inner.cholesky() {
		return nil, 0
	}
	c := &common{mean: make([]float64, s.n), cov: newMatrix(s.n)}
	root := newMatrix(s.n) // rows: inner⁻¹ᐟ²·Lᵀ of each setting
	for i := range s.n {
		copy(root.row(i), inner.forward(s.row(i)))
	}
	for i := range s.n {
		for k := range i + 1 {
			x := dot(root.row(i), root.row(k))
			c.cov.row(i)[k], c.cov.row(k)[i] = x, x
		}
	}
	for i := range s.n {
		c.mean[i] = dot(c.cov.row(i), e.weighted)
	}
	return c, e.minusTwoL - dot(c.mean, e.weighted) + inner.logDeterminant()
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
	loss += square(math.Log(h.noise/usualNoise)/noiseSpread) / 2
	for _, x := range [...]float64{h.sharedReach, h.ownReach} {
		loss += square(math.Log(x/usualReach)/reachSpread) / 2
	}
	return loss
}

// learn finds the covariance that is most plausible for the applications but one (-1: all), by
// steps along one hyperparameter after another, of a factor that gets smaller.
func (r *residuals) learn(without int) covariance {
	h := covariance{usualSize / 2, usualSize, usualSize, usualSize / 2, usualReach, usualReach}
	best := r.loss(&h, without)
	nearest := r.spacing() / 2
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
					if *x > leastSize && *x < mostSize && h.ownReach >= nearest {
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

// spacing is the median distance from a setting to the nearest other one. What an application has to itself
// reaches half that far at least: less far it couldn't be told from noise.
func (r *residuals) spacing() float64 {
	nearest := make([]float64, 0, len(r.places))
	for i := range r.places {
		least := math.Inf(1)
		for k := range r.places {
			if i != k {
				least = min(least, r.places[i].squareTo(&r.places[k]))
			}
		}
		nearest = append(nearest, math.Sqrt(least))
	}
	slices.Sort(nearest)
	return min(nearest[len(nearest)/2], 2*usualReach)
}

// expected is what is expected of an application's residuals at one more setting, where others say what
// they share and some of the application's were seen.
func (r *residuals) expected(c *common, h *covariance, seen *ownResiduals, at int, doubt float64) float64 {
	own := r.ownCovariance(h, append(slices.Clone(seen.at), at), append(slices.Clone(seen.doubt), doubt))
	noisy, n := newMatrix(len(seen.at)), len(seen.at)
	miss, with := make([]float64, n), make([]float64, n)
	for i, a := range seen.at {
		for k, b := range seen.at {
			noisy.row(i)[k] = c.cov.row(a)[b] + own.row(i)[k]
		}
		miss[i] = seen.value[i] - c.mean[a]
		with[i] = c.cov.row(at)[a] + own.row(n)[i]
	}
	noisy.addNoise(h, seen.doubt)
	if !noisy.cholesky() {
		return c.mean[at]
	}
	return c.mean[at] + dot(with, noisy.solve(miss))
}

// ownResiduals are those of one application at settings.
type ownResiduals struct {
	at           []int
	value, doubt []float64
}

func (r *residuals) ofApplication(a int) *ownResiduals {
	return &ownResiduals{r.of[a], r.value[a], r.doubt[a]}
}

// smooth is what is expected of an application's residuals where all of them were seen, and how many
// numbers of theirs that takes: the trace of the matrix that turns the ones into the others.
func (r *residuals) smooth(
	c *common, h *covariance, seen *ownResiduals,
) (expected []float64, freedom float64) {
	n := len(seen.at)
	signal := r.ownCovariance(h, seen.at, seen.doubt)
	noisy := newMatrix(n)
	expected, miss := make([]float64, n), make([]float64, n)
	for i, a := range seen.at {
		for k, b := range seen.at {
			signal.row(i)[k] += c.cov.row(a)[b]
		}
		copy(noisy.row(i), signal.row(i))
		expected[i], miss[i] = c.mean[a], seen.value[i]-c.mean[a]
	}
	noisy.addNoise(h, seen.doubt)
	if !noisy.cholesky() {
		return expected, 0
	}
	weights := noisy.solve(miss)
	for i := range n {
		expected[i] += dot(signal.row(i), weights)
		freedom += noisy.solve(signal.row(i))[i]
	}
	return expected, freedom
}

func square(x float64) float64 { return x * x }
