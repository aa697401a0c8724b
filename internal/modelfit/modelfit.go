// Package modelfit fits models to a table of measurements, and takes from them only what plans can use: each
// is written and read again, and asked for clocks, as plans do.
package modelfit

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/joint"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/report/fitreport"
)

// Table is measurements of applications on one GPU model, and how to fit them.
type Table struct {
	File      string // where they were read
	Apps      []dvfsmodel.AppSamples
	Profiles  *config.Profiles
	Profile   *config.Profile // of the GPU model
	Options   *dvfsmodel.FitOptions
	AnyClocks bool // plans may choose clocks that weren't measured
}

// Result is what a fit has come to.
type Result struct {
	Models   []config.Model // as they are read from a file
	Failures []error        // why applications have no model
	Warnings []error
	// OnlyUnder is the cap of the measurements that were fitted, if the form knows nothing of caps; 0: all.
	OnlyUnder dvfsmodel.Watt
}

// Fit fits a model to each application. It is an error if the table can't have models at all.
func (t *Table) Fit() (*Result, error) {
	plain, base, highest := pooled.Uncapped(t.Apps, t.Profile.Default)
	if base.Core <= 1 || base.Mem <= 1 {
		return nil, fmt.Errorf("%s and the profile of %s lack core or memory clocks, want them for a model",
			t.File, t.Profile.Name)
	}
	r, apps := &Result{}, plain
	switch {
	case highest == 0:
	case len(t.Options.Forms) > 0:
		r.OnlyUnder = highest
	default:
		apps = pooled.FillSettings(t.Apps, t.Profile.Default)
	}
	pairs := t.Profile.Pairs()
	if !t.AnyClocks {
		pairs = measuredPairs(apps)
	}
	if highest > 0 {
		pairs = t.Profile.PairsUnder(apps, pairs)
	}
	fits, errs := joint.Fit(apps, base, pairs, t.Options)
	for i, app := range apps {
		if errs[i] != nil {
			r.Failures = append(r.Failures, fmt.Errorf("application %q: %w", app.App, errs[i]))
			continue
		}
		m, err := t.readBack(&app, fits[i])
		if err != nil {
			r.Failures = append(r.Failures, fmt.Errorf("application %q: plans could not use its model: %w", app.App,
				err))
			continue
		}
		for _, w := range fits[i].Warnings {
			r.Warnings = append(r.Warnings, fmt.Errorf("application %q: %w", app.App, w))
		}
		r.Models = append(r.Models, *m)
	}
	r.Warnings = append(r.Warnings, t.clockWarnings()...)
	return r, nil
}

// readBack writes a model and reads it again, as plan and model show do, and asks it for clocks.
func (t *Table) readBack(app *dvfsmodel.AppSamples, fit *dvfsmodel.Fitted) (*config.Model, error) {
	m := config.NewModel(app.App, t.Profile.Name, fit)
	m.Source = t.File
	if !t.AnyClocks {
		m.Clocks = config.MeasuredClocks(app.Samples)
	}
	models, err := config.NewModels(m)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := config.WriteModels(&text, models); err != nil {
		return nil, err
	}
	if models, err = config.ReadModels(&text, "models file"); err != nil {
		return nil, err
	}
	read := models.All()[0]
	_, err = fitreport.NewModel(&read, t.Profiles, math.Inf(1))
	return &read, err
}

// measuredPairs lists the clocks at which anything was measured.
func measuredPairs(apps []dvfsmodel.AppSamples) []dvfsmodel.Setting {
	var pairs []dvfsmodel.Setting
	for _, app := range apps {
		for _, s := range app.Samples {
			pairs = append(pairs, dvfsmodel.Setting{Core: s.Core, Mem: s.Mem})
		}
	}
	slices.SortFunc(pairs, dvfsmodel.Setting.Compare)
	return slices.Compact(pairs)
}

// clockWarnings warns of measured clocks that the GPU model doesn't list, and of default clocks that weren't
// measured.
func (t *Table) clockWarnings() (list []error) {
	supported := t.Profile.SupportedPairs()
	if len(supported) == 0 {
		return nil
	}
	measured := measuredPairs(pooled.FillSettings(t.Apps, t.Profile.Default))
	unlisted := slices.DeleteFunc(slices.Clone(measured),
		func(at dvfsmodel.Setting) bool { return slices.Contains(supported, at) })
	if len(unlisted) > 0 {
		choose := "plans choose among the measured clocks"
		if t.AnyClocks {
			choose = "plans choose among the clocks of the GPU model, at which predictions are guesses"
		}
		list = append(list, fmt.Errorf("%d of %d measured clocks, such as %s MHz, aren't among those of %s: %s", len(unlisted),
			len(measured), unlisted[0].Short(), t.Profile.Name, choose))
	}
	m := config.Model{Clocks: config.MeasuredClocks(samplesAt(measured))}
	if at := m.DefaultClocks(t.Profile); at != t.Profile.Default && !t.AnyClocks {
		list = append(list, fmt.Errorf("the default clocks of %s, %s MHz, weren't measured: %s MHz count as default", t.Profile.Name,
			t.Profile.Default.Short(), at.Short()))
	}
	return list
}

func samplesAt(pairs []dvfsmodel.Setting) []dvfsmodel.Sample {
	list := make([]dvfsmodel.Sample, len(pairs))
	for i, at := range pairs {
		list[i] = dvfsmodel.Sample{Core: at.Core, Mem: at.Mem}
	}
	return list
}

// Choice returns the setting to which the model of an application leads, of those that are at most so much
// slower than its fastest; false without a model.
func (t *Table) Choice(list []config.Model, app string, slowdown float64) (dvfsmodel.Setting, bool) {
	i := slices.IndexFunc(list, func(m config.Model) bool { return m.Workload == app })
	if i < 0 {
		return dvfsmodel.Setting{}, false
	}
	response, err := list[i].CappedResponse(t.Profile)
	if err != nil {
		return dvfsmodel.Setting{}, false
	}
	at, err := response.Optimum(dvfsmodel.MinEnergy(), response.MinTime()*(1+slowdown))
	if err != nil {
		return dvfsmodel.Setting{}, false
	}
	chosen := dvfsmodel.Setting{Core: at.Core, Mem: at.Mem, Cap: at.Cap}
	if chosen.Cap == 0 {
		chosen.Cap = t.Profile.PowerLimit.Default
	}
	return chosen, true
}
