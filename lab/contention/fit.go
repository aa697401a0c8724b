package contention

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/planner/sharing"
)

// Sample is how much slower tasks were that shared a GPU.
type Sample struct {
	sharing.Occupancy
	Slowdown float64 // times as long as alone at the same frequency
}

// Fit is a curve with what it was fitted to.
type Fit struct {
	sharing.Curve
	Samples  int // how many there were
	Outliers int // how many of them are so far off the curve that they hardly count
	// The typical difference from the curve, relative to the slowdown (1.4826 times the
	// median).
	Residual float64
}

// ErrBadSample says that a sample can't have been observed.
var ErrBadSample = errors.New("no slowdown that can be observed")

// What the fit believes before there are samples: [LinearCurve], with these
// standard deviations, and that a slowdown differs from the curve by priorNoise.
const (
	priorExponent = 0.5
	priorByTask   = 0.05
	priorByMemory = 0.1
	priorNoise    = 0.05
	maxExponent   = 4.0
	noiseFloor    = 0.005
	outlierFactor = 4.685 // residuals beyond so many times the typical one don't count (Tukey's biweight)
)

// FitCurve fits a curve to samples: the least squares of relative differences,
// from which samples that are far off are taken out by and by (Tukey's
// biweight), together with the distance from [LinearCurve], which counts as much as
// a few samples do: without any the fit is Linear. Parameters that would speed
// tasks up are left at those of Linear. The exponent is found by a search, the
// other two, in which the curve is linear, by solving for them.
func FitCurve(samples []Sample) (Fit, error) {
	for i := range samples {
		if err := samples[i].check(); err != nil {
			return Fit{}, fmt.Errorf("fit contention: sample %d: %w", i+1, err)
		}
	}
	f := fitter{
		samples: samples, noise: priorNoise,
		weight: slices.Repeat([]float64{1}, len(samples)), overload: make([]float64, len(samples)),
	}
	const rounds, settled = 30, 1e-6
	for moved := math.Inf(1); f.rounds < rounds && moved > settled; f.rounds++ {
		before := f.curve
		f.search()
		f.downweightOutliers()
		moved = max(math.Abs(f.curve.Exponent-before.Exponent), math.Abs(f.curve.ByTask-before.ByTask),
			math.Abs(f.curve.ByMemory-before.ByMemory))
	}
	fit := Fit{Curve: f.curve, Samples: len(samples)}
	for _, w := range f.weight {
		if w < .1 {
			fit.Outliers++
		}
	}
	if len(samples) > 0 {
		fit.Residual = f.medianDifference()
	}
	return fit, nil
}

// check tells what is wrong with a sample.
func (o *Sample) check() error {
	bad := func(x, least float64) bool { return !(x >= least) || math.IsInf(x, 1) }
	switch {
	case bad(o.Slowdown, 0) || o.Slowdown == 0:
		return fmt.Errorf("%w: slowdown %g, want more than 0", ErrBadSample, o.Slowdown)
	case o.Tasks < 1:
		return fmt.Errorf("%w: %d tasks, want at least 1", ErrBadSample, o.Tasks)
	case bad(o.Memory, 0) || o.Memory > 1:
		return fmt.Errorf("%w: part of the memory %g, want 0 to 1", ErrBadSample, o.Memory)
	case len(o.LoadPct) == 0:
		return fmt.Errorf("%w: no load", ErrBadSample)
	case slices.ContainsFunc(o.LoadPct, func(u float64) bool { return bad(u, 0) }):
		return fmt.Errorf("%w: a load that is negative or no number", ErrBadSample)
	}
	return nil
}

type fitter struct {
	samples  []Sample
	weight   []float64
	noise    float64 // the typical relative difference
	curve    sharing.Curve
	rounds   int
	overload []float64 // of the samples by the exponent that is being looked at
}

// search finds the curve for these weights: golden sections over the exponent.
func (f *fitter) search() {
	const steps = 30
	golden := (math.Sqrt(5) - 1) / 2
	low, high := 1.0, maxExponent
	a, b := f.bestAt(high-golden*(high-low)), f.bestAt(low+golden*(high-low))
	for range steps {
		if a.loss <= b.loss {
			high, b = b.curve.Exponent, a
			a = f.bestAt(high - golden*(high-low))
		} else {
			low, a = a.curve.Exponent, b
			b = f.bestAt(low + golden*(high-low))
		}
	}
	best := a
	if linear := f.bestAt(1); linear.loss <= best.loss {
		best = linear
	}
	f.curve = best.curve
}

// candidateFit is a curve and how badly it fits.
type candidateFit struct {
	curve sharing.Curve
	loss  float64
}

// bestAt returns the best curve with an exponent.
func (f *fitter) bestAt(exponent float64) candidateFit {
	c := sharing.Curve{Exponent: exponent}
	for i := range f.samples {
		f.overload[i] = c.Overload(f.samples[i].LoadPct)
	}
	c = f.solveLinear(c)
	return candidateFit{c, f.loss(c)}
}

// solveLinear returns the curve with its other two parameters: two normal equations, and
// fewer where one would be negative.
func (f *fitter) solveLinear(c sharing.Curve) sharing.Curve {
	tasks, memory := f.noise*f.noise/(priorByTask*priorByTask), f.noise*f.noise/(priorByMemory*priorByMemory)
	var cross, byTask, byMemory float64
	for i := range f.samples {
		s := &f.samples[i]
		overload := f.overload[i]
		w := f.weight[i] * overload * overload / (s.Slowdown * s.Slowdown)
		rest, n, m := s.Slowdown/overload-1, s.OtherTasks(), s.Pressure()
		tasks += w * n * n
		memory += w * m * m
		cross += w * n * m
		byTask += w * n * rest
		byMemory += w * m * rest
	}
	det := tasks*memory - cross*cross
	c.ByTask, c.ByMemory = (byTask*memory-byMemory*cross)/det, (byMemory*tasks-byTask*cross)/det
	switch {
	case c.ByTask < 0:
		c.ByTask, c.ByMemory = 0, max(0, byMemory/memory)
	case c.ByMemory < 0:
		c.ByTask, c.ByMemory = max(0, byTask/tasks), 0
	}
	return c
}

// loss returns the squares of the differences and of the distance from Linear.
func (f *fitter) loss(c sharing.Curve) float64 {
	sum := 0.0
	for i := range f.samples {
		s := &f.samples[i]
		d := (f.overload[i]*c.OverheadFactor(&s.Occupancy)/s.Slowdown - 1) / f.noise
		sum += f.weight[i] * d * d
	}
	e, t, m := (c.Exponent-1)/priorExponent, c.ByTask/priorByTask, c.ByMemory/priorByMemory
	return sum + e*e + t*t + m*m
}

// downweightOutliers lets samples count the less the farther off they are.
func (f *fitter) downweightOutliers() {
	if len(f.samples) < 4 {
		return
	}
	f.noise = max(noiseFloor, f.medianDifference())
	for i := range f.samples {
		x := f.difference(i) / (outlierFactor * f.noise)
		f.weight[i] = max(0, 1-x*x) * max(0, 1-x*x)
	}
}

func (f *fitter) difference(sample int) float64 {
	s := &f.samples[sample]
	return f.curve.Slowdown(s.Occupancy)/s.Slowdown - 1
}

// medianDifference returns the typical relative difference, by the median.
func (f *fitter) medianDifference() float64 {
	all := make([]float64, len(f.samples))
	for i := range all {
		all[i] = math.Abs(f.difference(i))
	}
	slices.Sort(all)
	return 1.4826 * all[len(all)/2]
}
