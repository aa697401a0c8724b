package decide

import (
	"context"
	"math"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// Outlook says whether a run still lasts, how long it may, and how long it will
// at most: limits, deadlines and models change while jobs run. The request is valid.
func (dr *Decider) Outlook(ctx context.Context, r *epdapi.OutlookRequest) live.Outlook {
	d := dr.decisionOfRun(ctx, r)
	var run jobs.Run
	if d != nil {
		run = jobs.Run{Began: d.At, Submitted: d.Submitted()}
	}
	o := live.Outlook{Life: live.LifeUnknown}
	job, runs, err := dr.options.Jobs.Runs(ctx, r.Job, run, r.Ending)
	switch {
	case err != nil:
	case runs:
		o.Life = live.LifeAlive
	default:
		o.Life = live.LifeGone
	}
	if o.Life == live.LifeAlive {
		o.Limit = dr.currentLimit(job, run.Began)
	}
	if job != nil {
		o.Ended = job.End(run)
	}
	if o.Life != live.LifeGone && d != nil {
		o.UpperS = dr.currentUpper(d)
	}
	return o
}

// decisionOfRun returns the decision for a run, nil if it isn't known.
func (dr *Decider) decisionOfRun(ctx context.Context, r *epdapi.OutlookRequest) *Decided {
	if d := dr.Kept(r.Job, r.Node); d != nil {
		if d.IsOf(r.RunID) {
			return d
		}
		return nil // a later run of the job has come
	}
	d, err := store.WaitAtMost(ctx, dr.options.StoreWait, func(ctx context.Context) (*Decided, error) {
		return dr.lookUpDecision(ctx, r.Job, r.Node, r.RunID)
	})
	if err != nil || d == nil {
		return nil // the run keeps what it knew
	}
	kept, _ := dr.keep(jobOnNode{r.Job, r.Node}, d, nil)
	return kept
}

// currentLimit returns how long a run may last from its begin.
func (dr *Decider) currentLimit(job *jobs.Job, began time.Time) live.Limit {
	start := job.Start()
	if began.IsZero() {
		began = start
	}
	wishes := job.Wishes(dr.options.Clock())
	limited := *job
	if passed := began.Sub(start); !start.IsZero() && passed > 0 { // Slurm's clock ticked before the Prolog
		limited.Limit = job.Limit.Map(func(d time.Duration) time.Duration { return d - passed })
	}
	limit, _ := limited.RunLimit(began, wishes.Deadline, dr.options.Settings().Safety.DeadlineMargin)
	if math.IsInf(limit, 1) {
		return limited.Limit // unset, or unlimited
	}
	return live.LimitOfSeconds(max(limit, 0))
}

// currentUpper returns how long a run at a decision's clocks takes at most by the model
// that is in use now.
func (dr *Decider) currentUpper(d *Decided) live.Number {
	view := dr.options.Models.Model(record.WorkloadKey{
		Cluster: dr.options.Cluster, Workload: d.Workload, GPUModel: d.GPUModel,
	}).On(d.Node)
	if view.Model == nil {
		return live.Number{}
	}
	upper := live.Number{}
	for _, m := range append(view.Without, view.Model) { // the longest by any
		if at, known := dr.upperByModel(d, m).Get(); known {
			upper = live.Known(max(upper.Or(0), at))
		}
	}
	return upper
}

// upperByModel returns how long a run at a decision's clocks takes at most by a model.
func (dr *Decider) upperByModel(d *Decided, m *learn.Model) live.Number {
	base, known := dr.options.Models.Base(d.GPUModel, m)
	if !known {
		return live.Number{}
	}
	at := dvfsmodel.Point{Core: base.Core, Mem: base.Mem}
	if d.Apply && d.Core > 0 {
		at.Core = d.Core
	}
	if d.Apply && d.Mem > 0 {
		at.Mem = d.Mem
	}
	margin := dr.options.Settings().Live.TimeMargin
	if d.Apply && d.Adapt != nil {
		at = m.At(base.Core, base.Mem)
		return live.Known(m.UpperTime(&at, margin) * d.Adapt.SLA)
	}
	if d.Apply && d.Cap > 0 {
		return live.Known(upperUnderLimit(d.Cap, &at, m, base, dr.GPUs.Clocks(d.GPUModel), margin))
	}
	at = m.At(at.Core, at.Mem)
	return live.Known(m.UpperTime(&at, margin))
}
