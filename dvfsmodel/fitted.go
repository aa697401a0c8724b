package dvfsmodel

import (
	"fmt"
	"math"
	"strings"

	"github.com/epplan/epplan/dvfsmodel/capped"
)

// Fitted is a model that [Fit] chose, or one rebuilt from its coefficients by
// [NewFitted].
type Fitted struct {
	Form     Form
	Base     Setting // the clocks that are (1, 1)
	Settings int     // distinct settings it was fitted to
	// TimeError and PowerError are the mean |predicted/measured − 1| at each
	// setting by a fit that did not see it.
	TimeError, PowerError float64
	// Warnings say what the samples leave open and which of them disagree:
	// [ErrOneMemoryClock] and [OutlierError].
	Warnings []error
	// Covariance of the coefficients, in the order of [Fitted.Coefficients]:
	// first-order, for independent relative errors of equal size. Rows of
	// coefficients held at 0, and of a knee the samples do not locate, are 0.
	// It is nil in a model from [NewFitted].
	Covariance [][]float64
	// Corrections are those that time and power have; see [Fitted.Corrected].
	Corrections []Correction
	// Caps are the power caps that a fit of [CappedForm] saw, ascending; none in a model from
	// [NewFitted].
	Caps []Watt

	time, power fittedCurve
	oneMem      bool
	corrections map[Setting]Correction // by rounded setting
	capped      *capped.Board          // of CappedForm, in place of both curves
	limit       Watt                   // that it predicts for then
}

var _ Model = (*Fitted)(nil)

// Time returns the run time in seconds at the normalised clocks.
func (f *Fitted) Time(fc, fm float64) float64 {
	correction := f.correction(fc, fm).Time
	if f.capped != nil {
		seconds, _ := f.underCap(fc, fm)
		return correction * seconds
	}
	return f.time.at(fc, fm) * correction
}

// Power returns the mean power of one GPU. The voltage counts in the paper's form
// only: in the others it is the one that the GPU's own curve gives the clock.
func (f *Fitted) Power(s Scaling) Watt {
	correction := Watt(f.correction(s.Fc, s.Fm).Power)
	if f.capped != nil {
		_, power := f.underCap(s.Fc, s.Fm)
		return correction * power
	}
	if f.Form.Power == namePaper {
		return correction * paramsFromLinear(&f.time.coef, &f.power.coef).Power(s)
	}
	return correction * Watt(f.power.at(s.Fc, s.Fm))
}

// At evaluates the model at supported clocks.
func (f *Fitted) At(core, mem MHz) Point {
	fc, fm := float64(core/f.Base.Core), float64(mem/f.Base.Mem)
	s := Scaling{V: VoltageFor(fc), Fc: fc, Fm: fm}
	t, p := f.Time(fc, fm), f.Power(s)
	return Point{Scaling: s, Core: core, Mem: mem, Time: t, Power: p, Energy: p.Over(t)}
}

// Params returns the paper's coefficients when both quantities have the
// paper's form. With one memory clock γ is 0 and δ is 1: what doesn't follow
// the core clock is in T0.
func (f *Fitted) Params() (Params, bool) {
	if f.Form != PaperForm() {
		return Params{}, false
	}
	return paramsFromLinear(&f.time.coef, &f.power.coef), true
}

// Coefficients lists what [NewFitted] needs to rebuild the model.
func (f *Fitted) Coefficients() []Coefficient {
	if f.capped != nil {
		return f.cappedCoefficients()
	}
	list := f.time.coefficients(timePrefix, f.oneMem)
	list = append(list, f.power.coefficients(powerPrefix, f.oneMem)...)
	if len(f.Covariance) == len(list) {
		for i := range list {
			list[i].StdErr = math.Sqrt(f.Covariance[i][i])
		}
	}
	return list
}

// NewFitted rebuilds a model from its form, its base clocks and what
// [Fitted.Coefficients] listed. Coefficients that only several memory clocks
// determine may be missing, all of them or none; standard errors are not used.
func NewFitted(form Form, base Setting, coefficients []Coefficient) (*Fitted, error) {
	if form != CappedForm() {
		if err := form.Validate(); err != nil {
			return nil, err
		}
	}
	if err := base.CheckBase(); err != nil {
		return nil, err
	}
	values := make(map[string]float64, len(coefficients))
	for _, c := range coefficients {
		if _, twice := values[c.Name]; twice {
			return nil, fmt.Errorf("coefficient %s is given twice", c.Name)
		}
		values[c.Name] = c.Value
	}
	f, err := newFittedByName(form, base, values)
	if err != nil {
		return nil, err
	}
	for name := range values {
		return nil, fmt.Errorf("form %s has no coefficient %s", form, name)
	}
	return f, nil
}

// newFittedByName is NewFitted of coefficients by name, and leaves those that the form doesn't have.
func newFittedByName(form Form, base Setting, values map[string]float64) (*Fitted, error) {
	if form == CappedForm() {
		return newCapped(base, values)
	}
	f := &Fitted{Form: form, Base: base}
	f.time = fittedCurve{shape: shapeByName(timeShapes, form.Time)}
	f.power = fittedCurve{shape: shapeByName(powerShapes, form.Power)}
	f.oneMem = f.time.hasOneMemory(values, timePrefix) && f.power.hasOneMemory(values, powerPrefix)
	if err := f.time.takeCoefficients(values, timePrefix, f.oneMem); err != nil {
		return nil, err
	}
	return f, f.power.takeCoefficients(values, powerPrefix, f.oneMem)
}

// Form names how a [Fitted] model describes time and how it describes power.
// Every form has at most seven coefficients per quantity; a fit takes only
// those with fewer coefficients than settings.
//
//	time           t(fc, fm), normalised clocks
//	paper          t0 + a/fc + b/fm, all ≥ 0: EDL eq. (2)
//	knee           t0 + a/fc + b/fm + d·max(1/fc, 1/(k·fm)), all ≥ 0
//	log-knee       ln t = t0 + a·ln fc + b·ln fm + d·max(0, ln fc/fm − ln k)
//	log-quadratic  ln t = a quadratic in ln fc and ln fm
//
//	power          P(fc, fm)
//	paper          P0 + γ·fm + c·V²·fc, all ≥ 0: EDL eq. (1)
//	voltage-knee   P0 + γ·fm + fc·(a + b·max(0, fc−k)), all ≥ 0: V² is flat
//	               up to the clock k and grows above it
//	log-quadratic  ln P = a quadratic in ln fc and ln fm
//
// With one memory clock the terms in fm are left out.
type Form struct{ Time, Power string }

// PaperForm is EDL eq. (1) and (2).
func PaperForm() Form { return Form{Time: namePaper, Power: namePaper} }

// String is "time+power", such as "paper+voltage-knee"; that of [CappedForm] is its name alone.
func (f Form) String() string {
	if f == CappedForm() {
		return f.Time
	}
	return f.Time + "+" + f.Power
}

// ParseForm reads what [Form.String] writes.
func ParseForm(s string) (Form, error) {
	if s == CappedForm().String() {
		return CappedForm(), nil
	}
	time, power, ok := strings.Cut(s, "+")
	f := Form{Time: time, Power: power}
	if !ok {
		return Form{}, fmt.Errorf("form %q, want time+power such as %s", s, PaperForm())
	}
	return f, f.Validate()
}

// Validate reports a form that isn't one of [Forms].
func (f Form) Validate() error {
	if shapeByName(timeShapes, f.Time) == nil {
		return fmt.Errorf("unknown time form %q, want %s", f.Time, shapeNames(timeShapes))
	}
	if shapeByName(powerShapes, f.Power) == nil {
		return fmt.Errorf("unknown power form %q, want %s", f.Power, shapeNames(powerShapes))
	}
	return nil
}

// Forms lists the whole family.
func Forms() []Form {
	forms := make([]Form, 0, len(timeShapes)*len(powerShapes))
	for _, t := range timeShapes {
		for _, p := range powerShapes {
			forms = append(forms, Form{Time: t.name, Power: p.name})
		}
	}
	return forms
}

var timeShapes = []*shape{
	paperTime,
	{
		name: nameKnee, positive: true, single: []int{0, 3}, axis: clockRatio,
		terms: []string{"t0_s", "core_s", "mem_s", "bound_s"},
		row: func(dst *[maxTerms]float64, fc, fm, knee float64) {
			*dst = [maxTerms]float64{1, 1 / fc, 1 / fm, max(1/fc, 1/(knee*fm))}
		},
	},
	{
		name: nameLogKnee, single: []int{0, 1, 3}, axis: clockRatio,
		terms: []string{"log_t", "log_fc", "log_fm", "above_knee"},
		row: func(dst *[maxTerms]float64, fc, fm, knee float64) {
			c, m := math.Log(fc), math.Log(fm)
			*dst = [maxTerms]float64{1, c, m, max(0, c-m-math.Log(knee))}
		},
	},
	logQuadratic("log_t"),
}

var powerShapes = []*shape{
	paperPower,
	{
		name: nameVoltageKnee, positive: true, single: []int{0, 2, 3}, axis: coreClock,
		terms: []string{"p0_w", "gamma_w", "core_w", "above_knee_w"},
		row: func(dst *[maxTerms]float64, fc, fm, knee float64) {
			*dst = [maxTerms]float64{1, fm, fc, fc * max(0, fc-knee)}
		},
	},
	logQuadratic("log_p"),
}

// logQuadratic returns the quadratic in the logarithms of both clocks, with a name for its constant.
func logQuadratic(constant string) *shape {
	return &shape{
		name: nameLogQuad, single: []int{0, 1, 2},
		terms: []string{constant, "log_fc", "log_fc2", "log_fm", "log_fm2", "log_fc_fm"},
		row: func(dst *[maxTerms]float64, fc, fm, _ float64) {
			c, m := math.Log(fc), math.Log(fm)
			*dst = [maxTerms]float64{1, c, c * c, m, m * m, c * m}
		},
	}
}

// clockRatio returns the axis of a knee in the time: from there on the memory clock bounds it.
func clockRatio(fc, fm float64) float64 { return fc / fm }

// coreClock returns the axis of a knee in the power: from there on the voltage rises.
func coreClock(fc, _ float64) float64 { return fc }

// shapeByName returns the shape of that name; nil where there is none.
func shapeByName(shapes []*shape, name string) *shape {
	for _, s := range shapes {
		if s.name == name {
			return s
		}
	}
	return nil
}

func shapeNames(shapes []*shape) string {
	names := make([]string, len(shapes))
	for i, s := range shapes {
		names[i] = s.name
	}
	return strings.Join(names, ", ")
}

// Correction is by which factors a workload's time and power differ at supported clocks, and under a
// cap where a model knows caps, from what a form says. A GPU has steps that no form has, such as
// clocks at which its voltage goes up.
type Correction struct {
	Setting
	Time, Power float64
}

// Corrected returns the fit with corrections at the clocks that they name; at others it stays what
// it is. Corrections that it had before are replaced.
func (f *Fitted) Corrected(list []Correction) *Fitted {
	corrected := *f
	corrected.Corrections = list
	corrected.corrections = make(map[Setting]Correction, len(list))
	for _, c := range list {
		corrected.corrections[c.rounded()] = c
	}
	return &corrected
}

// correction is that of normalised clocks.
func (f *Fitted) correction(fc, fm float64) Correction {
	if len(f.corrections) > 0 {
		at := Setting{Core: f.Base.Core * MHz(fc), Mem: f.Base.Mem * MHz(fm), Cap: f.limit}
		if c, ok := f.corrections[at.rounded()]; ok {
			return c
		}
	}
	return Correction{Time: 1, Power: 1}
}

// rounded returns a setting to the kHz and mW, by which clocks are equal that were normalised and are MHz
// again.
func (s Setting) rounded() Setting {
	const milli = 1000
	return Setting{
		Core: MHz(math.Round(float64(s.Core) * milli)), Mem: MHz(math.Round(float64(s.Mem) * milli)),
		Cap: Watt(math.Round(float64(s.Cap) * milli)),
	}
}
