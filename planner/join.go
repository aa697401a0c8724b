package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/consolidate"
	"github.com/epplan/epplan/queue"
)

// Hardware is what the GPUs of one model can be set to: a table of supported
// clocks, or a continuous range as in the EDL paper.
type Hardware struct {
	Table   *dvfsmodel.Table
	Range   *dvfsmodel.Range // used when there is no table
	Default dvfsmodel.Point  // the setting at default clocks
	Typical dvfsmodel.Watt   // assumed for a job that doesn't say its power
}

// Catalog knows GPU models, and how workloads respond on them.
type Catalog interface {
	// Hardware describes a GPU model.
	Hardware(gpuModel string) (Hardware, error)
	// Workload is how a workload responds on a GPU model; nil when there is no
	// model of it there.
	Workload(workload, gpuModel string) (dvfsmodel.Response, error)
	// Known returns an error that names what is known if the workload has no
	// model on any GPU model.
	Known(workload string) error
}

// Margins keep predictions that are a little wrong from breaking promises.
type Margins struct {
	Limit    float64 // the predicted run time × (1 + Limit) must fit the job's limit
	Deadline float64 // seconds before a deadline that a job is to end
}

// Join makes tasks of jobs: each job with the GPU models of the cluster that it
// may run on, and its response there. Warnings are about assumptions made. A
// job that names an unknown workload is an error, with its position.
func Join(batch *queue.Batch, cluster *Cluster, catalog Catalog, margins Margins) (tasks []Task, warnings []error, err error) {
	for _, m := range [...]float64{margins.Limit, margins.Deadline} {
		if !(m >= 0) || math.IsInf(m, 0) {
			return nil, nil, fmt.Errorf("margins %v of limits and %v s of deadlines, want finite numbers of 0 or more", margins.Limit, margins.Deadline)
		}
	}
	j := joiner{catalog: catalog, margins: margins, cluster: cluster}
	for i := range cluster.Classes {
		if err := j.addClass(&cluster.Classes[i]); err != nil {
			return nil, nil, err
		}
	}
	tasks = make([]Task, len(batch.Jobs))
	for i := range batch.Jobs {
		if tasks[i], err = j.task(&batch.Jobs[i]); err != nil {
			return nil, nil, err
		}
	}
	return tasks, j.warnings, nil
}

type joiner struct {
	catalog  Catalog
	margins  Margins
	cluster  *Cluster
	models   []string   // GPU models of the cluster, each once
	hardware []Hardware // by model
	warnings []error
}

// addClass adds the GPU model of a class, if it is new.
func (j *joiner) addClass(k *NodeClass) error {
	if slices.Contains(j.models, k.Model) {
		return nil
	}
	h, err := j.catalog.Hardware(k.Model)
	if err != nil {
		return fmt.Errorf("node class %q: %w", k.Name, err)
	}
	j.models, j.hardware = append(j.models, k.Model), append(j.hardware, h)
	return nil
}

// task joins a job with its models, and keeps the margins where they leave it possible.
func (j *joiner) task(job *queue.Job) (Task, error) {
	t := Task{
		ID: job.ID, Arrival: job.Arrival, Deadline: job.Deadline, Due: job.Deadline - j.margins.Deadline,
		Limit: job.Limit / (1 + j.margins.Limit), LimitMargin: j.margins.Limit, Share: job.Share, CPUs: job.CPUs, MemGiB: job.MemGiB,
	}
	if f := job.Profile; f != nil {
		t.Profile = &Profile{UtilPct: f.UtilPct, SlotS: f.Slot, MemGB: f.MemGB, Kappa: cmp.Or(f.Kappa, consolidate.PaperSLA)}
	}
	if err := j.options(&t, job); err != nil {
		return Task{}, err
	}
	shortest := math.Inf(1)
	for i := range t.Options {
		shortest = min(shortest, t.Options[i].Response.MinTime())
	}
	// A margin must not make a possible job impossible.
	if t.Arrival+shortest > t.Due {
		t.Due = t.Deadline
	}
	if shortest > t.Limit {
		t.Limit, t.LimitMargin = job.Limit, 0
	}
	return t, nil
}

// options joins the job with each GPU model of the cluster that it may use.
func (j *joiner) options(t *Task, job *queue.Job) error {
	if job.Model == nil && job.Workload != "" {
		if err := j.catalog.Known(job.Workload); err != nil {
			return fmt.Errorf("%s: job %q: %w", job.Pos, job.ID, err)
		}
	}
	scale := 0.0 // of the workload's times; set by the first GPU model that has it
	for i, model := range j.models {
		gpus, ok := job.GPUsOn(model)
		if !ok {
			continue
		}
		response, err := j.response(job, model, &j.hardware[i], &scale)
		if err != nil {
			return fmt.Errorf("%s: job %q: %w", job.Pos, job.ID, err)
		}
		if response != nil {
			t.Options = append(t.Options, Option{Model: model, GPUs: gpus, Response: response})
		}
	}
	return nil
}

// response is how the job responds on a GPU model: by its own coefficients, by
// its workload's model, or not at all. It is nil where the workload has no
// model.
func (j *joiner) response(job *queue.Job, model string, h *Hardware, scale *float64) (dvfsmodel.Response, error) {
	if m := job.Model; m != nil {
		return h.respond(dvfsmodel.Params{
			P0: dvfsmodel.Watt(m.P0), Gamma: dvfsmodel.Watt(m.Gamma), C: dvfsmodel.Watt(m.C),
			D: m.D, Delta: m.Delta, T0: m.T0,
		}), nil
	}
	if job.Workload != "" {
		return j.workload(job, model, scale)
	}
	at := h.Default
	at.Time, at.Power = job.Runtime, dvfsmodel.Watt(job.Power)
	if shared := j.cluster.Sharing; job.Power == 0 && job.Profile != nil && shared != nil && j.shares(model) {
		at.Power = dvfsmodel.Watt(shared.Physics.Power(shared.Physics.MaxMHz()))
	} else if job.Power == 0 {
		at.Power = h.Typical
		j.warnings = append(j.warnings, fmt.Errorf("%s: job %q states no power: %.4g W assumed on %s", job.Pos, job.ID, float64(at.Power), model))
	}
	at.Energy = at.Power.Over(at.Time)
	return &dvfsmodel.Fixed{At: at}, nil
}

// shares tells whether GPUs of a model may be shared by profile.
func (j *joiner) shares(model string) bool {
	return slices.ContainsFunc(j.cluster.Classes, func(k NodeClass) bool { return k.Model == model && k.SharedGB != nil })
}

// workload scales the workload's response to the job's run time. On further
// GPU models the same number of repetitions runs.
func (j *joiner) workload(job *queue.Job, model string, scale *float64) (dvfsmodel.Response, error) {
	response, err := j.catalog.Workload(job.Workload, model)
	if err != nil || response == nil {
		return nil, err
	}
	if *scale == 0 {
		*scale = 1
		if job.Runtime > 0 {
			*scale = job.Runtime / response.Default().Time
		}
	}
	return dvfsmodel.Repeat(response, *scale), nil
}

// respond is the response to a job's own coefficients.
func (h *Hardware) respond(p dvfsmodel.Params) dvfsmodel.Response {
	if h.Table != nil {
		return &dvfsmodel.Discrete{Params: p, Table: h.Table, At: h.Default}
	}
	return &dvfsmodel.Continuous{Params: p, Range: h.Range}
}
