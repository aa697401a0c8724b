// Package catalog answers how jobs respond to clocks from GPU profiles and models of workloads.
package catalog

import (
	"errors"
	"fmt"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/planner/join"
)

// Catalog answers [join.Tasks] from GPU profiles and models of workloads.
type Catalog struct {
	profiles  *config.Profiles
	models    *config.Models
	scaling   *dvfsmodel.Range // of the paper's GPU model
	responses map[[2]string]dvfsmodel.Response
	doubts    map[[2]string]*dvfsmodel.Uncertainty
	prior     bool
	caps      bool
}

// ErrNoModels tells that a workload is named and there are no models at all.
var ErrNoModels = errors.New("no models file was given")

// New returns a catalog of profiles, models (nil: none) and the scaling range
// of [PaperModel] (nil: it isn't asked for).
func New(profiles *config.Profiles, models *config.Models, scaling *dvfsmodel.Range) *Catalog {
	return &Catalog{
		profiles: profiles, models: models, scaling: scaling,
		responses: make(map[[2]string]dvfsmodel.Response), doubts: make(map[[2]string]*dvfsmodel.Uncertainty),
	}
}

// UsePrior has jobs without a model respond as the workloads do that have one on the GPU
// model, where there are enough of them.
func (c *Catalog) UsePrior() { c.prior = true }

// UseCaps has power caps among the settings of workloads whose models know them, on GPU models whose
// limits are known.
func (c *Catalog) UseCaps() { c.caps = true }

// typicalPowerOverIdle is the power assumed for a job that states none, as a
// multiple of its GPU's idle power. It only weighs such jobs among others.
const typicalPowerOverIdle = 5

// Hardware describes a GPU model by its profile; the paper's GPU model has the
// range that the catalog was made with.
func (c *Catalog) Hardware(gpuModel string) (join.Hardware, error) {
	if gpuModel == config.PaperModel && c.scaling != nil {
		return join.Hardware{
			Name: config.PaperModel, Range: c.scaling, Default: dvfsmodel.Point{Scaling: dvfsmodel.DefaultScaling()},
			Typical: paperTypicalW,
		}, nil
	}
	profile, err := c.profiles.Lookup(gpuModel)
	if err != nil {
		return join.Hardware{}, err
	}
	h := join.Hardware{
		Name: profile.Name, Default: profile.DefaultPoint(), Typical: typicalPowerOverIdle * profile.IdleW,
		MaxPower: profile.PowerLimit.Max, IdlePower: profile.IdleW,
	}
	if c.caps {
		h.Caps = profile.PowerLimit.Caps()
	}
	if profile.Range != "" {
		r, err := dvfsmodel.RangeByName(profile.Range)
		if err != nil {
			return join.Hardware{}, fmt.Errorf("GPU model %s: %w", gpuModel, err)
		}
		h.Range = &r
		return h, nil
	}
	if h.Table, err = profile.Table(); err == nil && c.prior {
		h.Unseen, err = c.priorFor(profile)
	}
	return h, err
}

// priorFor returns how workloads without a model respond on a GPU model; nil where too few
// have one.
func (c *Catalog) priorFor(profile *config.Profile) (*pooled.UnseenWorkload, error) {
	var known []pooled.KnownWorkload
	if c.models == nil {
		return nil, nil
	}
	for _, workload := range c.models.Workloads() {
		m, ok := c.models.Lookup(workload, profile.Name)
		if !ok {
			continue
		}
		fitted, err := m.Fitted()
		if err == nil {
			_, err = c.Workload(workload, profile.Name) // whether it can be used
		}
		if err != nil {
			return nil, err
		}
		fitted = fitted.Under(profile.PowerLimit.Default)
		known = append(known, pooled.KnownWorkload{
			Predict: func(at dvfsmodel.Setting) (float64, dvfsmodel.Watt) {
				pt := fitted.At(at.Core, at.Mem)
				return pt.Time, pt.Power
			},
			Uncertainty: m.Doubt(),
		})
	}
	if len(known) < pooled.MinKnown {
		return nil, nil
	}
	u, err := pooled.NewUnseenWorkload(known, profile.Default)
	if err != nil {
		return nil, fmt.Errorf("workloads on GPU model %s: %w", profile.Name, err)
	}
	return u, nil
}

// paperTypicalW is the middle of the paper's range of default powers (EDL
// §5.1.3), watts.
const paperTypicalW = 190

// Workload returns the workload's model on the GPU model's clocks; nil: there is
// none.
func (c *Catalog) Workload(workload, gpuModel string) (dvfsmodel.Response, error) {
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
	respond := model.Response
	if c.caps {
		respond = model.CappedResponse
	}
	response, err := respond(profile)
	if err != nil {
		return nil, err
	}
	c.responses[key] = response
	return response, nil
}

// Uncertainty returns how far off a workload's model on a GPU model may be; nil: not known.
func (c *Catalog) Uncertainty(workload, gpuModel string) *dvfsmodel.Uncertainty {
	key := [2]string{workload, gpuModel}
	if d, ok := c.doubts[key]; ok {
		return d
	}
	if c.models == nil {
		return nil
	}
	var d *dvfsmodel.Uncertainty
	if m, ok := c.models.Lookup(workload, gpuModel); ok {
		d = m.Doubt()
	}
	c.doubts[key] = d
	return d
}

// CheckWorkload says which workloads there are when the given one is not among them.
func (c *Catalog) CheckWorkload(workload string) error {
	if c.models == nil {
		return fmt.Errorf("workload %q, but %w", workload, ErrNoModels)
	}
	return c.models.Check(workload)
}
