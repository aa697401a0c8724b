package dvfsmodel

import (
	"fmt"
	"math"
	"slices"
)

// paperCovariance returns the covariance of the coefficients of [ParamList]; false when that of
// the fit isn't known.
func (f *Fitted) paperCovariance() (cov [NumParams][NumParams]float64, ok bool) {
	params, paper := f.Params()
	fitted := f.Coefficients()
	if !paper || len(f.Covariance) != len(fitted) {
		return cov, false
	}
	gradients := params.gradients(fitted)
	for i := range cov {
		for j := range cov {
			for a := range f.Covariance {
				for b := range f.Covariance {
					cov[i][j] += gradients[i][a] * f.Covariance[a][b] * gradients[j][b]
				}
			}
		}
	}
	return cov, true
}

// PaperCoefficients lists the coefficients of [ParamList] under the names that they have
// in files, with their standard errors; false when the form isn't the paper's.
func (f *Fitted) PaperCoefficients() ([]Coefficient, bool) {
	p, ok := f.Params()
	if !ok {
		return nil, false
	}
	list := p.Coefficients()
	if cov, known := f.paperCovariance(); known {
		for i := range list {
			list[i].StdErr = math.Sqrt(max(0, cov[i][i]))
		}
	}
	return list, true
}

// Coefficients lists the coefficients under the names that they have in files.
func (p Params) Coefficients() []Coefficient {
	list := make([]Coefficient, NumParams)
	for i, v := range p.values() {
		list[i] = Coefficient{Name: params[i].Name, Value: *v}
	}
	return list
}

// ParamsFrom returns the inverse of [Params.Coefficients]: the list may have any order.
// It returns an error that names what is missing, or what can't be.
func ParamsFrom(list []Coefficient) (Params, error) {
	var p Params
	for i, v := range p.values() {
		at := slices.IndexFunc(list, func(c Coefficient) bool { return c.Name == params[i].Name })
		switch {
		case at >= 0:
			*v = list[at].Value
		case !params[i].Optional:
			return Params{}, fmt.Errorf("coefficient %s is missing", params[i].Name)
		}
	}
	return p, p.Validate()
}

// PaperModel returns a model of the paper's form as [Fit] would have found it, without
// standard errors.
func PaperModel(p Params, base Setting) (*Fitted, error) {
	time, power := p.linearCoefficients()
	t, w := fittedCurve{shape: paperTime, coef: time}, fittedCurve{shape: paperPower, coef: power}
	return NewFitted(PaperForm(), base,
		append(t.coefficients(timePrefix, false), w.coefficients(powerPrefix, false)...))
}
