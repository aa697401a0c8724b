package control

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// OutlookRequest asks what became of a run that was decided about.
type OutlookRequest struct {
	Job   slurm.JobID `json:"job_id"`
	Node  string      `json:"node"`
	RunID string      `json:"run_id"`
	// Ending tells that the run's Epilog came: Slurm is asked anew when its job ended.
	Ending bool `json:"ending,omitempty"`
}

// Outlook says whether a run still lasts, how long it may, and how long it will
// at most: limits, deadlines and models change while jobs run. The error is
// [ErrRequest].
func (c *Controller) Outlook(ctx context.Context, r OutlookRequest) (live.Outlook, error) {
	if !knownJobID(r.Job) || slurm.ValidNode(r.Node) != nil || !isRunID(r.RunID) {
		return live.Outlook{}, fmt.Errorf("%w: an outlook is of a run: job id, node, run id; %s",
			ErrRequest, wantRunID)
	}
	d := c.decisionOf(ctx, &r)
	var run jobs.Run
	if d != nil {
		run = jobs.Run{Began: d.at, Submitted: d.submission()}
	}
	o := live.Outlook{Life: live.LifeUnknown}
	job, runs, err := c.jobs.Runs(ctx, r.Job, run, r.Ending)
	switch {
	case err != nil:
	case runs:
		o.Life = live.LifeAlive
	default:
		o.Life = live.LifeGone
	}
	if o.Life == live.LifeAlive {
		o.LimitS = c.limitNow(job, run.Began)
	}
	if job != nil {
		o.Ended = job.End(run)
	}
	if o.Life != live.LifeGone && d != nil {
		o.UpperS = c.upperNow(d)
	}
	return o, nil
}

// knownJobID reports whether there can be such a job.
func knownJobID(id slurm.JobID) bool { return id > 0 && id <= maxJob }

// decisionOf is the decision for a run, nil if it isn't known.
func (c *Controller) decisionOf(ctx context.Context, r *OutlookRequest) *decided {
	key := decisionKey{r.Job, r.Node}
	c.mu.Lock()
	d := c.decided[key]
	c.mu.Unlock()
	if d != nil {
		if d.sameRun(r.RunID) {
			return d
		}
		return nil // a later run of the job has come
	}
	all, err := store.Within(ctx, c.options.StoreWait, func(ctx context.Context) ([]record.Decision, error) {
		return c.options.Store.DecisionsOfJob(ctx, c.options.Cluster, int64(r.Job))
	})
	if err != nil {
		return nil // the run keeps what it knew
	}
	for i := len(all) - 1; i >= 0; i-- {
		if d := &all[i]; d.Node == r.Node && d.RunID == r.RunID {
			return c.keep(key, fromRecord(d), nil)
		}
	}
	return nil
}

// limitNow is how long a run may last from its begin.
func (c *Controller) limitNow(job *jobs.Job, began time.Time) live.Number {
	start := job.Start()
	if began.IsZero() {
		began = start
	}
	wishes := job.Wishes(c.options.Clock())
	limited := *job
	if passed := began.Sub(start); !start.IsZero() && passed > 0 { // Slurm's clock ticked before the Prolog
		limited.Limit = job.Limit.Map(func(d time.Duration) time.Duration { return d - passed })
	}
	limit, _ := limited.RunLimit(began, wishes.Deadline, c.settings.Load().Safety.DeadlineMargin)
	if math.IsInf(limit, 0) {
		return live.Number{}
	}
	return live.Known(limit)
}

// upperNow is how long a run at a decision's clocks takes at most by the model
// that is in use now.
func (c *Controller) upperNow(d *decided) live.Number {
	m := c.learner.Model(record.WorkloadKey{
		Cluster: c.options.Cluster, Workload: d.Workload, GPUModel: d.GPUModel,
	}).Model
	if m == nil {
		return live.Number{}
	}
	base, known := c.learner.Base(d.GPUModel, m)
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
	margin := c.settings.Load().Live.TimeMargin
	if d.Apply && d.Adapt != nil {
		at = m.At(base.Core, base.Mem)
		return live.Known(m.UpperTime(&at, margin) * d.Adapt.SLA)
	}
	at = m.At(at.Core, at.Mem)
	return live.Known(m.UpperTime(&at, margin))
}

func (c *Controller) postOutlook(r *http.Request) (any, error) {
	var request OutlookRequest
	if err := DecodeJSON(r.Body, &request); err != nil {
		return nil, err
	}
	return c.Outlook(r.Context(), request)
}
