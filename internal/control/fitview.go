package control

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/internal/store/record"
)

// maxCurve is how many points of a curve are shown.
const maxCurve = 1024

func (c *Controller) getFit(r *http.Request) (any, error) {
	key := c.keyOf(r.URL.Query())
	if key.Workload == "" || key.GPUModel == "" {
		return nil, fmt.Errorf("%w: a fit is of a workload on a gpu_model", ErrRequest)
	}
	return c.Fit(r.Context(), key)
}

// Fit is a workload's model on a GPU model with the runs behind it. It is for
// operators. A workload that nobody knows has neither.
func (c *Controller) Fit(ctx context.Context, key record.WorkloadKey) (*epdapi.ModelFit, error) {
	if err := operators.admits(CallerOf(ctx)); err != nil {
		return nil, err
	}
	out, m, err := c.learner.Fit(ctx, key)
	if err != nil {
		return nil, err
	}
	out.ModelStatus = c.withLastJobs(ctx, []ModelStanding{out.ModelStatus})[0]
	out.Curve, out.Clocks = []epdapi.Point{}, epdapi.ClocksFromModel
	if m != nil {
		out.Curve, out.Clocks = c.curve(key.GPUModel, m)
	}
	return out, nil
}

// curve is a model on its GPU's table of clocks, of one GPU, and where the table
// is from.
func (c *Controller) curve(gpuModel string, m *learn.Model) ([]epdapi.Point, string) {
	s := c.settings.Load()
	seen := c.decider.Clocks(gpuModel)
	pairs, from := []dvfsmodel.Setting{m.Base}, epdapi.ClocksFromModel
	if seen != nil {
		pairs, from = slices.Clone(seen.Pairs), epdapi.ClocksFromAgent
	} else if p, err := s.Profiles.Lookup(gpuModel); err == nil && len(p.Pairs()) > 0 {
		pairs, from = slices.Clone(p.Pairs()), epdapi.ClocksFromProfile
	}
	slices.SortFunc(pairs, func(a, b dvfsmodel.Setting) int {
		return cmp.Or(cmp.Compare(b.Mem, a.Mem), cmp.Compare(b.Core, a.Core))
	})
	at := predictor{settings: s, model: m, gpuModel: gpuModel, gpus: 1}
	curve := []epdapi.Point{}
	for _, pair := range pairs {
		pt := m.At(pair.Core, pair.Mem)
		if len(curve) < maxCurve && m.Covers(&pt) {
			curve = append(curve, *at.point(pair.Core, pair.Mem))
		}
	}
	return curve, from
}
