package query

import (
	"cmp"
	"context"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/forecast"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// Estimate returns what a submission would take if it ran now: on one GPU model, or, if that
// is empty, on all on which its workload ran. Users ask for themselves. Of the
// submission nothing is kept; what is told of the code of a caller's own job, nil:
// nothing, is.
func (s *Service) Estimate(
	_ context.Context, who Caller, asked *hooks.Submission, code *epdapi.Code, gpuModel string,
) *epdapi.Estimate {
	job := *asked
	if !who.canSeeAll() {
		job.UID = who.UID
	}
	// Operators ask for others, and change nothing for them.
	if who.Admin || job.UID == who.UID {
		s.reader.announce(&job, code)
	}
	e := s.reader.estimateSubmission(&job, gpuModel)
	e.WantsText = s.reader.wantsText(&job, code)
	return e
}

// estimateSubmission returns what a submission would take if it ran now.
func (r *reader) estimateSubmission(asked *hooks.Submission, gpuModel string) *epdapi.Estimate {
	gpus, shared := jobs.GPUsOf(asked)
	job := jobs.FromDescription(asked.UID, "", string(asked.Partition), string(asked.Comment))
	limit := r.options.Tracker.Limit(asked.Limit())
	job.GPUs, job.Nodes, job.Limit = uint32(gpus), asked.MinNodes, limit //nolint:gosec // at most epdapi.MaxGPUs
	job.Source, job.Scripted, job.OwnFreq = jobs.SourceOf(asked.UID, jobs.ScriptHash(asked.Script),
		string(asked.Name)), asked.Script != "", asked.TRESFreq != ""
	e := r.estimateJob(job, shared, gpuModel)
	if f := r.options.Forecasts.Predict(forecast.JobOf(asked, gpus, limit, job.Source.String())); f != nil {
		f.Footprint = r.options.Settings().Footprint(r.options.Clock(), f)
		e.Forecast = f
	}
	if e.Known || !job.Scripted || r.options.Scripted() {
		return e
	}
	// Where job_submit sends no scripts, jobs go by their names.
	job.Source, job.Scripted = jobs.SourceOf(asked.UID, "", string(asked.Name)), false
	if named := r.estimateJob(job, shared, gpuModel); named.Known {
		named.Forecast = e.Forecast
		return named
	}
	return e
}

// estimateJob returns what a job would take by what Slurm says of it: it goes through the rules
// of a decision on each GPU model. Without a known time limit it goes by none.
func (r *reader) estimateJob(job *jobs.Job, shared bool, only string) *epdapi.Estimate {
	set, now := r.options.Settings(), r.options.Clock()
	wishes := slurm.ParseWishes(job.Comment.Value(), now)
	e := &epdapi.Estimate{
		GPUs: int(job.GPUs), Shared: shared, Scripted: job.Scripted,
		Mode: string(set.Live.ModeOf(job.Partition.Value())), Limited: job.Limit.IsSet(),
		HoldOut: set.Live.HoldOut, ConstantArm: set.Live.ConstantArm, ConfigVersion: set.Version,
		Wishes: requestsOf(&wishes, job.OwnFreq),
		Models: []epdapi.EstimateModel{}, Factors: epdapi.NewFactors(set.Factors),
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
	for _, name := range r.options.GPUNames(set.Profiles).Known {
		if only != "" && name != set.Profiles.NameOf(only) {
			continue
		}
		view := r.options.Learner.Model(r.options.keyIn(job.Partition.Value(), e.Workload, name))
		if view.Model == nil && view.Note == "" {
			continue
		}
		e.Models = append(e.Models, estimateOn(set, &Choice{
			Job: job, GPUModel: name, Shared: shared, Model: view, Wishes: &wishes, Now: now,
		}))
		e.Known = e.Known || view.Model != nil
	}
	if only != "" {
		where = " of model " + slurm.Printable(only, maxModel)
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

func estimateOn(set *Settings, c *Choice) epdapi.EstimateModel {
	d, base := set.Choose(c)
	e := epdapi.EstimateModel{GPUModel: c.GPUModel, Reason: d.Reason, Apply: d.Apply}
	if c.Model.Model == nil {
		return e
	}
	at := predictor{settings: set, model: c.Model.Model, gpuModel: c.GPUModel, gpus: float64(c.Job.GPUs)}
	e.Model, e.Default = c.Model.Model.Summary(), at.point(base.Core, base.Mem)
	if e.Chosen = e.Default; d.Core > 0 || d.Cap > 0 {
		e.Chosen = at.point(cmp.Or(d.Core, base.Core), cmp.Or(d.Mem, base.Mem))
	}
	if d.Cap > 0 {
		at.underLimit(e.Chosen, d.Cap, record.Interval{Value: d.Predicted, High: d.Upper}, d.PowerW, d.EnergyJ)
	}
	return e
}
