package pooled

import "slices"

type gaussian struct {
	mean []float64
	cov  []float64 // len(mean) rows
}

func newGaussian(n int) gaussian {
	return gaussian{mean: make([]float64, n), cov: make([]float64, n*n)}
}

func (g *gaussian) clone() gaussian {
	return gaussian{mean: slices.Clone(g.mean), cov: slices.Clone(g.cov)}
}

// row returns the covariance of a variable with each one; writing to it changes the distribution.
func (g *gaussian) row(i int) []float64 { return g.cov[i*len(g.mean) : (i+1)*len(g.mean)] }

// tiny is a variance of logarithms below which a value is known.
const tiny = 1e-12

// observeAt conditions on the i-th variable plus noise. It returns the squared
// surprise in standard deviations; 0 for what was known already.
func (g *gaussian) observeAt(i int, value, noise float64) float64 {
	return g.condition(slices.Clone(g.row(i)), value-g.mean[i], g.row(i)[i]+noise)
}

// observe conditions on the sum of the variables, each times its weight, plus
// noise. Weights of 0 cost nothing.
func (g *gaussian) observe(weights []float64, value, noise float64) {
	with := make([]float64, len(g.mean)) // covariance of the sum with each variable
	for i, w := range weights {
		if w == 0 {
			continue
		}
		value -= w * g.mean[i]
		for j, c := range g.row(i) {
			with[j] += w * c
		}
	}
	variance := noise
	for i, w := range weights {
		variance += w * with[i]
	}
	g.condition(with, value, variance)
}

// condition conditions on a value that differs from its mean by miss and has the
// variance, and the covariances with each variable.
func (g *gaussian) condition(with []float64, miss, variance float64) float64 {
	if variance <= tiny {
		return 0
	}
	for i, w := range with {
		if w == 0 {
			continue
		}
		gain := w / variance
		g.mean[i] += gain * miss
		row := g.row(i)
		for j, c := range with {
			row[j] -= gain * c
		}
	}
	return miss * miss / variance
}
