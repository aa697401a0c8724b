package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/planner/join"
)

// historyCatalog knows how workloads of a history respond to clocks: by their
// models where there are some, else by what workloads have in common.
type historyCatalog struct {
	*config.Catalog
	history *historyReplay
	drawn   *responseDraw // nil: as it is expected
	shapes  map[[2]string]responseShape
}

// responseShape is a response, or nil where the workload has none.
type responseShape struct{ response dvfsmodel.Response }

var _ join.Catalog = (*historyCatalog)(nil)

// CheckWorkload is never an error: what has no model responds as others do.
func (*historyCatalog) CheckWorkload(string) error { return nil }

// Uncertainty is never known: responses are drawn instead.
func (*historyCatalog) Uncertainty(string, string) *dvfsmodel.Uncertainty { return nil }

// Workload is how jobs of a kind respond on a GPU model.
func (c *historyCatalog) Workload(kind, gpuModel string) (dvfsmodel.Response, error) {
	key := [2]string{kind, gpuModel}
	if s, ok := c.shapes[key]; ok {
		return s.response, nil
	}
	response, err := c.workload(kind, gpuModel)
	if err == nil {
		c.shapes[key] = responseShape{response}
	}
	return response, err
}

func (c *historyCatalog) workload(kind, gpuModel string) (dvfsmodel.Response, error) {
	k := c.history.kinds[kind]
	if k.model != "" {
		if r, err := c.Catalog.Workload(k.model, gpuModel); err != nil || r != nil {
			return r, err
		}
	}
	h, err := c.Hardware(gpuModel)
	if err != nil {
		return nil, err
	}
	power := h.Typical
	if k.seconds > 0 && k.energy > 0 {
		power = dvfsmodel.Watt(k.energy / k.seconds)
	}
	if h.Table == nil {
		at := h.Default
		at.Time, at.Power, at.Energy = 1, power, power.Over(1)
		return &dvfsmodel.Fixed{At: at}, nil
	}
	prior, err := newResponsePrior(h.Table.Base())
	if err != nil {
		return nil, err
	}
	model, err := prior.model(power, c.drawn.weights(kind, gpuModel))
	if err != nil {
		return nil, fmt.Errorf("GPU model %s: %w", gpuModel, err)
	}
	return dvfsmodel.NewFrontier(model, h.Table, h.Default), nil
}

// responsePrior is how a workload responds of which nothing is known but its
// power at default clocks: the coefficients of the log-quadratic form.
type responsePrior struct {
	base   dvfsmodel.Setting
	mean   []dvfsmodel.Coefficient
	factor mat.TriDense // of the covariance
}

func newResponsePrior(base dvfsmodel.Setting) (*responsePrior, error) {
	at := dvfsmodel.Sample{Core: base.Core, Mem: base.Mem, Time: 1, Power: 1}
	posterior, err := pooled.Builtin().Condition([]dvfsmodel.Sample{at}, base, pooled.Noise{})
	if err != nil {
		return nil, err
	}
	fitted, err := posterior.Fitted()
	if err != nil {
		return nil, err
	}
	p := &responsePrior{base: base, mean: fitted.Coefficients()}
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

// model is the response with a power at default clocks and a run time of 1 s
// there. Weights are those of the spread's directions; nil: as it is expected.
func (p *responsePrior) model(power dvfsmodel.Watt, weights []float64) (dvfsmodel.Model, error) {
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
	fitted, err := dvfsmodel.NewFitted(pooled.Form(), p.base, list)
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

// sharedSpread is the part of the spread that all workloads on a GPU model have
// in common: what is known of responses comes from other GPU models.
const sharedSpread = 0.5

const priorTerms = 12

type responseDraw struct{ seed uint64 }

// weights are those of the spread's directions for a kind on a GPU model; nil of
// no draw.
func (d *responseDraw) weights(kind, gpuModel string) []float64 {
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

// source is a source of random numbers that a text names.
func (d *responseDraw) source(text string) *rand.Rand {
	hash := d.seed
	for i := range len(text) {
		const prime = 1099511628211 // FNV-1a's
		hash = (hash ^ uint64(text[i])) * prime
	}
	return rand.New(rand.NewPCG(d.seed, hash))
}
