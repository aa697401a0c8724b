package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/learn"
)

// maxCurve is how many points of a curve are shown.
const maxCurve = 1024

// Fit returns a workload's model on a GPU model with the runs behind it. It is for
// operators. A workload that nobody knows has neither.
func (s *Service) Fit(ctx context.Context, who Caller, workload, gpuModel string) (*epdapi.ModelFit, error) {
	if err := Operators.Admits(who); err != nil {
		return nil, err
	}
	if workload == "" || gpuModel == "" {
		return nil, fmt.Errorf("%w: a fit is of a workload on a gpu_model", epdapi.ErrRequest)
	}
	out, m, err := s.options.Learner.Fit(ctx, s.options.key(workload, gpuModel))
	if err != nil {
		return nil, err
	}
	out.ModelStatus = s.lastJobs.withNames(ctx, []epdapi.ModelStatus{out.ModelStatus})[0]
	out.Curve, out.Clocks = []epdapi.Point{}, epdapi.ClocksFromModel
	if m != nil {
		out.Curve, out.Clocks = s.curve(gpuModel, m)
	}
	return out, nil
}

// curve returns a model on its GPU's table of clocks, of one GPU, and where the table
// is from.
func (s *Service) curve(gpuModel string, m *learn.Model) ([]epdapi.Point, string) {
	set := s.options.Settings()
	pairs, from := []dvfsmodel.Setting{m.Base}, epdapi.ClocksFromModel
	if seen, known := s.options.Clocks(gpuModel); known {
		pairs, from = slices.Clone(seen.Pairs), epdapi.ClocksFromAgent
	} else if p, err := set.Profiles.Lookup(gpuModel); err == nil && len(p.Pairs()) > 0 {
		pairs, from = slices.Clone(p.Pairs()), epdapi.ClocksFromProfile
	}
	slices.SortFunc(pairs, func(a, b dvfsmodel.Setting) int {
		return cmp.Or(cmp.Compare(b.Mem, a.Mem), cmp.Compare(b.Core, a.Core))
	})
	at := predictor{settings: set, model: m, gpuModel: gpuModel, gpus: 1}
	curve := []epdapi.Point{}
	for _, pair := range pairs {
		pt := m.At(pair.Core, pair.Mem)
		if len(curve) < maxCurve && m.Covers(&pt) {
			curve = append(curve, *at.point(pair.Core, pair.Mem))
		}
	}
	return curve, from
}
