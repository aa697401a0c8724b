package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
)

// decode reads one [[model]] table.
func (s *Models) decode(d *document, path string, values map[string]any) {
	m := Model{Pos: d.keyPosition(path)}
	before := len(d.faults)
	d.readFields("[[model]]", path, values, m.fields(values))
	if len(d.faults) > before {
		return
	}
	if err := m.validate(); err != nil {
		d.fault(m.Pos, "model of workload %s on %s: %v", quoteName(m.Workload), quoteName(m.GPUModel), err)
		return
	}
	if other, twice := s.Lookup(m.Workload, m.GPUModel); twice {
		d.fault(m.Pos, "a model of workload %s on %s is already on line %d", quoteName(m.Workload),
			quoteName(m.GPUModel), other.Pos.Line)
		return
	}
	s.add(m)
}

// fields returns the keys of a model. Which coefficients it has depends on the
// form.
func (m *Model) fields(values map[string]any) []field {
	var form string
	list := []field{
		requiredField(lineField("workload", "Workload, as batches name it.", &m.Workload)),
		requiredField(lineField("gpu_model", "GPU model on which it was measured.", &m.GPUModel)),
		requiredField(checkedField(lineField("form",
			"paper, or the forms of time and power, such as log-knee+log-quadratic.", &form), m.setForm)),
		requiredField(numberField("base_core_mhz", "Core clock to which coefficients are relative.",
			&m.Base.Core, positiveRange)),
		requiredField(numberField("base_mem_mhz", "Memory clock to which coefficients are relative.",
			&m.Base.Mem, positiveRange)),
		intField("settings", "Number of clock settings it was fitted to.", &m.Settings, 0, 1e9),
		numberField("time_mape", "Mean error of times at settings left out, as a fraction.", &m.TimeMAPE,
			nonNegativeRange),
		numberField("power_mape", "The same of powers.", &m.PowerMAPE, nonNegativeRange),
		lineField("source", "Where the measurements come from.", &m.Source), m.clocksField(),
		{
			key: "corrections", expected: "an array of tables", read: m.decodeCorrections,
			doc: "Factors by which time and power differ from the form at some clocks: tables {core_mhz, mem_mhz,\n" +
				"time, power}, and cap_w with the form capped.",
		},
	}
	if text, ok := values["form"].(string); ok && m.setForm(text) == nil {
		list = append(list, m.coefficientFields()...)
	}
	return list
}

// setForm reads a form; "paper" alone stands for both quantities.
func (m *Model) setForm(text string) error {
	if text == formText(dvfsmodel.PaperForm()) {
		m.Form = dvfsmodel.PaperForm()
		return nil
	}
	var err error
	m.Form, err = dvfsmodel.ParseForm(text)
	return err
}

func formText(f dvfsmodel.Form) string {
	if f == dvfsmodel.PaperForm() {
		return f.Time
	}
	return f.String()
}

// coefficientFields takes the coefficients of the paper's form, or a table
// of them for any other.
func (m *Model) coefficientFields() []field {
	deviations := field{
		key: "std_errors", doc: "Standard errors of the coefficients, by name.", expected: "a table",
		read: func(d *document, path string, v any) {
			d.coefficients(path, v, nonNegativeRange, func(name string, x float64) bool {
				return m.setStandardError(name, x)
			})
		},
	}
	if m.Form != dvfsmodel.PaperForm() {
		table := field{
			key: "coefficients", doc: "Coefficients by name: time.t0_s, power.p0_w.",
			expected: "a table", read: func(d *document, path string, v any) {
				d.coefficients(path, v, anyRange, func(name string, x float64) bool {
					m.Coefficients = append(m.Coefficients, dvfsmodel.Coefficient{Name: name, Value: x})
					return true
				})
			},
		}
		list := []field{requiredField(table), deviations}
		if m.Form == dvfsmodel.CappedForm() {
			list = append(list, m.capFields()...)
		}
		return list
	}
	m.Coefficients = dvfsmodel.Params{}.Coefficients()
	list := make([]field, 0, dvfsmodel.NumParams+1)
	for i, p := range dvfsmodel.ParamList() {
		in := nonNegativeRange
		in.max = min(in.max, p.Max)
		f := numberField(p.Name, p.Doc, &m.Coefficients[i].Value, in)
		if !p.Optional {
			f = requiredField(f)
		}
		list = append(list, f)
	}
	return append(list, deviations)
}

// capFields returns the keys of models of what was measured under several power caps.
func (m *Model) capFields() []field {
	caps := field{
		key: "caps_w", doc: "Measured power caps. Plans choose among them.",
		expected: "an array of 1 to 1000 caps, ascending",
	}
	caps.read = func(d *document, path string, v any) {
		list, ok := v.([]any)
		const most = 1000
		if !ok || len(list) == 0 || len(list) > most {
			d.faultAtType(path, v, caps.expected)
			return
		}
		for i, element := range list {
			x, isNumber := toNumber(element)
			if !isNumber || !positiveRange.contains(x) || i > 0 && dvfsmodel.Watt(x) <= m.Caps[i-1] {
				d.faultAtType(fmt.Sprintf("%s[%d]", path, i), element, caps.expected)
				return
			}
			m.Caps = append(m.Caps, dvfsmodel.Watt(x))
		}
	}
	return []field{
		requiredField(numberField("base_cap_w",
			"Power cap to which coefficients are relative: the highest measured.", &m.Base.Cap, positiveRange)),
		requiredField(caps),
	}
}

// maxCorrection is the most that a correction may multiply or divide by.
const maxCorrection = 10

// decodeCorrections reads the corrections of a model.
func (m *Model) decodeCorrections(d *document, path string, v any) {
	factor := numberRange{min: 1. / maxCorrection, max: maxCorrection}
	seen := make(map[dvfsmodel.Setting]bool)
	d.eachTable(path, v, func(at string, values map[string]any) {
		var c dvfsmodel.Correction
		before := len(d.faults)
		fields := []field{
			requiredField(numberField("core_mhz", "", &c.Core, positiveRange)),
			requiredField(numberField("mem_mhz", "", &c.Mem, positiveRange)),
			requiredField(numberField("time", "", &c.Time, factor)),
			requiredField(numberField("power", "", &c.Power, factor)),
		}
		under := ""
		if m.Form == dvfsmodel.CappedForm() {
			fields = append(fields, requiredField(numberField("cap_w", "", &c.Cap, positiveRange)))
		}
		d.readFields("model.corrections", at, values, fields)
		if c.Cap > 0 {
			under = fmt.Sprintf(" under %v W", float64(c.Cap))
		}
		if len(d.faults) == before && seen[c.Setting] {
			d.faultAt(at, "model.corrections has %v/%v MHz%s twice", float64(c.Core), float64(c.Mem), under)
		}
		seen[c.Setting] = true
		m.Corrections = append(m.Corrections, c)
	})
}

// setStandardError sets a coefficient's standard error, if there is such a coefficient.
func (m *Model) setStandardError(name string, x float64) bool {
	for i := range m.Coefficients {
		if m.Coefficients[i].Name == name {
			m.Coefficients[i].StdErr = x
			return true
		}
	}
	return false
}

// coefficients reads a table of numbers; time.t0_s is a key t0_s in a table
// time. They are taken in the order of their names.
func (d *document) coefficients(path string, v any, in numberRange, take func(name string, x float64) bool) {
	values, ok := v.(map[string]any)
	if !ok {
		d.faultAtType(path, v, "a table")
		return
	}
	flat := make(map[string]any)
	for key, value := range values {
		quantity, ok := value.(map[string]any)
		if !ok {
			flat[key] = value
			continue
		}
		for name, x := range quantity {
			flat[key+"."+name] = x
		}
	}
	for _, name := range slices.Sorted(maps.Keys(flat)) {
		at := path + "." + name
		x, isNumber := toNumber(flat[name])
		switch {
		case !isNumber || !in.contains(x):
			d.faultAtType(at, flat[name], in.String())
		case !take(name, x):
			d.fault(d.keyPosition(at), "%s: the model has no coefficient of this name", withoutIndexes(at))
		}
	}
}
