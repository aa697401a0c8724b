package capped

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Posterior is what is known of an application's parameters after some runs: about normal, around the most
// plausible ones (Laplace's method).
type Posterior struct {
	mean Params
	cov  [parameters]Params
}

// Condition returns what is known after runs, of which there is one at least.
func (p *Prior) Condition(runs []Run) *Posterior {
	f := newFitting(runs, p)
	found := &Posterior{mean: f.best()}
	precision, _ := f.normalEquations(&found.mean, f.residuals(&found.mean))
	var factor mat.Cholesky
	var inverse mat.SymDense
	known := factor.Factorize(precision) && factor.InverseTo(&inverse) == nil
	for a := range found.cov {
		for b := range found.cov[a] {
			switch {
			case known:
				found.cov[a][b] = inverse.At(a, b)
			case a == b: // nothing more than before
				found.cov[a][b] = p.spread[a] * p.spread[a]
			}
		}
	}
	return found
}

// Params returns the most plausible parameters.
func (p *Posterior) Params() Params { return p.mean }

// Joint returns the distribution of ln time under conditions, and then of ln power under them: means, and the
// covariance row by row. What the model leaves open of single conditions is in it.
func (p *Posterior) Joint(at []Conditions) (mean, cov []float64) {
	n := 2 * len(at)
	mean = logOutcomes(&p.mean, at)
	slopes := make([]Params, n)
	for j := range p.mean {
		moved := p.mean
		moved[j] += slopeStep
		for i, x := range logOutcomes(&moved, at) {
			slopes[i][j] = (x - mean[i]) / slopeStep
		}
	}
	cov = make([]float64, n*n)
	for i := range slopes {
		var with Params // covariance with each parameter
		for a, x := range slopes[i] {
			for b := range with {
				with[b] += x * p.cov[a][b]
			}
		}
		for k := range slopes {
			for b, y := range slopes[k] {
				cov[i*n+k] += with[b] * y
			}
		}
		cov[i*n+i] += usualError * usualError
	}
	return mean, cov
}

// logOutcomes are ln time under conditions, and then ln power.
func logOutcomes(th *Params, at []Conditions) []float64 {
	b, list := th.Board(), make([]float64, 2*len(at))
	for i := range at {
		o := b.Predict(at[i])
		list[i], list[len(at)+i] = o.Time, o.Power
	}
	return list
}

// Pool returns what applications have in common, which is all that is known of another one: their means and
// how far they are from that, what their runs left open included. before is what was known without
// them, and counts as so many applications more.
func Pool(known []*Posterior, before *Prior, weight float64) *Prior {
	pooled := *before
	total := weight + float64(len(known))
	for i := range pooled.mean {
		if i == logTime || !(total > 0) {
			continue
		}
		mean := weight * before.mean[i]
		for _, p := range known {
			mean += p.mean[i]
		}
		mean /= total
		off := before.mean[i] - mean
		variance := weight * (before.spread[i]*before.spread[i] + off*off)
		for _, p := range known {
			off = p.mean[i] - mean
			variance += p.cov[i][i] + off*off
		}
		pooled.mean[i], pooled.spread[i] = mean, math.Sqrt(variance/total)
	}
	return &pooled
}
