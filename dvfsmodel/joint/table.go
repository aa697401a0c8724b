package joint

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
)

// table is the measured settings of applications on one GPU model.
type table struct {
	apps   []application
	base   dvfsmodel.Setting // default clocks, for forms
	places []place           // of all settings
	known  map[dvfsmodel.Setting]int
	capped bool              // caps differ
	top    dvfsmodel.Setting // the highest clocks and cap
	fit    dvfsmodel.FitOptions
	pools  bool // applications may be corrected by each other
}

// application is one of a table: a sample a setting, as [pooled.FillSettings] has them, and where the
// setting is in the table.
type application struct {
	name    string
	samples []dvfsmodel.Sample
	at      []int
}

func newTable(
	apps []dvfsmodel.AppSamples, base dvfsmodel.Setting, fit *dvfsmodel.FitOptions,
) (*table, error) {
	t := &table{known: make(map[dvfsmodel.Setting]int)}
	if fit != nil {
		t.fit = *fit
	}
	lowest := dvfsmodel.Watt(math.Inf(1))
	for _, app := range pooled.FillSettings(apps, base) {
		if err := dvfsmodel.CheckSamples(app.Samples); err != nil {
			return nil, fmt.Errorf("application %s: %w", app.App, err)
		}
		own := application{name: app.App, samples: app.Samples}
		for i := range app.Samples {
			s := &app.Samples[i]
			at, seen := t.known[s.At()]
			if !seen {
				at = len(t.places)
				t.known[s.At()] = at
				t.places = append(t.places, placeOf(s))
			}
			own.at = append(own.at, at)
			t.top.Core, t.top.Mem = max(t.top.Core, s.Core), max(t.top.Mem, s.Mem)
			t.top.Cap, lowest = max(t.top.Cap, s.Cap), min(lowest, s.Cap)
		}
		t.apps = append(t.apps, own)
	}
	t.capped = lowest < t.top.Cap
	t.pools = len(apps) > 1 && len(t.fit.Forms) == 0
	t.base = dvfsmodel.Setting{
		Core: cmp.Or(base.Core, t.top.Core), Mem: cmp.Or(base.Mem, t.top.Mem),
	}
	return t, nil
}

func placeOf(s *dvfsmodel.Sample) place {
	p := place{math.Log(float64(s.Core)), math.Log(float64(s.Mem))}
	if s.Cap > 0 {
		p[2] = math.Log(float64(s.Cap))
	}
	return p
}

// curve is what is expected of one application from its own measurements alone.
type curve func(s *dvfsmodel.Sample) outcome

// fitOne fits one application's samples: one of dvfsmodel's forms, or where caps differ the model
// of a capped GPU.
func (t *table) fitOne(samples []dvfsmodel.Sample) (*dvfsmodel.Fitted, error) {
	if t.capped {
		return dvfsmodel.FitCapped(samples, t.top)
	}
	return dvfsmodel.Fit(samples, t.base, &t.fit)
}

func curveOf(f *dvfsmodel.Fitted) curve {
	return func(s *dvfsmodel.Sample) outcome {
		p := f.Under(s.Cap).At(s.Core, s.Mem)
		return outcome{math.Log(p.Time), math.Log(float64(p.Power))}
	}
}

func measuredOutcome(s *dvfsmodel.Sample) outcome {
	return outcome{math.Log(s.Time), math.Log(float64(s.Power))}
}

// doubtOf is by how much more a fit's residuals of energy vary at each setting than at the one of
// least energy: a form is fitted with weights (see [dvfsmodel.FitOptions]), and the variance is the
// inverse of those. Times are wanted everywhere alike, and where caps differ all settings count
// alike.
func (t *table) doubtOf(energies []float64, q int) []float64 {
	doubt := slices.Repeat([]float64{1}, len(energies))
	if q != energyError || t.capped {
		return doubt
	}
	least := slices.Min(energies)
	for i, e := range energies {
		doubt[i] = math.Hypot(1, math.Expm1(e-least)/cmp.Or(t.fit.Focus, dvfsmodel.DefaultFocus))
	}
	return doubt
}

// energiesOf is ln energy as a fit has it.
func energiesOf(samples []dvfsmodel.Sample, fit curve) []float64 {
	list := make([]float64, len(samples))
	for i := range samples {
		list[i] = fit(&samples[i]).quantity(energyError)
	}
	return list
}
