package config

import (
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
	Base     dvfsmodel.Setting // the clocks that coefficients are normalised to
	// Coefficients by the names they have in the file: for the paper's form
	// p0_w, gamma_w, c_w, d_s, delta and t0_s, for any other those of
	// [dvfsmodel.Fitted.Coefficients] by name. A standard error of 0 is unknown.
	Coefficients []dvfsmodel.Coefficient
	Settings     int // distinct settings it was fitted to; 0: unknown
	// TimeMAPE and PowerMAPE are the fit's mean |predicted/measured − 1| at
	// settings left out.
	TimeMAPE, PowerMAPE float64
	Source              string         // where the samples came from
	Pos                 queue.Position // where it was read
}

// NewModel is a fitted model under the names that jobs and nodes use.
func NewModel(workload, gpuModel string, f *dvfsmodel.Fitted) Model {
	m := Model{
		Workload: workload, GPUModel: gpuModel, Form: f.Form, Base: f.Base,
		Settings: f.Settings, TimeMAPE: f.TimeError, PowerMAPE: f.PowerError,
		Coefficients: f.Coefficients(),
	}
	if p, ok := f.Params(); ok {
		m.Coefficients = paperCoefficients(p)
		addErrors(m.Coefficients, f)
		return m
	}
	slices.SortFunc(m.Coefficients, func(a, b dvfsmodel.Coefficient) int { return strings.Compare(a.Name, b.Name) })
	return m
}

// Names of the paper's coefficients, in the order of the file.
var paperNames = [...]string{"p0_w", "gamma_w", "c_w", "d_s", "delta", "t0_s"}

// paperDocs say what they are.
var paperDocs = [len(paperNames)]string{
	"Watts that no clock changes.", "Watts by the memory clock, relative to its base.",
	"Watts by V² and the core clock, both relative.", "Seconds that clocks change, at base clocks.",
	"Part of them that the core clock changes, 0 to 1; the memory clock changes the rest.", "Seconds that no clock changes.",
}

func paperCoefficients(p dvfsmodel.Params) []dvfsmodel.Coefficient {
	values := [...]float64{float64(p.P0), float64(p.Gamma), float64(p.C), p.D, p.Delta, p.T0}
	list := make([]dvfsmodel.Coefficient, len(paperNames))
	for i, name := range paperNames {
		list[i] = dvfsmodel.Coefficient{Name: name, Value: values[i]}
	}
	return list
}

// addErrors gives the paper's coefficients their standard errors. D = a + b
// and δ = a/(a+b) of the fitted a (core) and b (memory seconds), so theirs
// follow to first order.
func addErrors(list []dvfsmodel.Coefficient, f *dvfsmodel.Fitted) {
	fitted := f.Coefficients()
	if len(f.Covariance) != len(fitted) {
		return
	}
	index := func(name string) int {
		return slices.IndexFunc(fitted, func(c dvfsmodel.Coefficient) bool { return c.Name == name })
	}
	sigma := func(name string) float64 {
		if i := index(name); i >= 0 {
			return fitted[i].StdErr
		}
		return 0
	}
	list[0].StdErr, list[1].StdErr = sigma("power.p0_w"), sigma("power.gamma_w")
	list[2].StdErr, list[5].StdErr = sigma("power.c_w"), sigma("time.t0_s")
	core, mem := index("time.core_s"), index("time.mem_s")
	if mem < 0 { // one memory clock: δ is 1, not estimated
		list[3].StdErr = sigma("time.core_s")
		return
	}
	a, b := fitted[core].Value, fitted[mem].Value
	aa, bb, ab := f.Covariance[core][core], f.Covariance[mem][mem], f.Covariance[core][mem]
	list[3].StdErr = math.Sqrt(max(0, aa+bb+2*ab))
	if d := a + b; d > 0 {
		list[4].StdErr = math.Sqrt(max(0, b*b*aa+a*a*bb-2*a*b*ab)) / (d * d)
	}
}

// Doubt is how far off the model may be, by its errors at settings left out; nil where
// none is stated.
func (m *Model) Doubt() *dvfsmodel.Doubt {
	if m.TimeMAPE == 0 && m.PowerMAPE == 0 {
		return nil
	}
	coefficients := (len(m.Coefficients) + 1) / 2 //nolint:mnd // of time, or of power
	free := m.Settings - coefficients
	if m.Settings == 0 {
		free = math.MaxInt32 // not known
	}
	return dvfsmodel.NewDoubt(m.TimeMAPE, m.PowerMAPE, free)
}

// Fitted rebuilds the model that predicts time and power.
func (m *Model) Fitted() (*dvfsmodel.Fitted, error) {
	list := m.Coefficients
	if m.Form == dvfsmodel.PaperForm() {
		p, err := m.params()
		if err != nil {
			return nil, err
		}
		list = []dvfsmodel.Coefficient{
			{Name: "time.t0_s", Value: p.T0},
			{Name: "time.core_s", Value: p.D * p.Delta},
			{Name: "time.mem_s", Value: p.D * (1 - p.Delta)},
			{Name: "power.p0_w", Value: float64(p.P0)},
			{Name: "power.gamma_w", Value: float64(p.Gamma)},
			{Name: "power.c_w", Value: float64(p.C)},
		}
	}
	return dvfsmodel.NewFitted(m.Form, m.Base, list)
}

// params are the six coefficients of the paper's form.
func (m *Model) params() (dvfsmodel.Params, error) {
	var values [len(paperNames)]float64
	for i, name := range paperNames {
		at := slices.IndexFunc(m.Coefficients, func(c dvfsmodel.Coefficient) bool { return c.Name == name })
		if at < 0 {
			return dvfsmodel.Params{}, fmt.Errorf("coefficient %s is missing", name)
		}
		values[i] = m.Coefficients[at].Value
	}
	p := dvfsmodel.Params{
		P0: dvfsmodel.Watt(values[0]), Gamma: dvfsmodel.Watt(values[1]), C: dvfsmodel.Watt(values[2]),
		D: values[3], Delta: values[4], T0: values[5],
	}
	return p, p.Validate()
}

// Response is how the workload answers to the clocks of a GPU model: what
// planning asks. The model's base clocks need not be the profile's defaults.
// Building one costs more than asking it: keep it for all jobs of a workload.
//
// A model in the paper's form was fitted with the paper's voltage curve, which
// therefore goes before the profile's.
func (m *Model) Response(p *Profile) (dvfsmodel.Response, error) {
	response, err := m.response(p)
	if err != nil {
		return nil, fmt.Errorf("model of workload %s on %s: %w", quoted(m.Workload), quoted(m.GPUModel), err)
	}
	return response, nil
}

func (m *Model) response(p *Profile) (dvfsmodel.Response, error) {
	if p.Range != "" {
		return m.continuous(p)
	}
	curve := p.curve(m.Base)
	if m.Form.Power == dvfsmodel.PaperForm().Power {
		curve = nil
	}
	table, err := p.table(m.Base, curve)
	if err != nil {
		return nil, err
	}
	setting, ok := table.Contains(p.Default.Core, p.Default.Mem)
	if !ok {
		return nil, fmt.Errorf("default clocks of GPU model %s aren't in its clock list", p.Name)
	}
	at := dvfsmodel.Point{Scaling: setting, Core: p.Default.Core, Mem: p.Default.Mem}
	if m.Form == dvfsmodel.PaperForm() {
		params, err := m.params()
		return &dvfsmodel.Discrete{Params: params, Table: table, At: at}, err
	}
	fitted, err := m.Fitted()
	if err != nil {
		return nil, err
	}
	for _, s := range table.Scalings() {
		if t, w := fitted.Time(s.Fc, s.Fm), float64(fitted.Power(s)); !positive.has(t) || !positive.has(w) {
			core, mem := table.Clocks(s)
			return nil, fmt.Errorf("it predicts %.6g s and %.6g W at %.6g/%.6g MHz, want positive numbers", t, w, float64(core), float64(mem))
		}
	}
	return dvfsmodel.NewFrontier(fitted, table, at), nil
}

// continuous is the response in a range, which is relative to the defaults.
func (m *Model) continuous(p *Profile) (dvfsmodel.Response, error) {
	if m.Form != dvfsmodel.PaperForm() {
		return nil, fmt.Errorf("GPU model %s has a range and no clocks: the form must be the paper's, not %s", p.Name, m.Form)
	}
	if p.Default != (dvfsmodel.Setting{}) && p.Default != m.Base {
		return nil, fmt.Errorf("GPU model %s has a range around %v/%v MHz, the model is for %v/%v", p.Name,
			float64(p.Default.Core), float64(p.Default.Mem), float64(m.Base.Core), float64(m.Base.Mem))
	}
	scaling, err := dvfsmodel.RangeByName(p.Range)
	if err != nil {
		return nil, err
	}
	params, err := m.params()
	return &dvfsmodel.Continuous{Params: params, Range: &scaling}, err
}
