package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/joint"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/report/fitreport"
)

// tableFit fits models to a table of measurements on one GPU model.
type tableFit struct {
	*terminal
	file      string
	apps      []dvfsmodel.AppSamples
	profiles  *config.Profiles
	profile   *config.Profile
	opts      *dvfsmodel.FitOptions
	anyClocks bool // plans may choose clocks that weren't measured
}

// write fits every application and writes a models file. Applications that can't be fitted, and those
// whose model couldn't be used, are named; the others are written all the same.
func (f *tableFit) write(output string) error {
	list, failures, err := f.models()
	if err != nil {
		return err
	}
	f.sayWhichClocks()
	for _, failure := range failures {
		f.message("error", failure.Error())
	}
	if len(list) > 0 {
		models, err := config.NewModels(list...)
		if err != nil {
			return err
		}
		if err := f.terminal.write(output,
			func(w io.Writer) error { return config.WriteModels(w, models) }); err != nil {
			return err
		}
	}
	if len(failures) > 0 {
		return fmt.Errorf("%d of %d applications have no model", len(failures), len(f.apps))
	}
	return nil
}

// models returns the models that a file has, as they are read from it, and why applications have none. It
// is an error if the table can't have models at all.
func (f *tableFit) models() (list []config.Model, failures []error, err error) {
	plain, base, highest := pooled.Uncapped(f.apps, f.profile.Default)
	if base.Core <= 1 || base.Mem <= 1 {
		return nil, nil, fmt.Errorf("%s and the profile of %s lack core or memory clocks, want them for a model",
			f.file, f.profile.Name)
	}
	apps := plain
	switch {
	case highest == 0:
	case len(f.opts.Forms) > 0:
		f.notef("the form knows clocks only: it is fitted to what was measured under %g W", float64(highest))
	default:
		apps = pooled.Resolve(f.apps, f.profile.Default)
	}
	pairs := f.profile.Pairs()
	if !f.anyClocks {
		pairs = measuredPairs(apps)
	}
	if highest > 0 {
		pairs = f.profile.PairsUnder(apps, pairs)
	}
	fits, errs := joint.Fit(apps, base, pairs, f.opts)
	for i, app := range apps {
		if errs[i] != nil {
			failures = append(failures, fmt.Errorf("application %q: %w", app.App, errs[i]))
			continue
		}
		m, err := f.readBack(&app, fits[i])
		if err != nil {
			failures = append(failures, fmt.Errorf("application %q: plans could not use its model: %w", app.App, err))
			continue
		}
		for _, w := range fits[i].Warnings {
			f.warningf("application %q: %v", app.App, w)
		}
		list = append(list, *m)
	}
	return list, failures, nil
}

// readBack writes a model and reads it again, as plan and model show do, and asks it for clocks.
func (f *tableFit) readBack(app *dvfsmodel.AppSamples, fit *dvfsmodel.Fitted) (*config.Model, error) {
	m := config.NewModel(app.App, f.profile.Name, fit)
	m.Source = f.file
	if !f.anyClocks {
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
	_, err = fitreport.NewModel(&read, f.profiles, math.Inf(1))
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

// sayWhichClocks warns of measured clocks that the GPU model doesn't list, and of default clocks that weren't
// measured.
func (f *tableFit) sayWhichClocks() {
	supported := f.profile.SupportedPairs()
	if len(supported) == 0 {
		return
	}
	measured := measuredPairs(pooled.Resolve(f.apps, f.profile.Default))
	unlisted := slices.DeleteFunc(slices.Clone(measured),
		func(at dvfsmodel.Setting) bool { return slices.Contains(supported, at) })
	if len(unlisted) > 0 {
		choose := "plans choose among the measured clocks"
		if f.anyClocks {
			choose = "plans choose among the clocks of the GPU model, at which predictions are guesses"
		}
		f.warningf("%d of %d measured clocks, such as %s MHz, aren't among those of %s: %s", len(unlisted),
			len(measured), unlisted[0].Short(), f.profile.Name, choose)
	}
	m := config.Model{Clocks: config.MeasuredClocks(samplesAt(measured))}
	if at := m.DefaultClocks(f.profile); at != f.profile.Default && !f.anyClocks {
		f.warningf("the default clocks of %s, %s MHz, weren't measured: %s MHz count as default", f.profile.Name,
			f.profile.Default.Short(), at.Short())
	}
}

func samplesAt(pairs []dvfsmodel.Setting) []dvfsmodel.Sample {
	list := make([]dvfsmodel.Sample, len(pairs))
	for i, at := range pairs {
		list[i] = dvfsmodel.Sample{Core: at.Core, Mem: at.Mem}
	}
	return list
}

// evaluate prints how well fits predict settings left out, and what the choices of the models file cost.
func (f *tableFit) evaluate(c *cli.Context) error {
	slowdown, err := slowdownOf(c)
	if err != nil {
		return err
	}
	list, failures, err := f.models()
	if err != nil {
		f.notef("%v: regrets are those of fits in memory", err)
	}
	for _, failure := range failures {
		f.warningf("%v", failure)
	}
	result, err := joint.Evaluate(f.apps, f.profile.Default, &joint.Options{
		Fit: f.opts, Slowdown: slowdown,
		Chosen: func(app string) (dvfsmodel.Setting, bool) { return f.choice(list, app, slowdown) },
	})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return f.printJSON(result)
	}
	return f.printTable(c, fitreport.Evaluation(result))
}

// choice returns the setting to which the model of an application leads, of those that are at most so much
// slower than its fastest; false without a model.
func (f *tableFit) choice(list []config.Model, app string, slowdown float64) (dvfsmodel.Setting, bool) {
	i := slices.IndexFunc(list, func(m config.Model) bool { return m.Workload == app })
	if i < 0 {
		return dvfsmodel.Setting{}, false
	}
	response, err := list[i].CappedResponse(f.profile)
	if err != nil {
		return dvfsmodel.Setting{}, false
	}
	at, err := response.Optimum(dvfsmodel.MinEnergy(), response.MinTime()*(1+slowdown))
	if err != nil {
		return dvfsmodel.Setting{}, false
	}
	chosen := dvfsmodel.Setting{Core: at.Core, Mem: at.Mem, Cap: at.Cap}
	if chosen.Cap == 0 {
		chosen.Cap = f.profile.PowerLimit.Default
	}
	return chosen, true
}
