package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
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
	near, far, err := c.lastOutcomes(ctx, key)
	if err != nil {
		return nil, err
	}
	m := c.models.get(key).model
	out := &epdapi.ModelFit{ModelStanding: c.withLastJobs(ctx, []ModelStanding{c.standing(key)})[0], Points: []epdapi.FitPoint{}, Curve: []epdapi.Point{}, Clocks: epdapi.ClocksFromModel}
	base, known := c.baseOf(key.GPUModel, m)
	if known {
		out.BaseCore, out.BaseMem = base.Core, base.Mem
	}
	if m != nil {
		out.Model = modelOf(m)
		out.MinMem, out.MaxMem = m.Low.Mem, m.High.Mem
		out.Curve, out.Clocks = c.curve(key.GPUModel, m)
	}
	samples := c.fitPoints(out, near, base, m)
	older := len(out.Points)
	before := c.fitPoints(out, far, base, m)
	if !agree(samples, before) {
		before = nil
		for i := range out.Points[older:] {
			p := &out.Points[older+i]
			p.Used, p.Why = false, cmp.Or(p.Why, "later runs take another time at the same clocks")
		}
	}
	if known {
		distrust(out.Points, slices.Concat(samples, before), base)
	}
	return out, nil
}

// fitPoints shows outcomes in a fit and returns the samples among them.
func (c *Controller) fitPoints(out *epdapi.ModelFit, outcomes []record.Outcome, base dvfsmodel.Setting, m *model) []dvfsmodel.Sample {
	samples := make([]dvfsmodel.Sample, 0, len(outcomes))
	for i := range outcomes {
		p, s := c.fitPoint(&outcomes[i], base, m)
		if out.Points = append(out.Points, p); p.Used {
			samples = append(samples, s)
		}
	}
	return samples
}

// standing is how a workload's model fares, also of one that nobody knows: asking
// makes nothing known.
func (c *Controller) standing(key record.WorkloadKey) ModelStanding {
	c.models.mu.RLock()
	_, known := c.models.byKey[key]
	c.models.mu.RUnlock()
	if !known {
		return ModelStanding{WorkloadKey: key}
	}
	return c.standingOf(key)
}

// fitPoint is a run as a fit sees it, and its sample if it is one.
func (c *Controller) fitPoint(o *record.Outcome, base dvfsmodel.Setting, m *model) (epdapi.FitPoint, dvfsmodel.Sample) {
	s, why := sampled(o, base)
	p := epdapi.FitPoint{
		RunID: o.RunID, JobID: o.JobID, Node: o.Node, Arm: o.Arm, Ended: o.Ended, Setting: o.Setting,
		TimeS: o.TimeS, Used: why == "", Why: why, Weight: 1,
	}
	p.Core, p.Mem = cmp.Or(p.Core, base.Core), cmp.Or(p.Mem, base.Mem)
	if p.Used { // of an adapted run: what it would have taken at one clock
		p.Core, p.TimeS = s.Core, live.Known(s.Time)
	}
	if s.Power > 0 {
		p.PowerW, p.EnergyJ = live.Known(float64(s.Power)), live.Known(float64(s.Power.Over(s.Time)))
	}
	if m == nil {
		return p, s
	}
	p.Before = !o.Ended.After(m.created)
	if p.Used {
		pt := m.At(s.Core, s.Mem)
		p.Within, p.Off = m.hits(&s, c.settings.Load().Live.TimeMargin), live.Known(s.Time/pt.Time-1)
	}
	return p, s
}

// distrust marks the points whose clocks a fit of all of them counts for less.
func distrust(points []epdapi.FitPoint, samples []dvfsmodel.Sample, base dvfsmodel.Setting) {
	fitted, err := dvfsmodel.Fit(samples, base, nil)
	if err != nil {
		return // too few of them: none counts for less
	}
	for _, warning := range fitted.Warnings {
		var off *dvfsmodel.OutlierError
		if !errors.As(warning, &off) {
			continue
		}
		for i := range points {
			p := &points[i]
			if p.Used && p.Core == off.Core && p.Mem == off.Mem {
				p.Weight, p.Outlier = math.Min(p.Weight, off.Weight), off.Error()
			}
		}
	}
}

// curve is a model on its GPU's table of clocks, of one GPU, and where the table
// is from.
func (c *Controller) curve(gpuModel string, m *model) ([]epdapi.Point, string) {
	s := c.settings.Load()
	c.mu.Lock()
	seen := c.clocks[gpuModel]
	c.mu.Unlock()
	pairs, from := []dvfsmodel.Setting{m.Base}, epdapi.ClocksFromModel
	if seen != nil {
		pairs, from = slices.Clone(seen.pairs), epdapi.ClocksFromAgent
	} else if p, err := s.Profiles.Lookup(gpuModel); err == nil && len(p.Pairs()) > 0 {
		pairs, from = slices.Clone(p.Pairs()), epdapi.ClocksFromProfile
	}
	slices.SortFunc(pairs, func(a, b dvfsmodel.Setting) int { return comparePairs(b, a) })
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
