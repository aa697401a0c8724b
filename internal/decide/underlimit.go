package decide

import (
	"cmp"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/choose"
	"github.com/epplan/epplan/internal/budget"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// UnderLimits returns how much longer the run of a job takes on a node under power limits, by the workload's
// model, and the least limit under which it is sure to keep its time limit, 0 where none is needed. It is nil
// where there is no model, or the job isn't known any more. A GPU under a limit runs at the highest clock at
// which it keeps it; the run may draw more than predicted by as large a part as it may take longer.
func UnderLimits(dr *Decider, job slurm.JobID, node string) (curve []budget.Slowdown, need dvfsmodel.Watt) {
	d := dr.Kept(job, node)
	if d == nil {
		return nil, 0
	}
	m := dr.options.Models.Model(record.WorkloadKey{
		Cluster: dr.options.Cluster, Workload: d.Workload, GPUModel: d.GPUModel,
	}).On(d.Node).Model
	seen := dr.GPUs.Clocks(d.GPUModel)
	if m == nil || seen == nil {
		return nil, 0
	}
	base, known := dr.options.Models.Base(d.GPUModel, m)
	if !known {
		return nil, 0
	}
	top := base
	if d.Apply {
		top.Core, top.Mem = cmp.Or(d.Core, base.Core), cmp.Or(d.Mem, base.Mem)
	}
	margin := max(m.Margin, dr.options.Settings().Live.TimeMargin)
	standard := m.At(base.Core, base.Mem)
	fastest := m.NoFaster(top.Core, top.Mem, &standard)
	limit, limited := d.Limit.Duration()
	for _, at := range seen.Pairs {
		if at.Mem != top.Mem || at.Core > top.Core {
			continue
		}
		pt := m.NoFaster(at.Core, at.Mem, &standard)
		if !choose.IsPossible(&pt) {
			continue
		}
		watts := pt.Power * dvfsmodel.Watt(1+margin)
		curve = append(curve, budget.Slowdown{Watts: watts, Times: pt.Time / fastest.Time})
		inTime := dvfsmodel.MeetsLimit(m.UpperTime(&pt, margin), limit.Seconds())
		if limited && inTime && (need == 0 || watts < need) {
			need = watts
		}
	}
	slices.SortFunc(curve, func(a, b budget.Slowdown) int { return cmp.Compare(a.Watts, b.Watts) })
	return thinCurve(curve), need
}

// mostPoints is how many points of a curve are enough to divide watts by.
const mostPoints = 16

// thinCurve returns a curve with fewer points, its last one among them.
func thinCurve(curve []budget.Slowdown) []budget.Slowdown {
	if len(curve) <= mostPoints {
		return curve
	}
	out := make([]budget.Slowdown, 0, mostPoints)
	for i := range mostPoints {
		out = append(out, curve[i*(len(curve)-1)/(mostPoints-1)])
	}
	return out
}
