package learn

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// Fit returns a workload's model on a GPU model with the runs behind it, but for its curve
// and the workload's last job; and that model, nil if none is in use. A workload that
// nobody knows has neither.
func (l *Learner) Fit(ctx context.Context, key record.WorkloadKey) (*epdapi.ModelFit, *Model, error) {
	recent, older, err := l.lastOutcomes(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	m := l.models.get(key).Model
	out := &epdapi.ModelFit{ModelStatus: l.models.standing(key), Points: []epdapi.FitPoint{}}
	base, known := l.Base(key.GPUModel, m)
	if known {
		out.BaseCore, out.BaseMem = base.Core, base.Mem
	}
	if m != nil {
		out.Model = m.Summary()
		out.MinMem, out.MaxMem = m.Low.Mem, m.High.Mem
	}
	today := limitOfToday(recent)
	samples := l.fitPoints(out, recent, base, m, today)
	first := len(out.Points)
	before := l.fitPoints(out, older, base, m, today)
	if !runsAgree(samples, before) {
		before = nil
		for i := range out.Points[first:] {
			p := &out.Points[first+i]
			p.Used, p.Why = false, cmp.Or(p.Why, "later runs take another time at the same clocks")
		}
	}
	if known {
		markDistrusted(out.Points, slices.Concat(samples, before), base)
	}
	return out, m, nil
}

// fitPoints shows outcomes in a fit and returns the samples among them, by the power limit of today.
func (l *Learner) fitPoints(
	out *epdapi.ModelFit, outcomes []record.Outcome, base dvfsmodel.Setting, m *Model, today float64,
) []dvfsmodel.Sample {
	samples := make([]dvfsmodel.Sample, 0, len(outcomes))
	for i := range outcomes {
		p, s := l.fitPoint(&outcomes[i], base, m, today)
		if out.Points = append(out.Points, p); p.Used {
			samples = append(samples, s)
		}
	}
	return samples
}

// fitPoint returns a run as a fit sees it, and its sample if it is one.
func (l *Learner) fitPoint(
	o *record.Outcome, base dvfsmodel.Setting, m *Model, today float64,
) (epdapi.FitPoint, dvfsmodel.Sample) {
	s, why := sampled(o, base)
	why = cmp.Or(why, checkLimit(o, today))
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
	p.Before = !o.Ended.After(m.Created)
	if p.Used {
		pt := m.At(s.Core, s.Mem)
		p.Within, p.Off = m.isHit(&s, l.options.Settings().TimeMargin), live.Known(s.Time/pt.Time-1)
	}
	return p, s
}

// markDistrusted marks the points whose clocks a fit of all of them counts for less.
func markDistrusted(points []epdapi.FitPoint, samples []dvfsmodel.Sample, base dvfsmodel.Setting) {
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
