package dvfsmodel

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

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

// String is "time+power", such as "paper+voltage-knee".
func (f Form) String() string { return f.Time + "+" + f.Power }

// ParseForm reads what [Form.String] writes.
func ParseForm(s string) (Form, error) {
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

const (
	namePaper       = "paper"
	nameKnee        = "knee"
	nameLogKnee     = "log-knee"
	nameLogQuad     = "log-quadratic"
	nameVoltageKnee = "voltage-knee"
	kneeTerm        = "knee"
	maxTerms        = 6 // linear coefficients of one quantity
)

// shape is the formula of one quantity: linear in its terms once the knee is
// fixed. A positive shape predicts the value, its terms and coefficients being
// ≥ 0; any other predicts the logarithm.
type shape struct {
	name     string
	terms    []string
	single   []int // the terms that remain with one memory clock
	given    []int // terms that no fit determines: 0 unless a file says otherwise
	positive bool
	// axis is what the knee divides; nil for a shape without one.
	axis func(fc, fm float64) float64
	row  func(dst *[maxTerms]float64, fc, fm, knee float64)
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

// logQuadratic is the quadratic in the logarithms of both clocks, with a name for its constant.
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

// clockRatio is the axis of a knee in the time: from there on the memory clock bounds it.
func clockRatio(fc, fm float64) float64 { return fc / fm }

// coreClock is the axis of a knee in the power: from there on the voltage rises.
func coreClock(fc, _ float64) float64 { return fc }

// shapeByName is the shape of that name; nil where there is none.
func shapeByName(shapes []*shape, name string) *shape {
	for _, s := range shapes {
		if s.name == name {
			return s
		}
	}
	return nil
}

// shapeNames lists names for a message.
func shapeNames(shapes []*shape) string {
	names := make([]string, len(shapes))
	for i, s := range shapes {
		names[i] = s.name
	}
	return strings.Join(names, ", ")
}

// columns are the terms that samples with one or several memory clocks can
// tell apart.
func (s *shape) columns(oneMem bool) []int {
	if oneMem {
		return s.single
	}
	all := make([]int, 0, len(s.terms))
	for i := range s.terms {
		if !slices.Contains(s.given, i) {
			all = append(all, i)
		}
	}
	return all
}

// size is how many coefficients the shape has, the knee included.
func (s *shape) size(oneMem bool) int {
	n := len(s.columns(oneMem))
	if s.axis != nil {
		n++
	}
	return n
}

// fittedCurve is a shape with its coefficients: one fitted quantity.
type fittedCurve struct {
	*shape
	coef [maxTerms]float64 // 0 for terms left out
	knee float64
}

// at predicts the quantity at normalised clocks.
func (c *fittedCurve) at(fc, fm float64) float64 {
	var row [maxTerms]float64
	c.row(&row, fc, fm, c.knee)
	sum := 0.0
	for i := range c.terms {
		if c.coef[i] != 0 {
			sum += c.coef[i] * row[i]
		}
	}
	if c.positive {
		return sum
	}
	return math.Exp(sum)
}
