package dvfsmodel

import (
	"fmt"
	"math"
)

// AppSamples are the measured settings of one application on one GPU model.
type AppSamples struct {
	App     string
	Samples []Sample
}

// Regret is what choosing clocks by a fit costs: measured energy at the chosen
// measured setting over the least measured energy, minus 1. For one application
// mean and maximum are the same.
type Regret struct {
	Mean float64 `json:"regret_mean"`
	Max  float64 `json:"regret_max"`
}

// Evaluation is how well fitted models predict and choose. All values are
// fractions.
type Evaluation struct {
	App      string `json:"app,omitempty"`
	Settings int    `json:"settings"`
	Form     string `json:"form,omitempty"` // the form of the full fit
	// TimeMAPE and PowerMAPE are the mean |predicted/measured − 1| at each
	// setting by a fit that did not see it.
	TimeMAPE  float64 `json:"time_mape"`
	PowerMAPE float64 `json:"power_mape"`
	// FullFit chooses by one fit to all settings.
	FullFit Regret `json:"full_fit"`
	// LOSO chooses by the energies that fits predicted for the setting each
	// of them did not see (leave one setting out); the form is chosen anew
	// each time.
	LOSO Regret `json:"loso"`
}

// EvaluationReport is the evaluation of every application of a table, and of
// all of them together: means over applications, and over settings for the
// errors.
type EvaluationReport struct {
	Overall Evaluation   `json:"overall"`
	Apps    []Evaluation `json:"apps"`
}

// Evaluate fits one application's settings, all of them and all but each one,
// and measures the predictions and the choices against the samples. Samples
// at one setting are averaged first.
func Evaluate(app AppSamples, base Setting, opts *FitOptions) (Evaluation, error) {
	settings, err := averageSamples(app.Samples, base)
	if err != nil {
		return Evaluation{}, fmt.Errorf("application %s: %w", app.App, err)
	}
	full, err := Fit(settings, base, opts)
	if err != nil {
		return Evaluation{}, fmt.Errorf("application %s: %w", app.App, err)
	}
	e := Evaluation{App: app.App, Settings: len(settings), Form: full.Form.String()}
	seen, unseen := make([]float64, len(settings)), make([]float64, len(settings))
	rest := make([]Sample, len(settings)-1)
	for i, s := range settings {
		seen[i] = float64(full.At(s.Core, s.Mem).Energy)
		copy(rest, settings[:i])
		copy(rest[i:], settings[i+1:])
		f, err := Fit(rest, base, opts)
		if err != nil {
			return Evaluation{}, fmt.Errorf("application %s without %g/%g MHz: %w", app.App, float64(s.Core),
				float64(s.Mem), err)
		}
		p := f.At(s.Core, s.Mem)
		unseen[i] = float64(p.Energy)
		e.TimeMAPE += math.Abs(p.Time/s.Time-1) / float64(len(settings))
		e.PowerMAPE += math.Abs(float64(p.Power/s.Power)-1) / float64(len(settings))
	}
	e.FullFit, e.LOSO = regretOf(settings, seen), regretOf(settings, unseen)
	return e, nil
}

// regretOf returns the regret of the setting with the least predicted energy.
func regretOf(settings []Sample, predicted []float64) Regret {
	chosen, least := 0, math.Inf(1)
	for i, s := range settings {
		if predicted[i] < predicted[chosen] {
			chosen = i
		}
		least = min(least, float64(s.Energy()))
	}
	r := float64(settings[chosen].Energy())/least - 1
	return Regret{Mean: r, Max: r}
}

// EvaluateAll evaluates every application of a table.
func EvaluateAll(apps []AppSamples, base Setting, opts *FitOptions) (*EvaluationReport, error) {
	report := &EvaluationReport{Apps: make([]Evaluation, 0, len(apps))}
	for _, app := range apps {
		e, err := Evaluate(app, base, opts)
		if err != nil {
			return nil, err
		}
		report.Apps = append(report.Apps, e)
	}
	report.Overall = summarise(report.Apps)
	return report, nil
}

// summarise returns the evaluation of all applications together, as [EvaluationReport]
// says.
func summarise(apps []Evaluation) Evaluation {
	var all Evaluation
	n := float64(len(apps))
	for _, e := range apps {
		all.Settings += e.Settings
		all.TimeMAPE += e.TimeMAPE * float64(e.Settings)
		all.PowerMAPE += e.PowerMAPE * float64(e.Settings)
		all.FullFit.add(e.FullFit, n)
		all.LOSO.add(e.LOSO, n)
	}
	if all.Settings > 0 {
		all.TimeMAPE /= float64(all.Settings)
		all.PowerMAPE /= float64(all.Settings)
	}
	return all
}

// add adds one of so many applications to a regret over all of them.
func (r *Regret) add(app Regret, apps float64) {
	r.Mean += app.Mean / apps
	r.Max = max(r.Max, app.Max)
}
