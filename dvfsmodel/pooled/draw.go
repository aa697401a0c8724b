package pooled

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/epplan/epplan/dvfsmodel"
)

// ResponsePrior describes how a workload responds of which nothing is known but its power at default
// clocks: the coefficients of the log-quadratic form and their spread.
type ResponsePrior struct {
	base   dvfsmodel.Setting
	mean   []dvfsmodel.Coefficient
	factor mat.TriDense // of the covariance
}

// NewResponsePrior returns the prior on a GPU model with these default clocks.
func NewResponsePrior(base dvfsmodel.Setting) (*ResponsePrior, error) {
	at := dvfsmodel.Sample{Core: base.Core, Mem: base.Mem, Time: 1, Power: 1}
	posterior, err := BuiltinCurves().Condition([]dvfsmodel.Sample{at}, base, Noise{})
	if err != nil {
		return nil, err
	}
	fitted, err := posterior.Fitted()
	if err != nil {
		return nil, err
	}
	p := &ResponsePrior{base: base, mean: fitted.Coefficients()}
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

// Model returns the response with a power at default clocks and a run time of 1 s
// there. Weights are those of the spread's directions; nil: as it is expected.
func (p *ResponsePrior) Model(power dvfsmodel.Watt, weights []float64) (dvfsmodel.Model, error) {
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

// Time returns the run time in seconds.
func (m *boundedResponse) Time(fc, fm float64) float64 {
	t := m.Fitted.Time(fc, fm)
	if fc <= 1 && fm <= 1 {
		t = max(t, 1)
	}
	return t
}

// Power returns the power of one GPU.
func (m *boundedResponse) Power(s dvfsmodel.Scaling) dvfsmodel.Watt {
	w := m.Fitted.Power(s)
	if s.Fc <= 1 && s.Fm <= 1 {
		w = min(w, m.power)
	}
	return w
}

// sharedSpread is the part of the spread that all workloads on a GPU model have
// in common: what is known of responses comes from other GPU models.
const sharedSpread = 0.5

const priorTerms = 12

// ResponseDraw is one draw of how workloads respond, the same for each of its seed.
type ResponseDraw struct{ Seed uint64 }

// Weights returns those of the spread's directions for a kind of job on a GPU model; nil of
// no draw.
func (d *ResponseDraw) Weights(kind, gpuModel string) []float64 {
	if d == nil {
		return nil
	}
	common, own := d.source(gpuModel), d.source(gpuModel+"\x00"+kind)
	w := make([]float64, priorTerms)
	for i := range w {
		w[i] = math.Sqrt(sharedSpread)*common.NormFloat64() + math.Sqrt(1-sharedSpread)*own.NormFloat64()
	}
	return w
}

// source returns a source of random numbers that a text names.
func (d *ResponseDraw) source(text string) *rand.Rand {
	hash := d.Seed
	for i := range len(text) {
		const prime = 1099511628211 // FNV-1a's
		hash = (hash ^ uint64(text[i])) * prime
	}
	return rand.New(rand.NewPCG(d.Seed, hash))
}
