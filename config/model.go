package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/queue"
)

// Model is how one workload on one GPU model answers to clocks: what a fit
// found, or what a file says.
type Model struct {
	Workload string
	GPUModel string
	Form     dvfsmodel.Form
	// Base is the clocks that coefficients are normalised to, and of [dvfsmodel.CappedForm] the cap.
	Base dvfsmodel.Setting
	Caps []dvfsmodel.Watt // of that form: those that were measured, ascending
	// Clocks are those that were measured, among which plans choose; nil: all of the GPU model.
	Clocks []ClockGroup
	// Coefficients by the names they have in the file: for the paper's form
	// those of [dvfsmodel.ParamList], for any other those of
	// [dvfsmodel.Fitted.Coefficients] by name. A standard error of 0 is unknown.
	Coefficients []dvfsmodel.Coefficient
	Settings     int // distinct settings it was fitted to; 0: unknown
	// TimeMAPE and PowerMAPE are the fit's mean |predicted/measured − 1| at
	// settings left out.
	TimeMAPE, PowerMAPE float64
	// Corrections are what a joint fit of many workloads says beyond the form.
	Corrections []dvfsmodel.Correction
	Source      string         // where the samples came from
	Pos         queue.Position // where it was read
}

// NewModel returns a fitted model under the names that jobs and nodes use.
func NewModel(workload, gpuModel string, f *dvfsmodel.Fitted) Model {
	m := Model{
		Workload: workload, GPUModel: gpuModel, Form: f.Form, Base: f.Base, Caps: f.Caps,
		Settings: f.Settings, TimeMAPE: f.TimeError, PowerMAPE: f.PowerError,
		Coefficients: f.Coefficients(), Corrections: f.Corrections,
	}
	if list, ok := f.PaperCoefficients(); ok {
		m.Coefficients = list
		return m
	}
	slices.SortFunc(m.Coefficients, func(a, b dvfsmodel.Coefficient) int {
		return strings.Compare(a.Name, b.Name)
	})
	return m
}

// Doubt returns how far off the model may be, by its errors at settings left out; nil where
// none is stated.
func (m *Model) Doubt() *dvfsmodel.Uncertainty {
	if m.TimeMAPE == 0 && m.PowerMAPE == 0 {
		return nil
	}
	coefficients := (len(m.Coefficients) + 1) / 2 //nolint:mnd // of time, or of power
	free := m.Settings - coefficients
	if m.Settings == 0 {
		free = math.MaxInt32 // not known
	}
	return dvfsmodel.NewUncertainty(m.TimeMAPE, m.PowerMAPE, free)
}

// Fitted rebuilds the model that predicts time and power.
func (m *Model) Fitted() (*dvfsmodel.Fitted, error) {
	f, err := m.uncorrected()
	if err == nil && len(m.Corrections) > 0 {
		f = f.Corrected(m.Corrections)
	}
	return f, err
}

// uncorrected returns the model without its corrections.
func (m *Model) uncorrected() (*dvfsmodel.Fitted, error) {
	if m.Form == dvfsmodel.PaperForm() {
		p, err := dvfsmodel.ParamsFrom(m.Coefficients)
		if err != nil {
			return nil, err
		}
		return dvfsmodel.PaperModel(p, m.Base)
	}
	return dvfsmodel.NewFitted(m.Form, m.Base, m.Coefficients)
}

// Response returns how the workload answers to the clocks of a GPU model: what
// planning asks. The model's base clocks need not be the profile's defaults.
// Building one costs more than asking it: keep it for all jobs of a workload.
//
// A model in the paper's form was fitted with the paper's voltage curve, which
// therefore goes before the profile's.
func (m *Model) Response(p *Profile) (dvfsmodel.Response, error) { return m.responseUnder(p, nil) }

// CappedResponse is [Model.Response] with power caps among the settings: those that were measured, as
// far as the profile's limits allow them. A model without caps, or a profile without limits, has
// none.
func (m *Model) CappedResponse(p *Profile) (dvfsmodel.Response, error) {
	var caps []dvfsmodel.Watt
	for _, w := range m.Caps {
		if p.PowerLimit.Caps().Has(w) {
			caps = append(caps, w)
		}
	}
	return m.responseUnder(p, caps)
}

func (m *Model) responseUnder(p *Profile, caps []dvfsmodel.Watt) (dvfsmodel.Response, error) {
	response, err := m.response(p, caps)
	if err != nil {
		return nil, fmt.Errorf("model of workload %s on %s: %w", quoteName(m.Workload),
			quoteName(m.GPUModel), err)
	}
	return response, nil
}

func (m *Model) response(p *Profile, caps []dvfsmodel.Watt) (dvfsmodel.Response, error) {
	if p.Range != "" {
		return m.responseInRange(p)
	}
	table, at, err := m.table(p)
	if err != nil {
		return nil, err
	}
	if m.Form == dvfsmodel.PaperForm() && len(m.Corrections) == 0 {
		params, err := dvfsmodel.ParamsFrom(m.Coefficients)
		return &dvfsmodel.Discrete{Params: params, Table: table, At: at}, err
	}
	fitted, err := m.Fitted()
	if err != nil {
		return nil, err
	}
	fitted = fitted.Under(p.PowerLimit.Default)
	for _, limit := range append([]dvfsmodel.Watt{p.PowerLimit.Default}, caps...) {
		if err := checkPredictions(fitted.Under(limit), table); err != nil {
			return nil, err
		}
	}
	if len(m.Clocks) > 0 {
		return dvfsmodel.NewMeasuredFrontier(fitted, table, at, caps), nil
	}
	return dvfsmodel.NewCappedFrontier(fitted, table, at, caps), nil
}

// checkPredictions reports the first setting at which a model predicts what can't be.
func checkPredictions(fitted *dvfsmodel.Fitted, table *dvfsmodel.Table) error {
	for _, pt := range table.Points() {
		s := pt.Scaling
		if t, w := fitted.Time(s.Fc, s.Fm), float64(fitted.Power(s)); !positiveRange.contains(t) ||
			!positiveRange.contains(w) {
			return fmt.Errorf("it predicts %.6g s and %.6g W at %.6g/%.6g MHz, want positive numbers", t,
				w, float64(pt.Core), float64(pt.Mem))
		}
	}
	return nil
}

// responseInRange returns the response in a range, which is relative to the defaults.
func (m *Model) responseInRange(p *Profile) (dvfsmodel.Response, error) {
	if m.Form != dvfsmodel.PaperForm() || len(m.Corrections) > 0 {
		return nil, fmt.Errorf(
			"GPU model %s has a range and no clocks: the form must be the paper's without corrections, not %s",
			p.Name, m.Form)
	}
	if p.Default != (dvfsmodel.Setting{}) && p.Default != m.Base {
		return nil, fmt.Errorf("GPU model %s has a range around %v/%v MHz, the model is for %v/%v", p.Name,
			float64(p.Default.Core), float64(p.Default.Mem), float64(m.Base.Core), float64(m.Base.Mem))
	}
	scaling, err := dvfsmodel.RangeByName(p.Range)
	if err != nil {
		return nil, err
	}
	params, err := dvfsmodel.ParamsFrom(m.Coefficients)
	return &dvfsmodel.Continuous{Params: params, Range: &scaling}, err
}

// MeasuredClocks returns the clocks of samples: memory clocks with the same core clocks are a group.
func MeasuredClocks(samples []dvfsmodel.Sample) []ClockGroup {
	cores := make(map[dvfsmodel.MHz][]dvfsmodel.MHz)
	var mems []dvfsmodel.MHz
	for _, s := range samples {
		if _, seen := cores[s.Mem]; !seen {
			mems = append(mems, s.Mem)
		}
		cores[s.Mem] = append(cores[s.Mem], s.Core)
	}
	slices.Sort(mems)
	var groups []ClockGroup
	for _, mem := range mems {
		slices.Sort(cores[mem])
		list := slices.Compact(cores[mem])
		same := func(g ClockGroup) bool { return slices.Equal(g.Core, list) }
		if i := slices.IndexFunc(groups, same); i >= 0 {
			groups[i].Mem = append(groups[i].Mem, mem)
			continue
		}
		groups = append(groups, ClockGroup{Mem: []dvfsmodel.MHz{mem}, Core: list})
	}
	return groups
}

// DefaultClocks returns the clocks that count as the model's default ones on a GPU model: the profile's, or
// the nearest measured ones if the model says which clocks were measured. Memory clocks go first. If the
// profile has no clocks, these are the highest.
func (m *Model) DefaultClocks(p *Profile) dvfsmodel.Setting {
	if len(m.Clocks) == 0 {
		return p.Default
	}
	pairs := pairsOf(m.Clocks)
	far := func(a, b dvfsmodel.MHz) dvfsmodel.MHz {
		if b == 0 {
			return -a
		}
		return max(a-b, b-a)
	}
	return slices.MinFunc(pairs, func(a, b dvfsmodel.Setting) int {
		return cmp.Or(cmp.Compare(far(a.Mem, p.Default.Mem), far(b.Mem, p.Default.Mem)),
			cmp.Compare(far(a.Core, p.Default.Core), far(b.Core, p.Default.Core)))
	})
}

// table returns the clocks among which plans choose by the model, and the default ones of these: the
// measured clocks, or all of the profile if the model doesn't say which they are.
func (m *Model) table(p *Profile) (*dvfsmodel.Table, dvfsmodel.Point, error) {
	curve := p.voltageCurve(m.Base)
	if m.Form.Power == dvfsmodel.PaperForm().Power {
		curve = nil
	}
	pairs, at := p.Pairs(), m.DefaultClocks(p)
	if len(m.Clocks) > 0 {
		pairs = pairsOf(m.Clocks)
	}
	table, err := dvfsmodel.NewTable(m.Base, pairs, curve)
	if err != nil {
		return nil, dvfsmodel.Point{}, fmt.Errorf("GPU model %s: %w", p.Name, err)
	}
	scaling, ok := table.Contains(at.Core, at.Mem)
	if !ok {
		return nil, dvfsmodel.Point{}, fmt.Errorf("default clocks of GPU model %s aren't in its clock list", p.Name)
	}
	return table, dvfsmodel.Point{Scaling: scaling, Core: at.Core, Mem: at.Mem}, nil
}

// clocksField returns the key of the clocks that were measured.
func (m *Model) clocksField() field {
	return field{
		key: "clocks", expected: clockGroups, doc: "Measured clocks, as in [[gpu]]. Plans choose among them; the nearest to the GPU model's default\n" +
			"clocks count as default. Without the key plans choose among all of the model's clocks.",
		read: func(d *document, path string, v any) { m.Clocks = d.clockGroups("model.clocks", path, v, false) },
	}
}

// checkClocks reports clocks that a file can't have.
func (m *Model) checkClocks() error {
	pairs := pairsOf(m.Clocks)
	if len(m.Clocks) > 0 && len(pairs) == 0 || len(pairs) > maxPairs {
		return fmt.Errorf("%d pairs of clocks, want 1 to %d", len(pairs), maxPairs)
	}
	for _, at := range pairs {
		if !positiveRange.contains(float64(at.Core)) || !positiveRange.contains(float64(at.Mem)) {
			return fmt.Errorf("clocks %v/%v MHz, want %v", float64(at.Core), float64(at.Mem), positiveRange)
		}
	}
	return nil
}
