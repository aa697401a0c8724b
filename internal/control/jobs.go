package control

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// maxScan is how many jobs are looked at for one page of those in a state.
const maxScan = 2000

func (c *Controller) getJobs(r *http.Request) (any, error) {
	if len(r.URL.RawQuery) > maxQueryLength {
		return nil, fmt.Errorf("%w: the query is too long", ErrRequest)
	}
	q := r.URL.Query()
	before, err := number(q.Get("before"), 0, 1<<62)
	if err != nil {
		return nil, err
	}
	limit, err := number(q.Get("limit"), pageSize, maxPage)
	if err != nil {
		return nil, err
	}
	answer := &epdapi.JobPage{Jobs: []epdapi.JobRow{}, Next: before}
	filter, ok := c.jobFilter(r.Context(), q)
	if !ok {
		answer.Next = 0
		return answer, nil
	}
	return answer, c.fillPage(r.Context(), answer, filter, q.Get("state"), int(max(1, limit)))
}

// jobFilter is what a query asks for, narrowed to what the caller may see;
// false: to nothing.
func (c *Controller) jobFilter(ctx context.Context, q url.Values) (*store.JobFilter, bool) {
	f := &store.JobFilter{
		Cluster: c.options.Cluster, User: q.Get("user"), Account: q.Get("account"), Partition: q.Get("partition"), Workload: q.Get("workload"),
	}
	who := CallerOf(ctx)
	if who.All || who.Control {
		return f, true
	}
	if f.User == "" {
		f.User = who.own()
	}
	return f, f.User != "" && who.sees(f.User)
}

// fillPage adds jobs that pass a filter and are in a state (empty: any), from
// before the page's Next on. How a job ended is known from its outcomes, so that
// jobs are looked at one by one for it.
func (c *Controller) fillPage(ctx context.Context, page *epdapi.JobPage, filter *store.JobFilter, state string, limit int) error {
	for scanned := 0; scanned < maxScan; {
		some, err := c.options.Store.Jobs(ctx, filter, page.Next, limit-len(page.Jobs))
		if err != nil {
			return err
		}
		for i := range some.Jobs {
			j := &some.Jobs[i]
			h, err := c.history(ctx, j.ID)
			if err != nil {
				return err
			}
			if row := h.submission(j.Submitted).row(j); state == "" || row.State == state {
				page.Jobs = append(page.Jobs, row)
			}
		}
		page.Next = some.Next
		scanned += len(some.Jobs)
		if page.Next == 0 || len(page.Jobs) == limit {
			return nil
		}
	}
	return nil
}

func (c *Controller) getJob(r *http.Request) (any, error) {
	id, err := slurm.ParseJobID(r.PathValue("id"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	return c.Job(r.Context(), id)
}

// Job is everything that is known of a job and that the caller of the context
// may see. The error is [store.ErrNotFound] if there is nothing.
func (c *Controller) Job(ctx context.Context, id slurm.JobID) (*epdapi.JobView, error) {
	h, err := c.history(ctx, int64(id))
	if err != nil {
		return nil, err
	}
	live := c.jobs.get(id)
	if live != nil {
		if live, err = c.withToken(ctx, live, nil); err != nil {
			return nil, err
		}
		if live.submitted > 0 {
			h.add(c.liveRecord(id, live))
		}
	}
	who := CallerOf(ctx)
	h = h.seenBy(who)
	if len(h.jobs)+len(h.decisions)+len(h.outcomes) == 0 {
		return nil, fmt.Errorf("job %d: %w", id, store.ErrNotFound)
	}
	s := c.settings.Load()
	view := &epdapi.JobView{
		ConfigVersion: s.Version, Decisions: []epdapi.Decision{}, Outcomes: []epdapi.Outcome{},
		Objective: epdapi.Objective{EnergyWeight: s.Objective.EnergyWeight, TimeWeight: s.Objective.TimeWeight, DelayPower: float64(s.Objective.DelayPower)},
	}
	if len(h.jobs) > 0 {
		if err := c.viewLatest(ctx, view, h, live); err != nil {
			return nil, err
		}
	}
	for i := range h.decisions {
		d, err := c.viewDecision(ctx, s, &h.decisions[i])
		if err != nil {
			return nil, err
		}
		view.Decisions = append(view.Decisions, d)
	}
	for i := range h.outcomes {
		view.Outcomes = append(view.Outcomes, epdapi.Outcome{Outcome: h.outcomes[i], Series: seriesOf(&h.outcomes[i].Series)})
	}
	return view, nil
}

// viewLatest fills in the job that was submitted last. live is what Slurm says
// of the id now; nil: nothing.
func (c *Controller) viewLatest(ctx context.Context, view *epdapi.JobView, h *history, live *knownJob) error {
	latest := &h.jobs[0]
	view.Job = jobOf(latest)
	own := h.submission(latest.Submitted)
	view.Job.State = own.ended(latest.State)
	if latest.Token != "" {
		d, err := c.options.Store.DecisionByToken(ctx, c.options.Cluster, latest.Token)
		switch {
		case err == nil:
			view.Submission = &d
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
	}
	if live == nil || live.submitted != latest.Submitted.Unix() {
		return nil
	}
	wishes := slurm.ParseWishes(live.comment.Value(), latest.Submitted)
	view.Wishes = wishesOf(&wishes, live.ownFreq)
	if len(own.decisions) == 0 {
		view.Estimate = c.estimate(live, false, "")
	}
	return nil
}

// liveRecord is a job that Slurm has as a record would have it.
func (c *Controller) liveRecord(id slurm.JobID, job *knownJob) *record.Job {
	d := &decided{Decision: Decision{Job: id}}
	if job.source != (source{}) && job.gpus > 0 {
		d.Workload = job.source.workload(int(job.gpus))
	}
	j := c.jobRecord(d, job)
	j.State = string(job.stateOf().Base)
	return j
}

// wishesOf are a user's wishes, nil without any.
func wishesOf(w *slurm.Wishes, ownFreq bool) *epdapi.Wishes {
	if !w.Off && !ownFreq && !w.Fixed() && w.Deadline.IsZero() && len(w.Warnings) == 0 {
		return nil
	}
	return &epdapi.Wishes{
		OptOut: w.Off, OwnFreq: ownFreq, CoreMHz: w.CoreMHz, MemMHz: w.MemoryMHz, Deadline: w.Deadline, Warnings: list(w.Warnings),
	}
}

// viewDecision adds to a decision what the model it was made by predicts.
func (c *Controller) viewDecision(ctx context.Context, s *Settings, d *record.Decision) (epdapi.Decision, error) {
	out := epdapi.Decision{Decision: *d}
	m, err := c.modelVersion(ctx, record.WorkloadKey{Cluster: d.Cluster, Workload: d.Workload, GPUModel: d.GPUModel}, d.ModelVersion)
	if err != nil || m == nil {
		return out, err
	}
	gpus := 1.0
	if one := d.PowerW.Value.Or(0) * d.TimeS.Value.Or(0); one > 0 {
		gpus = max(1, math.Round(d.EnergyJ.Value.Or(0)/one))
	}
	at := predictor{settings: s, model: m, gpuModel: d.GPUModel, gpus: gpus}
	out.Model, out.Default = modelOf(m), at.point(m.shape.BaseCore, m.shape.BaseMem)
	if d.Setting.Core > 0 {
		mem := d.Setting.Mem
		if mem == 0 {
			mem = m.shape.BaseMem
		}
		out.Chosen = at.point(d.Setting.Core, mem)
	}
	return out, nil
}

// modelVersion is a version of a workload's model, nil for version 0 and for
// one that is gone or can't be read.
func (c *Controller) modelVersion(ctx context.Context, key record.WorkloadKey, version int64) (*model, error) {
	if version == 0 {
		return nil, nil
	}
	if m := c.models.get(key).model; m != nil && m.version == version {
		return m, nil
	}
	all, err := c.options.Store.Models(ctx, key)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Version != version {
			continue
		}
		m, err := fromModelRecord(&all[i])
		if err != nil {
			c.options.Log.Warn("a model can't be shown", "error", err)
			return nil, nil
		}
		return m, nil
	}
	return nil, nil
}

// predictor says what a job's GPUs would take at given clocks.
type predictor struct {
	settings *Settings
	model    *model
	gpuModel string
	gpus     float64
}

func (p *predictor) point(core, mem dvfsmodel.MHz) *epdapi.Point {
	pt := p.model.at(dvfsmodel.Point{Core: core, Mem: mem})
	margin := p.settings.Live.TimeMargin
	host := p.settings.hostPower(p.gpuModel).Over(pt.Time)
	return &epdapi.Point{
		Core: float64(core), Mem: float64(mem), TimeS: pt.Time,
		LowerS: p.model.lower(&pt, margin), UpperS: p.model.upper(&pt, margin),
		PowerW: float64(pt.Power) * p.gpus, EnergyJ: float64(pt.Energy) * p.gpus, HostJ: float64(host) * p.gpus,
	}
}

func modelOf(m *model) *epdapi.Model {
	return &epdapi.Model{
		Version: m.version, Prior: m.shape.Prior, Samples: m.samples, Margin: m.shape.Margin,
		MinCore: float64(m.shape.MinCore), MaxCore: float64(m.shape.MaxCore),
	}
}

// seriesOf is a series as numbers.
func seriesOf(s *record.Series) epdapi.Series {
	out := epdapi.Series{IntervalS: float64(s.Interval()) / float64(time.Second), Values: make([]record.Number, s.Len())}
	for i := range out.Values {
		out.Values[i] = s.At(i)
	}
	return out
}
