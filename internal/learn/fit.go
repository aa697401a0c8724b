package learn

import (
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/store/record"
)

const (
	window      = 64     // outcomes that a model is fitted to
	offInARow   = 3      // missed predictions after which a model isn't used
	maxMargin   = 0.5    // run times that scatter more aren't predicted
	coverage    = 0.9    // of the residuals by the interval
	aboveBy     = 0.02   // a clock that is higher by this part isn't the one that was set
	maxAbove    = 0.02   // of the time; a run that was at other clocks for longer is no sample of one
	maxThrottle = 0.1    // of the time; a run throttled for longer is no sample
	maxFitError = 0.2    // of times at settings left out; a worse fit is no better than the prior
	sameWithin  = 0.01   // predictions that differ less need no new version
	maxMHz      = 20_000 // no GPU's clock is as high
	looseFew    = 1.5    // margin of the largest residual where there are few
)

// sampleOf is what an outcome says of its workload; false: nothing.
func sampleOf(o *record.Outcome, base dvfsmodel.Setting) (dvfsmodel.Sample, bool) {
	s, why := sampled(o, base)
	return s, why == ""
}

// sampled is what an outcome says of its workload, or why that is nothing.
func sampled(o *record.Outcome, base dvfsmodel.Setting) (s dvfsmodel.Sample, why string) {
	seconds, timed := o.TimeS.Get()
	switch {
	case o.Unmatched:
		return s, "its start wasn't seen"
	case o.ExitState != record.Completed:
		return s, "it didn't complete"
	case !timed || !(seconds > 0):
		return s, "how long it took isn't known"
	}
	throttled := 0.0
	for _, t := range o.ThrottledS {
		throttled += t
	}
	power := o.MeanPowerW.Or(0)
	if energy, ok := o.GPUEnergyJ.Get(); ok {
		power = energy / seconds
	}
	power /= float64(max(1, len(o.GPUs)))
	set, one := o.Setting.Core, true
	if adapted(o) {
		set, one = nearlyAlways(o.Clocks, set)
	}
	s = dvfsmodel.Sample{Core: set, Mem: o.Setting.Mem, Time: seconds, Power: dvfsmodel.Watt(power)}
	if !one {
		core, took, watts, why := unstepped(o, seconds)
		if why != "" {
			return s, why
		}
		s.Core, s.Time, s.Power, set = core, took, watts, ceiling(o.Stays)
	}
	if s.Core == 0 {
		s.Core = base.Core
	}
	if s.Mem == 0 {
		s.Mem = base.Mem
	}
	seen, above := 0.0, 0.0
	for _, c := range o.Clocks {
		if seen += c.Seconds; set > 0 && c.Core > set*(1+aboveBy) {
			above += c.Seconds
		}
	}
	switch {
	case !(above <= maxAbove*seen):
		why = "it ran at higher clocks than were set for part of the time"
	case !(s.Core > 0) || !(s.Mem > 0) || s.Core > maxMHz || s.Mem > maxMHz:
		why = "its clocks aren't known"
	case !(s.Power > 0) || !(s.Power < 1e5):
		why = "its power isn't known"
	case !(seconds < 1e9) || !(throttled <= maxThrottle*seconds):
		why = "it was throttled for part of the time"
	}
	return s, why
}

// fitTo makes a model of samples, the newest first: a fit where there are
// enough settings and it is good, else what workloads have in common after these
// samples. The error says why there is none.
func fitTo(samples []dvfsmodel.Sample, base dvfsmodel.Setting, prior *pooled.Curves) (*Model, *pooled.Posterior, pooled.Noise, error) {
	if len(samples) == 0 {
		return nil, nil, pooled.Noise{}, fmt.Errorf("no completed run says how long it took at which power: %w", dvfsmodel.ErrSamples)
	}
	noise := pooled.NoiseOf(samples)
	known, err := prior.Condition(samples, base, noise)
	if err != nil {
		return nil, nil, pooled.Noise{}, err
	}
	m, err := FitModel(samples, base, known)
	return m, known, noise, err
}

// FitModel is the model by which runs are predicted, of a workload's samples, the newest
// first, and what is known after them. The error says why there is none.
func FitModel(samples []dvfsmodel.Sample, base dvfsmodel.Setting, known *pooled.Posterior) (*Model, error) {
	m := &Model{Samples: len(samples)}
	fitted, err := dvfsmodel.Fit(samples, base, nil)
	if err != nil || fitted.TimeError > maxFitError || !sane(fitted, samples) {
		if fitted, err = known.Fitted(); err != nil {
			return nil, err
		}
		m.Prior = true
	}
	m.Fitted = fitted
	m.span(samples)
	m.Margin = m.residualMargin(samples)
	if m.Margin > maxMargin {
		return nil, fmt.Errorf("run times scatter by more than %.0f%% around any model", 100*maxMargin)
	}
	last := samples[:min(offInARow, len(samples))]
	if !slices.ContainsFunc(last, func(s dvfsmodel.Sample) bool { return m.hits(&s, 0) }) {
		return nil, fmt.Errorf("the last %d runs differ from those before", len(last))
	}
	return m, nil
}

// sane tells whether a fit predicts positive numbers at its own samples.
func sane(f *dvfsmodel.Fitted, samples []dvfsmodel.Sample) bool {
	for i := range samples {
		pt := f.At(samples[i].Core, samples[i].Mem)
		if !(pt.Time > 0) || !(pt.Power > 0) || math.IsInf(float64(pt.Energy), 0) {
			return false
		}
	}
	return true
}

// span notes the clocks of the samples.
func (m *Model) span(samples []dvfsmodel.Sample) {
	m.Low = dvfsmodel.Setting{Core: samples[0].Core, Mem: samples[0].Mem}
	m.High = m.Low
	for _, s := range samples[1:] {
		m.Low = dvfsmodel.Setting{Core: min(m.Low.Core, s.Core), Mem: min(m.Low.Mem, s.Mem)}
		m.High = dvfsmodel.Setting{Core: max(m.High.Core, s.Core), Mem: max(m.High.Mem, s.Mem)}
	}
}

// residualMargin is the ratio, less 1, between run times and predictions that
// a further run seldom exceeds: a quantile of the residuals, or with few of
// them more than the largest.
func (m *Model) residualMargin(samples []dvfsmodel.Sample) float64 {
	residuals := make([]float64, len(samples))
	for i := range samples {
		pt := m.At(samples[i].Core, samples[i].Mem)
		residuals[i] = math.Abs(math.Log(samples[i].Time / pt.Time))
	}
	slices.Sort(residuals)
	n := len(residuals)
	rank := int(math.Ceil(coverage * float64(n+1)))
	if rank > n {
		return math.Expm1(looseFew * residuals[n-1])
	}
	return math.Expm1(residuals[rank-1])
}

// hits tells whether a run was within the prediction.
func (m *Model) hits(s *dvfsmodel.Sample, margin float64) bool {
	const rounding = 1e-9
	pt := m.At(s.Core, s.Mem)
	return s.Time <= m.Upper(&pt, margin)*(1+rounding) && s.Time >= m.Lower(&pt, margin)*(1-rounding)
}

// like tells whether two models predict the same, nearly, for the samples and
// at the default clocks, with nearly the same margin.
func (m *Model) like(o *Model, samples []dvfsmodel.Sample) bool {
	if m.Prior != o.Prior || m.Base != o.Base || m.Low != o.Low || m.High != o.High || math.Abs(m.Margin-o.Margin) > sameWithin {
		return false
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= sameWithin*math.Abs(b) }
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
