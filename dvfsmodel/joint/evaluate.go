package joint

import (
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
)

// Options adjust [Evaluate]. A nil pointer means the defaults.
type Options struct {
	Fit *dvfsmodel.FitOptions // of each application's own fit
	// Slowdown is how much slower than the fastest setting a choice may be, as a fraction;
	// +Inf: as slow as it likes, and so is 0 in nil options.
	Slowdown float64
	// Chosen returns the setting that the model which is kept of an application leads to; false: it isn't
	// known, and the full fit chooses. nil: full fits choose for all.
	Chosen func(app string) (dvfsmodel.Setting, bool)
}

// Regret is what choosing clocks by a fit costs: measured energy at the chosen
// measured setting over the least measured energy, minus 1. For one application
// mean and maximum are the same.
type Regret struct {
	Mean float64 `json:"regret_mean"`
	Max  float64 `json:"regret_max"`
}

// Evaluation is how well fits of all applications of a table together predict and choose. All values
// are fractions.
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
	// OwnFit chooses by the application's own fit alone.
	OwnFit Regret `json:"own_fit"`
	// Pooled reports whether the other applications correct the fit, because that makes it better at
	// settings left out.
	Pooled bool `json:"pooled"`
	// DegreesOfFreedom is how many numbers what is added to the application's own fit takes from its
	// energies: the trace of ∂ln added/∂ln measured. It is below the number of settings; were it the
	// same, the table would have been learnt by heart.
	DegreesOfFreedom float64 `json:"degrees_of_freedom"`
	// Violations are the part of the applications that a full fit makes more than [pooled.Tolerance] slower
	// than the slowdown that is allowed. nil: none is asked for.
	Violations *float64 `json:"violations,omitempty"`
}

// EvaluationReport is the evaluation of every application of a table, and of all of them together:
// means over applications, over settings for the errors, and sums of settings and degrees of
// freedom.
type EvaluationReport struct {
	Overall Evaluation   `json:"overall"`
	Apps    []Evaluation `json:"apps"`
}

// Evaluate fits all applications of a table on one GPU model together, with all settings and with
// each left out, and measures the choices against the samples. base are the default clocks; those
// that are 0 are the highest of the table. Which covariance residuals have is learnt from all
// applications for a full fit, and from the other ones where a setting is left out.
func Evaluate(apps []dvfsmodel.AppSamples, base dvfsmodel.Setting, opts *Options) (*EvaluationReport, error) {
	if opts == nil {
		opts = &Options{Slowdown: math.Inf(1)}
	}
	t, err := newTable(apps, base, opts.Fit)
	if err != nil {
		return nil, err
	}
	m, err := t.fitAll()
	if err != nil {
		return nil, err
	}
	report := &EvaluationReport{Apps: make([]Evaluation, 0, len(apps))}
	for a := range t.apps {
		e, err := m.evaluate(a, opts)
		if err != nil {
			return nil, err
		}
		report.Apps = append(report.Apps, e)
	}
	report.summarise()
	return report, nil
}

// quantities are the ones whose residuals are modelled: energy, by which settings are chosen, and
// time, by which they are allowed.
const (
	energyError = iota
	timeError
	quantities
)

// outcome is ln time and ln power.
type outcome struct{ time, power float64 }

func (o outcome) quantity(q int) float64 {
	if q == timeError {
		return o.time
	}
	return o.time + o.power
}

// model is the fits of a table's applications and what they leave.
type model struct {
	*table
	own   []curve
	forms []string
	rest  [quantities]residuals
	all   [quantities]covariance // learnt from all applications
	// others are what the others say of each application, and gain how much that helps it: see [model.gainOf].
	others []*others
	gain   []float64
}

// fitAll fits each application on its own.
func (t *table) fitAll() (*model, error) {
	own, forms := make([]curve, len(t.apps)), make([]string, len(t.apps))
	for i := range t.apps {
		f, err := t.fitOne(t.apps[i].samples)
		if err != nil {
			return nil, fmt.Errorf("application %s: %w", t.apps[i].name, err)
		}
		own[i], forms[i] = curveOf(f), f.Form.String()
	}
	m := t.modelOf(own)
	m.forms = forms
	return m, nil
}

// modelOf learns what the applications' own fits leave.
func (t *table) modelOf(own []curve) *model {
	m := &model{table: t, own: own}
	for q := range m.rest {
		m.rest[q].places = t.places
	}
	for i, fit := range own {
		app := &t.apps[i]
		for q := range m.rest {
			m.rest[q].of = append(m.rest[q].of, app.at)
			m.rest[q].value = append(m.rest[q].value, t.residualsOf(app.samples, fit, q))
			m.rest[q].doubt = append(m.rest[q].doubt, t.doubtOf(energiesOf(app.samples, fit), q))
		}
	}
	for q := range m.rest {
		m.all[q] = m.rest[q].learnCovariance(-1)
	}
	m.learnPooling()
	return m
}

// residualsOf returns what a fit leaves of a quantity.
func (t *table) residualsOf(samples []dvfsmodel.Sample, fit curve, q int) []float64 {
	list := make([]float64, len(samples))
	for i := range samples {
		list[i] = measuredOutcome(&samples[i]).quantity(q) - fit(&samples[i]).quantity(q)
	}
	return list
}

// predictions are logarithms of each quantity at an application's settings.
type predictions [quantities][]float64

func (m *model) evaluate(a int, opts *Options) (Evaluation, error) {
	app := &m.apps[a]
	n := len(app.samples)
	e := Evaluation{App: app.name, Settings: n, Form: m.forms[a]}
	own, left := m.predictionsOf(n), m.predictionsOf(n)
	all := firstIndexes(n)
	for i := range app.samples {
		s, rest := &app.samples[i], without(all, i)
		alone, corrected, err := m.predictLeftOut(a, rest, all[i:i+1])
		if err != nil {
			return e, fmt.Errorf("application %s without %s: %w", app.name, words(s), err)
		}
		if !m.poolingHelps(a, rest) {
			corrected = alone
		}
		own.set(i, m.own[a](s))
		left.set(i, corrected[0])
		is := measuredOutcome(s)
		e.TimeMAPE += math.Abs(math.Expm1(corrected[0].time-is.time)) / float64(n)
		e.PowerMAPE += math.Abs(math.Expm1(corrected[0].power-is.power)) / float64(n)
	}
	e.Pooled = m.poolingHelps(a, all)
	full := own
	if e.Pooled {
		full, e.DegreesOfFreedom = m.smooth(a, own)
	}
	slowdown := opts.Slowdown
	e.OwnFit, _ = app.regret(app.choice(own, slowdown), slowdown)
	e.LOSO, _ = app.regret(app.choice(left, slowdown), slowdown)
	chosen := app.choice(full, slowdown)
	if i := m.keptChoice(app, opts); i >= 0 {
		chosen = i
	}
	var slow bool
	e.FullFit, slow = app.regret(chosen, slowdown)
	if !math.IsInf(slowdown, 1) {
		v := 0.0
		if slow {
			v = 1
		}
		e.Violations = &v
	}
	return e, nil
}

func (m *model) predictionsOf(n int) *predictions {
	var p predictions
	for q := range p {
		p[q] = make([]float64, n)
	}
	return &p
}

func (p *predictions) set(i int, o outcome) {
	for q := range p {
		p[q][i] = o.quantity(q)
	}
}

// smooth returns an application's own fit with what is expected of its residuals, and how many numbers
// that takes from its energies.
func (m *model) smooth(a int, own *predictions) (full *predictions, freedom float64) {
	full = m.predictionsOf(len(own[energyError]))
	for q := range m.rest {
		r, h := &m.rest[q], &m.all[q]
		c, _ := r.commonWithout(h, a)
		rest, taken := r.smooth(c, h, r.ofApplication(a))
		if q == energyError {
			freedom = taken
		}
		for i := range rest {
			full[q][i] = own[q][i] + rest[i]
		}
	}
	return full, freedom
}

func without[T any](list []T, i int) []T {
	rest := make([]T, 0, len(list)-1)
	return append(append(rest, list[:i]...), list[i+1:]...)
}

func words(s *dvfsmodel.Sample) string {
	return fmt.Sprintf("%g/%g MHz", float64(s.Core), float64(s.Mem))
}

// keptChoice returns the measured setting that the application's kept model chooses, or -1.
func (m *model) keptChoice(app *application, opts *Options) int {
	if opts.Chosen == nil {
		return -1
	}
	at, ok := opts.Chosen(app.name)
	if !ok {
		return -1
	}
	return slices.IndexFunc(app.samples, func(s dvfsmodel.Sample) bool {
		return s.Core == at.Core && s.Mem == at.Mem && (!m.capped || s.Cap == at.Cap)
	})
}

// choice returns the setting with the least predicted energy of those that are predicted to be at most so
// much slower than the fastest.
func (app *application) choice(p *predictions, slowdown float64) int {
	fastest := slices.Min(p[timeError])
	chosen := -1
	for i := range app.samples {
		if p[timeError][i] <= fastest+math.Log1p(slowdown) &&
			(chosen < 0 || p[energyError][i] < p[energyError][chosen]) {
			chosen = i
		}
	}
	return chosen
}

// regret returns the regret of a setting over the best one of those that are at most so much slower than
// the fastest, and whether it is slower than that by more than [pooled.Tolerance]. What a violation saves
// is no regret below 0.
func (app *application) regret(chosen int, slowdown float64) (Regret, bool) {
	fastest, least := math.Inf(1), math.Inf(1)
	for i := range app.samples {
		fastest = min(fastest, app.samples[i].Time)
	}
	for i := range app.samples {
		if app.samples[i].Time <= fastest*(1+slowdown) {
			least = min(least, float64(app.samples[i].Energy()))
		}
	}
	s := &app.samples[chosen]
	r := max(0, float64(s.Energy())/least-1)
	return Regret{Mean: r, Max: r}, s.Time > fastest*(1+slowdown+pooled.Tolerance)
}

// summarise fills in Overall.
func (r *EvaluationReport) summarise() {
	all := &r.Overall
	n := float64(len(r.Apps))
	for i := range r.Apps {
		e := &r.Apps[i]
		all.Settings += e.Settings
		all.TimeMAPE += e.TimeMAPE * float64(e.Settings)
		all.PowerMAPE += e.PowerMAPE * float64(e.Settings)
		all.DegreesOfFreedom += e.DegreesOfFreedom
		for _, x := range [...]struct{ all, own *Regret }{
			{&all.FullFit, &e.FullFit}, {&all.LOSO, &e.LOSO}, {&all.OwnFit, &e.OwnFit},
		} {
			x.all.Mean += x.own.Mean / n
			x.all.Max = max(x.all.Max, x.own.Max)
		}
		if e.Violations != nil {
			if all.Violations == nil {
				all.Violations = new(float64)
			}
			*all.Violations += *e.Violations / n
		}
	}
	if all.Settings > 0 {
		all.TimeMAPE /= float64(all.Settings)
		all.PowerMAPE /= float64(all.Settings)
	}
}
