package replay

import (
	"fmt"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/internal/catalog"
	"github.com/epplan/epplan/planner/join"
)

// historyCatalog knows how workloads of a history respond to clocks: by their
// models where there are some, else by what workloads have in common.
type historyCatalog struct {
	*catalog.Catalog
	history *historyReplay
	drawn   *pooled.ResponseDraw // nil: as it is expected
	shapes  map[[2]string]responseShape
}

// responseShape is a response, or nil where the workload has none.
type responseShape struct{ response dvfsmodel.Response }

var _ join.Catalog = (*historyCatalog)(nil)

// CheckWorkload is never an error: what has no model responds as others do.
func (*historyCatalog) CheckWorkload(string) error { return nil }

// Uncertainty is never known: responses are drawn instead.
func (*historyCatalog) Uncertainty(string, string) *dvfsmodel.Uncertainty { return nil }

// Workload returns how jobs of a kind respond on a GPU model.
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
	prior, err := pooled.NewResponsePrior(h.Table.Base())
	if err != nil {
		return nil, err
	}
	model, err := prior.Model(power, c.drawn.Weights(kind, gpuModel))
	if err != nil {
		return nil, fmt.Errorf("GPU model %s: %w", gpuModel, err)
	}
	return dvfsmodel.NewFrontier(model, h.Table, h.Default), nil
}
