package dvfsmodel

import (
	"math"
	"slices"
)

// How many places of a knee are tried, evenly in its logarithm: for a fit, and
// while looking for outliers.
const (
	kneeSteps   = 24
	coarseSteps = 8
)

// observations are values of one quantity, time or power, at distinct
// normalised clocks.
type observations struct {
	clocks []Scaling // V unused
	value  []float64
	trust  []float64 // 1, or less for an outlier
	focus  []float64 // how much the fit cares, see [FitOptions]
	oneMem bool
}

func (o *observations) len() int { return len(o.value) }

// keptCount returns how many observations aren't outliers.
func (o *observations) keptCount() int {
	n := 0
	for _, w := range o.trust {
		if w == 1 {
			n++
		}
	}
	return n
}

// linearProblem states the fit of a shape with its knee at the given place.
// Residuals are relative: (measured − predicted)/measured for a positive
// shape, ln(measured/predicted) for a logarithmic one.
func (o *observations) linearProblem(s *shape, knee float64) *leastSquares {
	n := o.len()
	p := &leastSquares{
		cols:   s.columns(o.oneMem),
		rows:   make([][maxTerms]float64, n),
		target: make([]float64, n),
		weight: make([]float64, n),
	}
	for i, c := range o.clocks {
		s.row(&p.rows[i], c.Fc, c.Fm, knee)
		p.weight[i] = o.trust[i] * o.focus[i]
		if !s.positive {
			p.target[i] = math.Log(o.value[i])
			continue
		}
		p.target[i] = 1
		for j := range s.terms {
			p.rows[i][j] /= o.value[i]
		}
	}
	return p
}

// fit solves the problem of a shape; false when its terms are collinear, or no
// coefficients ≥ 0 are to be had.
func (p *leastSquares) fit(s *shape) (*solution, bool) {
	if s.positive {
		return p.solveNonNegative()
	}
	return p.solve(p.cols)
}

// knees returns the places tried for the shape's knee: across the clocks seen.
func (o *observations) knees(s *shape, steps int) []float64 {
	if s.axis == nil {
		return []float64{0}
	}
	at := make([]float64, o.len())
	for i, c := range o.clocks {
		at[i] = s.axis(c.Fc, c.Fm)
	}
	low, high := slices.Min(at), slices.Max(at)
	places := make([]float64, steps)
	for i := range places {
		places[i] = low * math.Pow(high/low, float64(i)/float64(steps-1))
	}
	return places
}

// curveFit is a curve with how well it was fitted.
type curveFit struct {
	fittedCurve
	solution *solution
	// unseen is predicted over measured at each observation, by a fit that
	// did not see it: in closed form, with the outliers' weights and the
	// coefficients held at 0 those of the whole fit.
	unseen []float64
	// studentised is each residual over √(1−leverage): all have the same
	// spread when none is an outlier.
	studentised []float64
	lossWithout []float64 // the least loss of a fit that did not see each
}

// fitCurve fits one shape; false when the observations are too few for it or
// can't tell its terms apart.
func (o *observations) fitCurve(s *shape, steps int) (*curveFit, bool) {
	if s.size(o.oneMem) >= o.keptCount() {
		return nil, false
	}
	n := o.len()
	var best *curveFit
	lossWithout := slices.Repeat([]float64{math.Inf(1)}, n)
	deleted := slices.Repeat([]float64{math.Inf(1)}, n)
	studentised := make([]float64, n)
	for _, knee := range o.knees(s, steps) {
		p := o.linearProblem(s, knee)
		sol, ok := p.fit(s)
		if !ok {
			continue
		}
		if best == nil || sol.loss < best.solution.loss {
			best = &curveFit{fittedCurve: fittedCurve{shape: s, coef: sol.coef, knee: knee}, solution: sol}
		}
		for i := range n {
			d := sol.deletedResidual(i)
			if loss := sol.loss - p.weight[i]*sol.residual[i]*d; loss < lossWithout[i] {
				lossWithout[i], deleted[i] = loss, d
				studentised[i] = sol.studentised(i)
			}
		}
	}
	if best == nil {
		return nil, false
	}
	best.studentised, best.lossWithout = studentised, lossWithout
	best.unseen = make([]float64, n)
	for i, d := range deleted {
		best.unseen[i] = s.ratio(d)
	}
	return best, true
}

// worstRatio bounds predicted over measured, so that one absurd prediction
// doesn't hide the rest.
const worstRatio = 1e3

// ratio is predicted over measured for a residual.
func (s *shape) ratio(residual float64) float64 {
	r := math.Exp(-residual)
	if s.positive {
		r = 1 - residual
	}
	return clamp(r, 1/worstRatio, worstRatio)
}
