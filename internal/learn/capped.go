package learn

import (
	"maps"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/choose"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/store/record"
)

// Runs under several power limits say more than the clocks that the limits left them: how sharply a
// board keeps a limit, and what clocks and a limit together do. A model of both is fitted beside the one
// of clocks, where limits are chosen.

// cappedSample returns what an outcome says of its workload at the clocks that were set under the power
// limit that was in force; false: nothing.
func cappedSample(o *record.Outcome, base dvfsmodel.Setting) (dvfsmodel.Sample, bool) {
	limit := o.CapW.Or(float64(o.Setting.Cap))
	if isAdapted(o) || !(limit > 0) || !(limit < maxWatt) {
		return dvfsmodel.Sample{}, false
	}
	atSet := *o // as if it had kept its clocks: that the limit held it down is in the model
	atSet.ThrottledS = maps.Clone(o.ThrottledS)
	delete(atSet.ThrottledS, powerCapped)
	atSet.WorkClock = record.WorkClock{}
	s, why := sampled(&atSet, base)
	s.Cap = dvfsmodel.Watt(math.Round(limit))
	return s, why == ""
}

// Of a model of clocks and limits: in how many parts settings are left out in turn, and how many of
// them and of limits there must be.
const (
	cappedFolds    = 5
	cappedSettings = 6
	cappedLimits   = 2
)

// fitCapped returns the model of runs at several clocks and limits, with what workloads have in common under
// limits, if anything is. Where the runs are too few to judge it by themselves, it is trusted as far as what
// is common says; nil without that, or where no model predicts their times well.
func fitCapped(
	samples []dvfsmodel.Sample, base dvfsmodel.Setting, common *commonLimits, stretch float64,
) *choose.Capped {
	if len(samples) == 0 {
		return nil
	}
	settings := pooled.FillSettings([]dvfsmodel.AppSamples{{Samples: samples}}, base)[0].Samples
	top, low := base, settings[0].At()
	limits := make(map[dvfsmodel.Watt]bool)
	for i := range settings {
		at := settings[i].At()
		limits[at.Cap] = true
		top = dvfsmodel.Setting{
			Core: max(top.Core, at.Core), Mem: max(top.Mem, at.Mem), Cap: max(top.Cap, at.Cap),
		}
		low = dvfsmodel.Setting{
			Core: min(low.Core, at.Core), Mem: min(low.Mem, at.Mem), Cap: min(low.Cap, at.Cap),
		}
	}
	few := len(settings) < cappedSettings || len(limits) < cappedLimits
	if common != nil {
		return common.model(settings, samples, base, few, stretch)
	}
	if few {
		return nil
	}
	fit := func(samples []dvfsmodel.Sample) (*dvfsmodel.Fitted, error) {
		return dvfsmodel.FitCapped(samples, top)
	}
	fitted, err := fit(settings)
	if err != nil {
		return nil
	}
	off, ok := leftOutErrors(settings, samples, fit)
	if !ok {
		return nil
	}
	fitted.TimeError = mean(off)
	m := &choose.Capped{Fitted: fitted, Low: low, Margin: marginOf(off)}
	if fitted.TimeError > maxFitError || m.Margin > maxMargin {
		return nil
	}
	return m
}

// leftOutErrors returns how far off the logarithms of run times are by models that didn't see their settings.
func leftOutErrors(
	settings, samples []dvfsmodel.Sample, fit func([]dvfsmodel.Sample) (*dvfsmodel.Fitted, error),
) ([]float64, bool) {
	fold := make(map[dvfsmodel.Setting]int, len(settings))
	for i := range settings {
		fold[settings[i].At()] = i % cappedFolds
	}
	models := make([]*dvfsmodel.Fitted, cappedFolds)
	for f := range models {
		var seen []dvfsmodel.Sample
		for i := range settings {
			if i%cappedFolds != f {
				seen = append(seen, settings[i])
			}
		}
		var err error
		if models[f], err = fit(seen); err != nil {
			return nil, false
		}
	}
	off := make([]float64, len(samples))
	for i := range samples {
		s := &samples[i]
		at := models[fold[s.At()]].Under(s.Cap).At(s.Core, s.Mem)
		if off[i] = math.Abs(math.Log(s.Time / at.Time)); math.IsNaN(off[i]) {
			return nil, false
		}
	}
	return off, true
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	return sum / float64(len(list))
}

// isSameCapped reports whether two models of clocks and limits, nil for none, predict nearly the same at
// some settings.
func isSameCapped(a, b *choose.Capped, at []dvfsmodel.Sample) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Base != b.Base || a.Low != b.Low || !slices.Equal(a.Caps, b.Caps) ||
		math.Abs(a.Margin-b.Margin) > unchangedWithin {
		return false
	}
	for i := range at {
		p, q := a.Under(at[i].Cap).At(at[i].Core, at[i].Mem), b.Under(at[i].Cap).At(at[i].Core, at[i].Mem)
		if math.Abs(p.Time-q.Time) > unchangedWithin*q.Time ||
			math.Abs(float64(p.Power-q.Power)) > unchangedWithin*float64(q.Power) {
			return false
		}
	}
	return true
}

// storedCapped is a model of clocks and limits as it is stored.
type storedCapped struct {
	Base         dvfsmodel.Setting `json:"base"`
	Low          dvfsmodel.Setting `json:"low"`
	Caps         []dvfsmodel.Watt  `json:"caps_w"`
	Coefficients []coefficient     `json:"coefficients"`
	Margin       float64           `json:"time_margin"`
	Settings     int               `json:"settings"`
	TimeError    float64           `json:"time_error"`
}

func storeCapped(m *choose.Capped) *storedCapped {
	if m == nil {
		return nil
	}
	stored := &storedCapped{
		Base: m.Base, Low: m.Low, Caps: m.Caps, Margin: m.Margin, Settings: m.Settings, TimeError: m.TimeError,
	}
	for _, c := range m.Coefficients() {
		stored.Coefficients = append(stored.Coefficients, coefficient(c))
	}
	return stored
}

// model rebuilds it; nil where that isn't possible: clocks are chosen by the model of clocks then.
func (s *storedCapped) model() *choose.Capped {
	if s == nil || !(s.Margin >= 0) || !(s.Low.Core > 0) || !(s.Low.Mem > 0) {
		return nil
	}
	list := make([]dvfsmodel.Coefficient, len(s.Coefficients))
	for i, c := range s.Coefficients {
		list[i] = dvfsmodel.Coefficient(c)
	}
	fitted, err := dvfsmodel.NewFitted(dvfsmodel.CappedForm(), s.Base, list)
	if err != nil {
		return nil
	}
	fitted.Caps, fitted.Settings, fitted.TimeError = s.Caps, s.Settings, s.TimeError
	return &choose.Capped{Fitted: fitted, Low: s.Low, Margin: s.Margin}
}
