package main

import (
	"fmt"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// catalog answers planner.Join from GPU profiles and a models file.
type catalog struct {
	profiles  *config.Profiles
	models    *config.Models
	scaling   *dvfsmodel.Range // of the paper's GPU model
	responses map[[2]string]dvfsmodel.Response
}

func newCatalog(profiles *config.Profiles, models *config.Models, scaling *dvfsmodel.Range) *catalog {
	return &catalog{profiles: profiles, models: models, scaling: scaling, responses: make(map[[2]string]dvfsmodel.Response)}
}

// typicalOverIdle is the power assumed for a job that states none, as a
// multiple of its GPU's idle power. It only weighs such jobs among others.
const typicalOverIdle = 5

// Hardware describes a GPU model by its profile; the paper's GPU model has the
// range of the command line.
func (c *catalog) Hardware(gpuModel string) (planner.Hardware, error) {
	if gpuModel == config.PaperModel {
		return planner.Hardware{Range: c.scaling, Default: dvfsmodel.Point{Setting: dvfsmodel.DefaultSetting()}, Typical: paperTypical}, nil
	}
	profile, err := c.profiles.Lookup(gpuModel)
	if err != nil {
		return planner.Hardware{}, err
	}
	h := planner.Hardware{Default: profile.DefaultPoint(), Typical: typicalOverIdle * profile.IdleW}
	if profile.Range != "" {
		r, err := dvfsmodel.RangeByName(profile.Range)
		if err != nil {
			return planner.Hardware{}, fmt.Errorf("GPU model %s: %w", gpuModel, err)
		}
		h.Range = &r
		return h, nil
	}
	h.Table, err = profile.Table()
	return h, err
}

// paperTypical is the middle of the paper's range of default powers (EDL
// §5.1.3), watts.
const paperTypical = 190

// Workload is the workload's model on the GPU model's clocks.
func (c *catalog) Workload(workload, gpuModel string) (dvfsmodel.Response, error) {
	key := [2]string{workload, gpuModel}
	if response, ok := c.responses[key]; ok {
		return response, nil
	}
	if c.models == nil {
		return nil, nil
	}
	model, ok := c.models.Lookup(workload, gpuModel)
	if !ok {
		return nil, nil
	}
	profile, err := c.profiles.Lookup(gpuModel)
	if err != nil {
		return nil, err
	}
	response, err := model.Response(profile)
	if err != nil {
		return nil, err
	}
	c.responses[key] = response
	return response, nil
}

// Known says which workloads there are when the given one is not among them.
func (c *catalog) Known(workload string) error {
	if c.models == nil {
		return &hintedError{
			err:  fmt.Errorf("workload %q, but no models file was given", workload),
			hint: "name one with --models, or give the job a runtime_s instead",
		}
	}
	return c.models.Check(workload)
}
