package main

import (
	"fmt"
	"math"
	"math/rand/v2"

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
	prior, err := pooled.NewSpread(h.Table.Base())
	if err != nil {
		return nil, err
	}
	model, err := prior.Model(power, c.drawn.weights(kind, gpuModel))
	if err != nil {
		return nil, fmt.Errorf("GPU model %s: %w", gpuModel, err)
	}
	return dvfsmodel.NewFrontier(model, h.Table, h.Default), nil
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
