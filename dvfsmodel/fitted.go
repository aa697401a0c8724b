package dvfsmodel

import (
	"fmt"
	"math"
	"slices"
	"strings"
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

	time, power       fittedCurve
	oneMem            bool
	timeFit, powerFit *curveFit
}

var _ Model = (*Fitted)(nil)

// Time is the run time in seconds at the normalised clocks.
func (f *Fitted) Time(fc, fm float64) float64 { return f.time.at(fc, fm) }

// Power is the mean power of one GPU. The voltage counts in the paper's form
// only: in the others it is the one that the GPU's own curve gives the clock.
func (f *Fitted) Power(s Scaling) Watt {
	if f.Form.Power == namePaper {
		return fromLinear(&f.time.coef, &f.power.coef).Power(s)
	}
	return Watt(f.power.at(s.Fc, s.Fm))
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
	return fromLinear(&f.time.coef, &f.power.coef), true
}

// Coefficient is one named number of a fitted model, such as power.gamma_w,
// with its standard error (0: unknown, or held at 0).
type Coefficient struct {
	Name   string
	Value  float64
	StdErr float64
}

// Coefficients lists what [NewFitted] needs to rebuild the model.
func (f *Fitted) Coefficients() []Coefficient {
	list := f.time.coefficients(timePrefix, f.oneMem)
	list = append(list, f.power.coefficients(powerPrefix, f.oneMem)...)
	if len(f.Covariance) == len(list) {
		for i := range list {
			list[i].StdErr = math.Sqrt(f.Covariance[i][i])
		}
	}
	return list
}

const (
	timePrefix  = "time."
	powerPrefix = "power."
)

// coefficients lists a curve's, without standard errors.
func (c *fittedCurve) coefficients(prefix string, oneMem bool) []Coefficient {
	list := make([]Coefficient, 0, 2*(maxTerms+1))
	fitted := c.columns(oneMem)
	for i, term := range c.terms {
		if c.coef[i] != 0 || slices.Contains(fitted, i) {
			list = append(list, Coefficient{Name: prefix + term, Value: c.coef[i]})
		}
	}
	if c.axis != nil {
		list = append(list, Coefficient{Name: prefix + kneeTerm, Value: c.knee})
	}
	return list
}

// NewFitted rebuilds a model from its form, its base clocks and what
// [Fitted.Coefficients] listed. Coefficients that only several memory clocks
// determine may be missing, all of them or none; standard errors are not used.
func NewFitted(form Form, base Setting, coefficients []Coefficient) (*Fitted, error) {
	if err := form.Validate(); err != nil {
		return nil, err
	}
	if !positive(float64(base.Core)) || !positive(float64(base.Mem)) {
		return nil, fmt.Errorf("base clocks %g/%g MHz, want positive numbers", float64(base.Core),
			float64(base.Mem))
	}
	values := make(map[string]float64, len(coefficients))
	for _, c := range coefficients {
		if _, twice := values[c.Name]; twice {
			return nil, fmt.Errorf("coefficient %s is given twice", c.Name)
		}
		values[c.Name] = c.Value
	}
	f := &Fitted{Form: form, Base: base}
	f.time = fittedCurve{shape: shapeByName(timeShapes, form.Time)}
	f.power = fittedCurve{shape: shapeByName(powerShapes, form.Power)}
	f.oneMem = f.time.oneMemory(values, timePrefix) && f.power.oneMemory(values, powerPrefix)
	if err := f.time.takeCoefficients(values, timePrefix, f.oneMem); err != nil {
		return nil, err
	}
	if err := f.power.takeCoefficients(values, powerPrefix, f.oneMem); err != nil {
		return nil, err
	}
	for name := range values {
		return nil, fmt.Errorf("form %s has no coefficient %s", form, name)
	}
	return f, nil
}

// oneMemory reports whether the values have none of the terms that only several memory
// clocks determine.
func (s *shape) oneMemory(values map[string]float64, prefix string) bool {
	for _, i := range s.columns(false) {
		if _, has := values[prefix+s.terms[i]]; has && !slices.Contains(s.single, i) {
			return false
		}
	}
	return true
}

// takeCoefficients moves the curve's coefficients out of the values.
func (c *fittedCurve) takeCoefficients(values map[string]float64, prefix string, oneMem bool) error {
	fitted := c.columns(oneMem)
	for i, term := range c.terms {
		name := prefix + term
		if _, has := values[name]; !has && !slices.Contains(fitted, i) {
			continue
		}
		x, err := takeValue(values, name)
		if err != nil {
			return err
		}
		if c.positive && x < 0 {
			return fmt.Errorf("coefficient %s is %v, want 0 or more", name, x)
		}
		c.coef[i] = x
	}
	if c.axis != nil {
		knee, err := takeValue(values, prefix+kneeTerm)
		if err != nil {
			return err
		}
		if knee <= 0 {
			return fmt.Errorf("coefficient %s%s is %v, want a positive number", prefix, kneeTerm, knee)
		}
		c.knee = knee
	}
	if x := c.at(1, 1); !positive(x) {
		return fmt.Errorf("the %s coefficients predict %v at the base clocks, want a positive number",
			strings.TrimSuffix(prefix, "."), x)
	}
	return nil
}

// takeValue moves one coefficient out of the values.
func takeValue(values map[string]float64, name string) (float64, error) {
	x, ok := values[name]
	if !ok {
		return 0, fmt.Errorf("coefficient %s is missing", name)
	}
	delete(values, name)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("coefficient %s is %v, want a finite number", name, x)
	}
	return x, nil
}

// describe records how well the chosen form fits.
func (f *Fitted) describe(settings []Sample, base Setting, time, power *observations) {
	f.Base, f.Settings, f.oneMem = base, len(settings), time.oneMem
	f.TimeError, f.PowerError = f.timeFit.meanError(), f.powerFit.meanError()
	if f.oneMem {
		f.Warnings = append(f.Warnings, ErrOneMemoryClock)
	}
	f.Warnings = append(f.Warnings, time.warnings(settings, "time", f.timeFit)...)
	f.Warnings = append(f.Warnings, power.warnings(settings, "power", f.powerFit)...)
	f.Covariance = blockDiagonal(time.covariance(f.timeFit), power.covariance(f.powerFit))
	f.timeFit, f.powerFit = nil, nil
}

// meanError is the mean |predicted/measured − 1| at settings left out.
func (c *curveFit) meanError() float64 {
	sum := 0.0
	for _, r := range c.unseen {
		sum += math.Abs(r - 1)
	}
	return sum / float64(len(c.unseen))
}
