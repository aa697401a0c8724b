package control

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

func (c *Controller) postEstimate(r *http.Request) (any, error) {
	if len(r.URL.RawQuery) > maxQueryLength {
		return nil, fmt.Errorf("%w: the query is too long", ErrRequest)
	}
	s, code, err := decodeCode(r.Body)
	if err != nil {
		return nil, err
	}
	if who := CallerOf(r.Context()); !who.All && !who.Control {
		s.UID = who.UID
	}
	// Operators ask for others, and change nothing for them.
	if who := CallerOf(r.Context()); who.Control || s.UID == who.UID {
		c.announce(&s, code)
	}
	e := c.Estimate(&s, r.URL.Query().Get("gpu_model"))
	e.WantsText = c.wantsText(&s, code)
	return e, nil
}

// Estimate is what a submission would take if it ran now: on one GPU model, or,
// if that is empty, on all on which its workload ran. Nothing of it is kept.
func (c *Controller) Estimate(s *slurm.Submission, gpuModel string) *epdapi.Estimate {
	gpus, shared := gpusOf(s)
	job := jobs.Described(s.UID, "", string(s.Partition), string(s.Comment))
	job.GPUs, job.Nodes, job.Limit = uint32(gpus), s.MinNodes, c.jobs.Limit(s.Limit()) //nolint:gosec // at most epdapi.MaxGPUs
	job.Source, job.Scripted, job.OwnFreq = jobs.SourceOf(s.UID, scriptHash(s.Script), string(s.Name)),
		s.Script != "", s.TRESFreq != ""
	e := c.estimate(job, shared, gpuModel)
	if f := c.forecasts.Predict(c.submittedJob(s, job.Source)); f != nil {
		f.Footprint = c.settings.Load().footprint(c.options.Clock(), f)
		e.Forecast = f
	}
	if e.Known || !job.Scripted || c.counters.scripts.Load() > 0 {
		return e
	}
	// Where job_submit sends no scripts, jobs go by their names.
	job.Source, job.Scripted = jobs.SourceOf(s.UID, "", string(s.Name)), false
	if named := c.estimate(job, shared, gpuModel); named.Known {
		named.Forecast = e.Forecast
		return named
	}
	return e
}

// gpusOf is how many GPUs a submission asks for in all, and whether it asks for
// parts of them.
func gpusOf(s *slurm.Submission) (gpus int, shared bool) {
	total := 0.0
	for _, part := range []struct {
		text  slurm.Hex
		times uint32
	}{
		{s.TRESPerJob, 1},
		{s.TRESPerNode, s.MinNodes},
		{s.TRESPerTask, s.NumTasks},
		{s.TRESPerSock, s.MinNodes},
	} {
		wanted, err := slurm.ParseGres(string(part.text))
		if err != nil {
			continue
		}
		n := 0.0
		for _, g := range wanted {
			switch g.Name {
			case "gpu":
				n += float64(g.Count)
			case "shard", "mps":
				shared = shared || g.Count > 0
			}
		}
		total = max(total, n*float64(max(1, part.times)))
	}
	if shared && total == 0 {
		return 1, true
	}
	return int(min(total, epdapi.MaxGPUs)), shared
}

// estimate goes through the rules of a decision on each GPU model. Without a
// known time limit it goes by none.
func (c *Controller) estimate(job *jobs.Job, shared bool, only string) *epdapi.Estimate {
	s, now := c.settings.Load(), c.options.Clock()
	wishes := slurm.ParseWishes(job.Comment.Value(), now)
	e := &epdapi.Estimate{
		GPUs: int(job.GPUs), Shared: shared, Scripted: job.Scripted,
		Mode: string(s.Live.ModeOf(job.Partition.Value())), Limited: job.Limit.IsSet(),
		HoldOut: s.Live.HoldOut, ConstantArm: s.Live.ConstantArm, ConfigVersion: s.Version,
		Wishes: wishesOf(&wishes, job.OwnFreq),
		Models: []epdapi.EstimateModel{}, Factors: epdapi.NewFactors(&s.Factors),
	}
	if e.GPUs == 0 {
		e.Reason = "it asks for no GPUs"
		return e
	}
	e.Workload = job.Source.Workload(e.GPUs)
	if !e.Limited {
		unlimited := *job
		unlimited.Limit = live.Unlimited()
		job = &unlimited
	}
	where := ""
	for _, name := range c.gpuModels() {
		if only != "" && name != s.ModelName(only) {
			continue
		}
		view := c.learner.Model(record.WorkloadKey{
			Cluster: c.options.Cluster, Workload: e.Workload, GPUModel: name,
		})
		if view.Model == nil && view.Note == "" {
			continue
		}
		e.Models = append(e.Models, c.estimateOn(s, job, shared, name, view, &wishes, now))
		e.Known = e.Known || view.Model != nil
	}
	if only != "" {
		where = " of model " + slurm.Printable(only, epdapi.MaxModelName)
	}
	switch {
	case e.Known:
	case len(e.Models) > 0:
		e.Reason = e.Models[0].Reason
	case job.Scripted:
		e.Reason = "no run of this very script by this user on as many GPUs" + where + " is known"
	default:
		e.Reason = "no run under this name by this user on as many GPUs" + where + " is known"
	}
	return e
}

// estimateOn is an estimate on one GPU model.
func (c *Controller) estimateOn(
	s *Settings, job *jobs.Job, shared bool, name string, view learn.View, wishes *slurm.Wishes,
	now time.Time,
) epdapi.EstimateModel {
	d, base := c.decider.Preview(&s.Settings, job, shared, name, view, wishes, now)
	e := epdapi.EstimateModel{GPUModel: name, Reason: d.Reason, Apply: d.Apply}
	if view.Model == nil {
		return e
	}
	at := predictor{settings: s, model: view.Model, gpuModel: name, gpus: float64(job.GPUs)}
	e.Model, e.Default = view.Model.Summary(), at.point(base.Core, base.Mem)
	if e.Chosen = e.Default; d.Core > 0 {
		mem := d.Mem
		if mem == 0 {
			mem = base.Mem
		}
		e.Chosen = at.point(d.Core, mem)
	}
	return e
}

// gpuModels are the GPU models of which anything is known, in order.
func (c *Controller) gpuModels() []string {
	names := c.learner.GPUModels()
	for _, name := range c.decider.GPUModels() {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// deadlineFrom is the seconds that remain to a time; unknown without one.
func deadlineFrom(now time.Time, all ...time.Time) live.Number {
	least := math.Inf(1)
	for _, at := range all {
		if !at.IsZero() {
			least = min(least, at.Sub(now).Seconds())
		}
	}
	return live.Known(least)
}
