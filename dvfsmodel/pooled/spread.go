package pooled

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/epplan/epplan/dvfsmodel"
)

// Spread says how a workload responds of which nothing is known but its power at default clocks: the
// coefficients of the log-quadratic form, and how far off they may be.
type Spread struct {
	base   dvfsmodel.Setting
	mean   []dvfsmodel.Coefficient
	factor mat.TriDense // of the covariance
}

// NewSpread returns the spread of responses around a setting, by what built-in workloads have in common.
func NewSpread(base dvfsmodel.Setting) (*Spread, error) {
	at := dvfsmodel.Sample{Core: base.Core, Mem: base.Mem, Time: 1, Power: 1}
	posterior, err := Builtin().Condition([]dvfsmodel.Sample{at}, base, Noise{})
	if err != nil {
		return nil, err
	}
	fitted, err := posterior.Fitted()
	if err != nil {
		return nil, err
	}
	p := &Spread{base: base, mean: fitted.Coefficients()}
	n := len(p.mean)
	covariance := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			covariance.SetSym(i, j, fitted.Covariance[i][j])
		}
		const jitter = 1e-9 // for rounding
		covariance.SetSym(i, i, covariance.At(i, i)+jitter)
	}
	var c mat.Cholesky
	if !c.Factorize(covariance) {
		return nil, errors.New("the covariance of responses isn't positive definite")
	}
	c.LTo(&p.factor)
	return p, nil
}

// At returns by how much a coefficient changes with the weight of one of the spread's directions.
func (p *Spread) At(coefficient, direction int) float64 { return p.factor.At(coefficient, direction) }

// Model returns the response with a power at default clocks and a run time of 1 s
// there. Weights are those of the spread's directions; nil: as it is expected.
func (p *Spread) Model(power dvfsmodel.Watt, weights []float64) (dvfsmodel.Model, error) {
	list := slices.Clone(p.mean)
	for i := range list {
		switch list[i].Name {
		case "time.log_t":
			list[i].Value = 0
		case "power.log_p":
			list[i].Value = math.Log(float64(power))
		default:
			for j := range min(i+1, len(weights)) {
				list[i].Value += p.factor.At(i, j) * weights[j]
			}
		}
	}
	fitted, err := dvfsmodel.NewFitted(Form(), p.base, list)
	if err != nil {
		return nil, err
	}
	return &boundedResponse{fitted, power}, nil
}

// boundedResponse is a drawn response without what no workload does: it runs no faster at
// lower clocks than at default clocks, nor with more power.
type boundedResponse struct {
	*dvfsmodel.Fitted
	power dvfsmodel.Watt
}

// Time is the run time in seconds.
func (m *boundedResponse) Time(fc, fm float64) float64 {
	t := m.Fitted.Time(fc, fm)
	if fc <= 1 && fm <= 1 {
		t = max(t, 1)
	}
	return t
}

// Power is the power of one GPU.
func (m *boundedResponse) Power(s dvfsmodel.Scaling) dvfsmodel.Watt {
	w := m.Fitted.Power(s)
	if s.Fc <= 1 && s.Fm <= 1 {
		w = min(w, m.power)
	}
	return w
}
