package capped

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Prior is what is known of an application's parameters before it is measured: independent normals.
type Prior struct{ mean, spread Params }

// DiffusePrior holds for any GPU: half of the time goes with the core clock up to 90 % of the highest
// one, a third of the highest power is static, the voltage rises from 75 % of the highest clock on, and
// a cap is kept within 5 %; each give or take a factor of about two.
func DiffusePrior() *Prior {
	var p Prior
	set := func(i int, mean, spread float64) { p.mean[i], p.spread[i] = mean, spread }
	set(logTime, 0, openLevel)
	set(coreShare, 0.5, 2)
	set(timeKnee, math.Log(0.9), 0.5)
	set(staticW, math.Log(0.35), 0.7)
	set(dynamicW, math.Log(0.5), 0.7)
	set(voltSlope, math.Log(1.2), 0.8)
	set(voltKnee, math.Log(0.75), 0.15)
	set(capRatio, 0, 0.05)
	set(capEdge, math.Log(12), 0.6)
	set(memoryTime, 0.5, 0.5)
	set(memoryPower, 0.2, 0.3)
	return &p
}

// openLevel is the deviation of ln time before anything was measured: none is known.
const openLevel = 30

// Run is one run.
type Run struct {
	Conditions
	Outcome
}

// A fit's residuals are judged as Student's t with so many degrees of freedom, of one per cent: a
// run or two that the model doesn't describe don't bend it.
const (
	studentFreedom = 6
	usualError     = 0.01
	maxRounds      = 60
	maxTries       = 8
	slopeStep      = 1e-5
	enoughGain     = 1e-4
)

// Fit returns the most plausible parameters of an application of which nothing was known.
func Fit(runs []Run) Params {
	f := newFitting(runs, DiffusePrior())
	return f.best()
}

// newFitting has the prior's level be that of the runs: how long an application takes is open.
func newFitting(runs []Run, p *Prior) *fitting {
	f := &fitting{runs: runs, prior: *p}
	f.prior.mean[logTime] = 0
	for _, r := range runs {
		f.prior.mean[logTime] += r.Time / float64(len(runs))
	}
	return f
}

// best returns the most plausible parameters, from where the prior's mean is and from three other places
// (Levenberg and Marquardt's method).
func (f *fitting) best() Params {
	start := f.prior.mean
	best, least := start, math.Inf(1)
	for _, shift := range [...]struct{ share, knee float64 }{{-1.5, 0}, {}, {1.5, 0}, {0, -0.25}} {
		at := start
		at[coreShare] += shift.share
		at[voltKnee] += shift.knee
		if found, loss := f.descend(at); loss < least {
			best, least = found, loss
		}
	}
	return best
}

type fitting struct {
	runs  []Run
	prior Prior
}

// residuals returns the residuals in their deviations: two for each run, then those of the prior.
func (f *fitting) residuals(th *Params) []float64 {
	list := make([]float64, 0, 2*len(f.runs)+parameters)
	b := th.Board()
	for _, r := range f.runs {
		o := b.Predict(r.Conditions)
		list = append(list, (o.Time-r.Time)/usualError, (o.Power-r.Power)/usualError)
	}
	for i, x := range th {
		list = append(list, (x-f.prior.mean[i])/f.prior.spread[i])
	}
	return list
}

// loss is −2·ln of the likelihood times the prior, up to a constant.
func (f *fitting) loss(misses []float64) float64 {
	sum := 0.0
	for i, x := range misses {
		if i < 2*len(f.runs) {
			sum += (studentFreedom + 1) * math.Log1p(x*x/studentFreedom)
		} else {
			sum += x * x
		}
	}
	return sum
}

// weight returns what a residual counts in a step, by the slope of its loss.
func (f *fitting) weight(i int, miss float64) float64 {
	if i < 2*len(f.runs) {
		return (studentFreedom + 1) / (studentFreedom + miss*miss)
	}
	return 1
}

// jacobian returns the derivatives of the residuals by each parameter.
func (f *fitting) jacobian(th *Params, misses []float64) []Params {
	list := make([]Params, len(misses))
	for j := range th {
		moved := *th
		moved[j] += slopeStep
		for i, x := range f.residuals(&moved) {
			list[i][j] = (x - misses[i]) / slopeStep
		}
	}
	return list
}

// normalEquations returns the matrix and the right side of a step's normal equations.
func (f *fitting) normalEquations(th *Params, misses []float64) (*mat.SymDense, *mat.VecDense) {
	m, right := mat.NewSymDense(parameters, nil), mat.NewVecDense(parameters, nil)
	slopes := f.jacobian(th, misses)
	for i := range slopes {
		w := f.weight(i, misses[i])
		for a, x := range slopes[i] {
			if x == 0 {
				continue
			}
			right.SetVec(a, right.AtVec(a)+w*x*misses[i])
			for b, y := range slopes[i][:a+1] {
				m.SetSym(a, b, m.At(a, b)+w*x*y)
			}
		}
	}
	return m, right
}

func (f *fitting) descend(th Params) (Params, float64) {
	misses := f.residuals(&th)
	loss := f.loss(misses)
	damping := 1e-2
	for range maxRounds {
		m, right := f.normalEquations(&th, misses)
		gain := 0.0
		for range maxTries {
			damped := mat.NewSymDense(parameters, nil)
			damped.CopySym(m)
			for a := range parameters {
				damped.SetSym(a, a, damped.At(a, a)*(1+damping))
			}
			var factor mat.Cholesky
			var step mat.VecDense
			if !factor.Factorize(damped) || factor.SolveVecTo(&step, right) != nil {
				damping *= 10
				continue
			}
			next := th
			for a := range next {
				next[a] -= step.AtVec(a)
			}
			moved := f.residuals(&next)
			if l := f.loss(moved); l < loss {
				gain = loss - l
				th, misses, loss = next, moved, l
				damping /= 5
				break
			}
			damping *= 5
		}
		if gain <= enoughGain {
			break
		}
	}
	return th, loss
}
