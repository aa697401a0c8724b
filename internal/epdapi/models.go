package epdapi

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/epplan/epplan/internal/store/record"
)

// Paths of models; choosing one is for root and Slurm's user.
const (
	PathModels    = "/v1/models"
	PathModelsUse = "/v1/models/use"
)

// ModelStanding is how a workload's model fares.
type ModelStanding struct {
	record.WorkloadKey
	Version int64  `json:"version"` // 0: none is in use
	Prior   bool   `json:"prior"`   // scaled from a prior, for want of settings that were measured
	Samples int    `json:"samples"`
	Missed  int    `json:"missed"` // runs in a row that were outside of the prediction
	Pinned  bool   `json:"pinned"` // chosen by an administrator: fits don't replace it
	Note    string `json:"note,omitempty"`
	// Of the model in use; empty without one: its form, when it was made, and the
	// ratio of run times to predictions, less 1, that is seldom exceeded.
	Form    string    `json:"form,omitempty"`
	Created time.Time `json:"created,omitzero"`
	Margin  float64   `json:"time_margin,omitempty"`
}

// ModelList is how all workloads' models fare.
type ModelList struct {
	Models []ModelStanding `json:"models"`
}

// ModelVersions are all versions of a workload's model.
type ModelVersions struct {
	Versions []record.Model `json:"versions"`
}

// ModelChoice says which version of a workload's model is used from now on.
type ModelChoice struct {
	Workload string `json:"workload"`
	GPUModel string `json:"gpu_model"`
	Version  int64  `json:"version"` // 0: none; the workload runs at default clocks
	Note     string `json:"note"`    // why, for people
	// Free lets fits replace the model again, whatever the version.
	Free bool `json:"free,omitempty"`
}

// Models asks how the models fare.
func (c *Client) Models(ctx context.Context) (*ModelList, error) {
	return get[ModelList](ctx, c, PathModels, nil)
}

// ModelVersions asks for all versions of a workload's model.
func (c *Client) ModelVersions(ctx context.Context, workload, gpuModel string) (*ModelVersions, error) {
	return get[ModelVersions](ctx, c, PathModels, url.Values{"workload": {workload}, "gpu_model": {gpuModel}})
}

// UseModel chooses the version of a model that counts.
func (c *Client) UseModel(ctx context.Context, m *ModelChoice) (*ModelStanding, error) {
	var answer ModelStanding
	if err := c.call(ctx, http.MethodPost, PathModelsUse, m, &answer); err != nil {
		return nil, err
	}
	return &answer, nil
}
