package dvfsmodel

import "math"

// PaperFit is the paper's form fitted to samples: [FitPaper].
type PaperFit struct {
	Params Params
	// Covariance of the parameters in the order P0, Gamma, C, D, Delta, T0,
	// like that of [Fitted].
	Covariance [paramCount][paramCount]float64
	// TimeError and PowerError are those of [Fitted].
	TimeError, PowerError float64
	Warnings              []error
}

// FitPaper fits EDL eq. (1) and (2) to samples of one workload on one GPU
// model: least squares of relative residuals with coefficients ≥ 0, all
// settings counting alike but for outliers. Errors are those of [Fit].
func FitPaper(samples []Sample, base Setting) (*PaperFit, error) {
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

// The places of the parameters in [PaperFit.Covariance].
const (
	paramP0 = iota
	paramGamma
	paramC
	paramD
	paramDelta
	paramT0
	paramCount
)

// paperJacobian is the derivative of each parameter by the coefficients of the
// linear form t0 + core/fc + mem/fm and p0 + γ·fm + c·V²·fc, in the order of
// [Fitted.Coefficients]. D is core + mem, and δ is core/D.
func (f *Fitted) paperJacobian(p Params) [paramCount][]float64 {
	var rows [paramCount][]float64
	for i := range rows {
		rows[i] = make([]float64, len(f.Covariance))
	}
	if f.oneMem {
		const t0, core, p0, c = 0, 1, 2, 3
		rows[paramT0][t0], rows[paramD][core], rows[paramP0][p0], rows[paramC][c] = 1, 1, 1, 1
		return rows
	}
	const t0, core, mem, p0, gamma, c = 0, 1, 2, 3, 4, 5
	rows[paramT0][t0], rows[paramD][core], rows[paramD][mem] = 1, 1, 1
	if p.D > 0 {
		rows[paramDelta][core], rows[paramDelta][mem] = (1-p.Delta)/p.D, -p.Delta/p.D
	}
	rows[paramP0][p0], rows[paramGamma][gamma], rows[paramC][c] = 1, 1, 1
	return rows
}
