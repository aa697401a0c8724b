package joint

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
)

// leastCorrection is the least that is worth a line in a file, as a part, and perUnit the
// steps in which factors are told.
const (
	leastCorrection = 1e-4
	perUnit         = 1e5
)

// Fit fits the applications of a table on one GPU model, and corrects each one's fit by what they
// have in common: at the settings that any of them was measured at, and at those of supported of
// which the memory clock was measured. Where power caps differ, all samples have one, and so have
// the supported settings. An application that can't be fitted has an error in place of a fit. A
// single application, or one that must have a form, isn't corrected.
func Fit(
	apps []dvfsmodel.AppSamples, base dvfsmodel.Setting, supported []dvfsmodel.Setting,
	opts *dvfsmodel.FitOptions,
) (fits []*dvfsmodel.Fitted, errs []error) {
	fits, errs = make([]*dvfsmodel.Fitted, len(apps)), make([]error, len(apps))
	fit := func(samples []dvfsmodel.Sample) (*dvfsmodel.Fitted, error) {
		return dvfsmodel.Fit(samples, base, opts)
	}
	if top, differ := highest(apps); differ {
		fit = func(samples []dvfsmodel.Sample) (*dvfsmodel.Fitted, error) { return fitCapped(samples, top) }
	}
	var fitted []int
	for i := range apps {
		if fits[i], errs[i] = fit(apps[i].Samples); errs[i] == nil {
			fitted = append(fitted, i)
		}
	}
	if len(fitted) < 2 || opts != nil && len(opts.Forms) > 0 {
		return fits, errs
	}
	own, samples := make([]*dvfsmodel.Fitted, len(fitted)), make([]dvfsmodel.AppSamples, len(fitted))
	for k, i := range fitted {
		own[k], samples[k] = fits[i], apps[i]
	}
	corrections, err := correctionsOf(samples, own, base, supported, opts)
	for k, i := range fitted {
		if errs[i] = err; err == nil {
			fits[i] = own[k].Corrected(corrections[k])
		}
	}
	return fits, errs
}

// highest returns the highest clocks and the highest cap of a table, and whether caps differ.
func highest(apps []dvfsmodel.AppSamples) (top dvfsmodel.Setting, differ bool) {
	lowest := dvfsmodel.Watt(math.Inf(1))
	for _, app := range apps {
		for i := range app.Samples {
			s := &app.Samples[i]
			lowest = min(lowest, s.Cap)
			top.Core, top.Mem, top.Cap = max(top.Core, s.Core), max(top.Mem, s.Mem), max(top.Cap, s.Cap)
		}
	}
	return top, lowest < top.Cap
}

// fitCapped is [dvfsmodel.FitCapped] of enough settings, with errors at settings left out.
func fitCapped(samples []dvfsmodel.Sample, top dvfsmodel.Setting) (*dvfsmodel.Fitted, error) {
	f, err := dvfsmodel.FitCapped(samples, top)
	if err != nil {
		return nil, err
	}
	if f.Settings < dvfsmodel.MinSettings {
		return nil, &dvfsmodel.SampleError{Settings: f.Settings, Reason: fmt.Sprintf(
			"%d distinct settings, want at least %d", f.Settings, dvfsmodel.MinSettings)}
	}
	for i := range samples {
		s := &samples[i]
		others, err := dvfsmodel.FitCapped(without(samples, i), top)
		if err != nil {
			return nil, err
		}
		at := others.Under(s.Cap).At(s.Core, s.Mem)
		f.TimeError += math.Abs(at.Time/s.Time-1) / float64(len(samples))
		f.PowerError += math.Abs(float64(at.Power/s.Power)-1) / float64(len(samples))
	}
	return f, nil
}

// correctionsOf returns those of each application's own fit.
func correctionsOf(
	apps []dvfsmodel.AppSamples, own []*dvfsmodel.Fitted, base dvfsmodel.Setting,
	supported []dvfsmodel.Setting, fit *dvfsmodel.FitOptions,
) ([][]dvfsmodel.Correction, error) {
	t, err := newTable(apps, base, fit)
	if err != nil {
		return nil, err
	}
	curves := make([]curve, len(own))
	for i, f := range own {
		curves[i] = curveOf(f)
	}
	m := t.modelOf(curves)
	all := t.withSupported(supported)
	for q := range m.rest {
		for i := len(t.places); i < len(all); i++ {
			m.rest[q].places = append(slices.Clip(m.rest[q].places), placeOf(&all[i]))
		}
	}
	list := make([][]dvfsmodel.Correction, len(apps))
	for a := range apps {
		if m.poolingHelps(a, firstIndexes(len(m.apps[a].samples))) {
			list[a] = m.corrections(a, all)
		}
	}
	return list, nil
}

// withSupported returns a sample at each place of the table, without time and power, and then at each
// supported setting beside them.
func (t *table) withSupported(supported []dvfsmodel.Setting) []dvfsmodel.Sample {
	all := make([]dvfsmodel.Sample, len(t.places), len(t.places)+len(supported))
	mems := make(map[dvfsmodel.MHz]bool)
	var under dvfsmodel.Watt // where caps don't differ
	for at, i := range t.known {
		all[i] = dvfsmodel.Sample{Core: at.Core, Mem: at.Mem, Cap: at.Cap}
		mems[at.Mem], under = true, at.Cap
	}
	for _, s := range supported {
		sample := dvfsmodel.Sample{Core: s.Core, Mem: s.Mem, Cap: cmp.Or(s.Cap, under)}
		if _, measured := t.known[sample.At()]; !measured && mems[s.Mem] {
			all = append(all, sample)
		}
	}
	return all
}

// corrections returns those of one application at all places, of which all are samples.
func (m *model) corrections(a int, all []dvfsmodel.Sample) []dvfsmodel.Correction {
	app, at := &m.apps[a], make([]int, len(all))
	for i := range at {
		at[i] = i
	}
	var rest [quantities][]float64
	for q := range m.rest {
		r, h := &m.rest[q], &m.all[q]
		c, _ := r.commonWithout(h, a)
		if c == nil {
			return nil
		}
		doubt := m.doubtOf(energiesOf(slices.Concat(app.samples, all), m.own[a]), q)[len(app.samples):]
		rest[q] = r.expected(c, h, r.ofApplication(a), at, doubt)
	}
	var list []dvfsmodel.Correction
	for i := range all {
		time, power := rest[timeError][i], rest[energyError][i]-rest[timeError][i]
		if math.Abs(time) < leastCorrection && math.Abs(power) < leastCorrection {
			continue
		}
		list = append(list, dvfsmodel.Correction{
			Setting: dvfsmodel.Setting{Core: all[i].Core, Mem: all[i].Mem},
			Time:    factorOf(time), Power: factorOf(power),
		})
		if m.capped {
			list[len(list)-1].Cap = all[i].Cap
		}
	}
	slices.SortFunc(list, func(a, b dvfsmodel.Correction) int { return a.Compare(b.Setting) })
	return list
}

func factorOf(logarithm float64) float64 { return math.Round(math.Exp(logarithm)*perUnit) / perUnit }
