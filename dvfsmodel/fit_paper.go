package dvfsmodel

import "math"

// PaperFit is the paper's form fitted to samples: [FitPaper].
type PaperFit struct {
	Params Params
	// Covariance of the parameters in the order P0, Gamma, C, D, Delta, T0,
	// like that of [Fitted].
	Covariance [6][6]float64
	// TimeError and PowerError are those of [Fitted].
	TimeError, PowerError float64
	Warnings              []error
}

// FitPaper fits EDL eq. (1) and (2) to samples of one workload on one GPU
// model: least squares of relative residuals with coefficients ≥ 0, all
// settings counting alike but for outliers. Errors are those of [Fit].
func FitPaper(samples []Sample, base Base) (*PaperFit, error) {
	f, err := Fit(samples, base, &FitOptions{Forms: []Form{PaperForm()}, Focus: math.Inf(1)})
	if err != nil {
		return nil, err
	}
	params, _ := f.Params()
	fit := &PaperFit{Params: params, TimeError: f.TimeError, PowerError: f.PowerError, Warnings: f.Warnings}
	jacobian := f.paperJacobian(params)
	for i := range fit.Covariance {
		for j := range fit.Covariance {
			for a := range f.Covariance {
				for b := range f.Covariance {
					fit.Covariance[i][j] += jacobian[i][a] * f.Covariance[a][b] * jacobian[j][b]
				}
			}
		}
	}
	return fit, nil
}

// paperJacobian is the derivative of P0, Gamma, C, D, Delta and T0 by the
// coefficients of the linear form: t0, core, mem, then p0, γ, c.
func (f *Fitted) paperJacobian(p Params) [6][]float64 {
	var rows [6][]float64
	for i := range rows {
		rows[i] = make([]float64, len(f.Covariance))
	}
	if f.oneMem { // t0, core, p0, c
		rows[5][0], rows[3][1], rows[0][2], rows[2][3] = 1, 1, 1, 1
		return rows
	}
	rows[5][0], rows[3][1], rows[3][2] = 1, 1, 1
	if p.D > 0 {
		rows[4][1], rows[4][2] = (1-p.Delta)/p.D, -p.Delta/p.D
	}
	rows[0][3], rows[1][4], rows[2][5] = 1, 1, 1
	return rows
}
