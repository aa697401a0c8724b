package learn

import (
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
)

const (
	fitWindow       = 64   // outcomes that a model is fitted to
	maxMargin       = 0.5  // run times that scatter more aren't predicted
	maxFitError     = 0.2  // of times at settings left out; a worse fit is no better than the prior
	unchangedWithin = 0.01 // predictions that differ less need no new version: half of what runs differ by
	// coverage is which part of the residuals the interval of a model holds.
	coverage = 0.9
	// missesInARow is after how many missed predictions a model isn't used: of runs like
	// those before, as many in a row miss an interval of coverage once in a thousand times.
	missesInARow = 3
	// fewResidualsFactor is by how much the margin is above the largest residual where they are too
	// few for a quantile.
	fewResidualsFactor = 1.5
)

// fitTo makes a model of samples, the newest first: a fit where there are
// enough settings and it is good, else what workloads have in common after these
// samples. The error says why there is none.
func fitTo(
	samples []dvfsmodel.Sample, base dvfsmodel.Setting, prior *pooled.Curves,
) (*Model, *pooled.Posterior, pooled.Noise, error) {
	if len(samples) == 0 {
		return nil, nil, pooled.Noise{},
			fmt.Errorf("no completed run says how long it took at which power: %w", dvfsmodel.ErrSamples)
	}
	noise := pooled.NoiseOf(samples)
	known, err := prior.Condition(samples, base, noise)
	if err != nil {
		return nil, nil, pooled.Noise{}, err
	}
	m, err := FitModel(samples, base, known)
	return m, known, noise, err
}

// FitModel returns the model by which runs are predicted, of a workload's samples, the newest
// first, and what is known after them. The error says why there is none.
func FitModel(samples []dvfsmodel.Sample, base dvfsmodel.Setting, known *pooled.Posterior) (*Model, error) {
	m := &Model{Samples: len(samples)}
	fitted, err := dvfsmodel.Fit(samples, base, nil)
	if err != nil || fitted.TimeError > maxFitError || !isSane(fitted, samples) {
		if fitted, err = known.Fitted(); err != nil {
			return nil, err
		}
		m.Prior = true
	}
	m.Fitted = fitted
	m.noteSpan(samples)
	m.Margin = m.residualMargin(samples)
	if m.Margin > maxMargin {
		return nil, fmt.Errorf("run times scatter by more than %.0f%% around any model", 100*maxMargin)
	}
	last := samples[:min(missesInARow, len(samples))]
	if !slices.ContainsFunc(last, func(s dvfsmodel.Sample) bool { return m.isHit(&s, 0) }) {
		return nil, fmt.Errorf("the last %d runs differ from those before", len(last))
	}
	return m, nil
}

// isSane reports whether a fit predicts positive numbers at its own samples.
func isSane(f *dvfsmodel.Fitted, samples []dvfsmodel.Sample) bool {
	for i := range samples {
		pt := f.At(samples[i].Core, samples[i].Mem)
		if !(pt.Time > 0) || !(pt.Power > 0) || math.IsInf(float64(pt.Energy), 0) {
			return false
		}
	}
	return true
}

// noteSpan notes the clocks of the samples.
func (m *Model) noteSpan(samples []dvfsmodel.Sample) {
	m.Low = dvfsmodel.Setting{Core: samples[0].Core, Mem: samples[0].Mem}
	m.High = m.Low
	for _, s := range samples[1:] {
		m.Low = dvfsmodel.Setting{Core: min(m.Low.Core, s.Core), Mem: min(m.Low.Mem, s.Mem)}
		m.High = dvfsmodel.Setting{Core: max(m.High.Core, s.Core), Mem: max(m.High.Mem, s.Mem)}
	}
}

// residualMargin returns the ratio, less 1, between run times and predictions that
// a further run seldom exceeds: a quantile of the residuals, or with few of
// them more than the largest.
func (m *Model) residualMargin(samples []dvfsmodel.Sample) float64 {
	residuals := make([]float64, len(samples))
	for i := range samples {
		pt := m.At(samples[i].Core, samples[i].Mem)
		residuals[i] = math.Abs(math.Log(samples[i].Time / pt.Time))
	}
	return marginOf(residuals)
}

// marginOf is that margin, of residuals of logarithms, which it sorts.
func marginOf(residuals []float64) float64 {
	slices.Sort(residuals)
	n := len(residuals)
	rank := int(math.Ceil(coverage * float64(n+1)))
	if rank > n {
		return math.Expm1(fewResidualsFactor * residuals[n-1])
	}
	return math.Expm1(residuals[rank-1])
}

// isHit reports whether a run was within the prediction.
func (m *Model) isHit(s *dvfsmodel.Sample, margin float64) bool {
	const rounding = 1e-9
	pt := m.At(s.Core, s.Mem)
	return s.Time <= m.UpperTime(&pt, margin)*(1+rounding) && s.Time >= m.LowerTime(&pt, margin)*(1-rounding)
}

// isLike reports whether two models predict the same, nearly, for the samples and
// at the default clocks, with nearly the same margin.
func (m *Model) isLike(o *Model, samples []dvfsmodel.Sample) bool {
	if m.Prior != o.Prior || m.Base != o.Base || m.Low != o.Low || m.High != o.High ||
		math.Abs(m.Margin-o.Margin) > unchangedWithin {
		return false
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= unchangedWithin*math.Abs(b) }
	for i := -1; i < len(samples); i++ {
		at := m.Base
		if i >= 0 {
			at = dvfsmodel.Setting{Core: samples[i].Core, Mem: samples[i].Mem}
		}
		a, b := m.At(at.Core, at.Mem), o.At(at.Core, at.Mem)
		if !near(a.Time, b.Time) || !near(float64(a.Power), float64(b.Power)) {
			return false
		}
	}
	return true
}
