package dvfsmodel

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

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

// columns returns the terms that samples with one or several memory clocks can
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

// size returns how many coefficients the shape has, the knee included.
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

// Coefficient is one named number of a fitted model, such as power.gamma_w,
// with its standard error (0: unknown, or held at 0).
type Coefficient struct {
	Name   string
	Value  float64
	StdErr float64
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

// hasOneMemory reports whether the values have none of the terms that only several memory
// clocks determine.
func (s *shape) hasOneMemory(values map[string]float64, prefix string) bool {
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
	if x := c.at(1, 1); !isPositive(x) {
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
