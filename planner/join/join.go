// Package join makes tasks to plan of the jobs of a batch: what is known of how each responds
// on the GPU models of a cluster, by its own coefficients, by what it states, by models of
// workloads, or by those of others.
package join

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/sharing"
	"github.com/epplan/epplan/queue"
)

// Hardware is what the GPUs of one model can be set to: a table of supported
// clocks, or a continuous range as in the EDL paper.
type Hardware struct {
	Name    string // of the GPU model; "": as it was asked for
	Table   *dvfsmodel.Table
	Range   *dvfsmodel.Range // used when there is no table
	Default dvfsmodel.Point  // the setting at default clocks
	Typical dvfsmodel.Watt   // assumed for a job that doesn't say its power
	// MaxPower is the board's highest power limit, beyond which no stated power is believed; 0: unknown.
	MaxPower dvfsmodel.Watt
	// IdlePower is an idle GPU's: far below it no stated power is believed.
	IdlePower dvfsmodel.Watt
	// Caps are the power caps that plans may set; the zero value has none.
	Caps dvfsmodel.CapRange
	// Unseen is how jobs without a model respond; nil: they run at default clocks.
	Unseen *pooled.UnseenWorkload
}

// Catalog knows GPU models, and how workloads respond on them.
type Catalog interface {
	// Hardware describes a GPU model.
	Hardware(gpuModel string) (Hardware, error)
	// Workload is how a workload responds on a GPU model; nil when there is no
	// model of it there.
	Workload(workload, gpuModel string) (dvfsmodel.Response, error)
	// CheckWorkload returns an error that names what is known if the workload has no
	// model on any GPU model.
	CheckWorkload(workload string) error
	// Uncertainty is how far off the model of a workload on a GPU model may be, the same
	// one at each call; nil: not known.
	Uncertainty(workload, gpuModel string) *dvfsmodel.Uncertainty
}

// Margins keep predictions that are a little wrong from breaking promises.
type Margins struct {
	Limit    float64 // the predicted run time × (1 + Limit) must fit the job's limit
	Deadline float64 // seconds before a deadline that a job is to end
}

// Tasks makes tasks of jobs: each job with the GPU models of the cluster that it
// may run on, and its response there. Warnings are about assumptions made, each a [queue.Warning]. A
// job that names an unknown workload is an error, with its position. So are jobs whose run times are
// known on other GPU models only: [ElsewhereError].
func Tasks(
	batch *queue.Batch, cluster *planner.Cluster, catalog Catalog, margins Margins,
) (tasks []planner.Task, warnings []error, err error) {
	for _, m := range [...]float64{margins.Limit, margins.Deadline} {
		if !(m >= 0) || math.IsInf(m, 0) {
			return nil, nil, fmt.Errorf("margins %v of limits and %v s of deadlines, want finite numbers "+
				"of 0 or more", margins.Limit, margins.Deadline)
		}
	}
	j := joiner{
		catalog: catalog, margins: margins, cluster: cluster, widest: make(map[string]int),
		names: make(map[string]string), unnamed: make(map[string]error), priors: make(map[string]*prior),
		limits: powerLimits{catalog, make(map[string][2]dvfsmodel.Watt)}, sameElsewhere: batch.SameElsewhere,
		someTimes: slices.ContainsFunc(batch.Jobs, func(job queue.Job) bool { return job.HasRunTime() }),
	}
	if err := j.setSpeeds(batch.Speeds); err != nil {
		return nil, nil, err
	}
	for i := range cluster.Classes {
		if err := j.addClass(&cluster.Classes[i]); err != nil {
			return nil, nil, err
		}
	}
	slices.SortFunc(j.hardware, func(a, b Hardware) int { return cmp.Compare(a.Name, b.Name) })
	tasks = make([]planner.Task, len(batch.Jobs))
	for i := range batch.Jobs {
		if tasks[i], err = j.task(&batch.Jobs[i]); err != nil {
			return nil, nil, err
		}
	}
	if j.elsewhere.Jobs > 0 {
		j.elsewhere.Of = len(batch.Jobs)
		return nil, nil, &j.elsewhere
	}
	return tasks, j.warnings, nil
}

type joiner struct {
	catalog  Catalog
	margins  Margins
	cluster  *planner.Cluster
	hardware []Hardware        // GPU models of the cluster, by name, each once
	widest   map[string]int    // by GPU model: GPUs of its widest node
	names    map[string]string // of GPU models, by alias
	unnamed  map[string]error  // of GPU models that aren't known
	priors   map[string]*prior // by GPU model
	warnings []error

	limits        powerLimits
	speeds        map[string]float64 // of GPU models beside each other; nil: nobody stated any
	sameElsewhere bool               // a run time that is known elsewhere only is as long here
	someTimes     bool               // some job states its run time
	elsewhere     ElsewhereError     // what it says of the jobs so far

	// Of the current job, with GPU models by their own names.
	measured   []queue.Measured
	measuredOn string // GPU model of its run time and power, as [queue.Job.RuntimeModel]
}

// addClass adds the GPU model of a class, if it is new.
func (j *joiner) addClass(k *planner.NodeClass) error {
	j.widest[k.Model] = max(j.widest[k.Model], k.GPUs)
	if slices.ContainsFunc(j.hardware, func(h Hardware) bool { return h.Name == k.Model }) {
		return nil
	}
	h, err := j.catalog.Hardware(k.Model)
	if err != nil {
		return fmt.Errorf("node class %q: %w", k.Name, err)
	}
	h.Name = k.Model
	j.hardware = append(j.hardware, h)
	return nil
}

// task joins a job with its models, and keeps the margins where they leave it possible.
func (j *joiner) task(job *queue.Job) (planner.Task, error) {
	t := planner.Task{
		ID: job.ID, Arrival: job.Arrival, Deadline: job.Deadline, Due: job.Deadline - j.margins.Deadline,
		Limit: job.Limit / (1 + j.margins.Limit), LimitMargin: j.margins.Limit, Share: job.Share,
		CPUs: job.CPUs, MemGiB: job.MemGiB,
	}
	if f := job.Profile; f != nil {
		t.Profile = &planner.UsageProfile{
			UtilPct: f.UtilPct, SlotS: f.Slot, MemGB: f.MemGB, Kappa: cmp.Or(f.Kappa, sharing.PaperSLA),
		}
	}
	if err := j.options(&t, job); err != nil {
		return planner.Task{}, err
	}
	if t.Profile != nil && t.IsGang() {
		t.Profile = nil
		j.warn(job, queue.WarnProfile, 0, " runs on several nodes: GPUs for itself, its profile isn't used")
	}
	shortest := shortestRun(&t, j.cluster)
	// A margin must not make a possible job impossible.
	if t.Arrival+shortest > t.Due {
		t.Due = t.Deadline
	}
	limit := max(t.Limit, shortestDefault(&t, job.Limit)) // nor does it ask for more than default clocks
	if shortest > limit {
		limit = job.Limit
	}
	if limit > t.Limit {
		t.Limit, t.LimitMargin = limit, job.Limit/limit-1
	}
	if shortest*(1-roundingSlack) > t.Limit && !math.IsInf(shortest, 1) {
		j.endAtLimit(&t, job, shortest)
	}
	return t, nil
}

// shortestDefault returns the shortest run time at default clocks, in seconds, if it keeps a limit; else 0.
func shortestDefault(t *planner.Task, limit float64) float64 {
	shortest := math.Inf(1)
	for i := range t.Options {
		shortest = min(shortest, t.Options[i].Response.Default().Time)
	}
	if shortest > limit*(1+roundingSlack) {
		return 0
	}
	return min(shortest, limit)
}

// roundingSlack is the relative rounding of times: a limit of exactly the shortest run time is kept.
const roundingSlack = 1e-12

// shortestRun returns how long the task runs at its fastest, in seconds, on nodes that are large enough;
// where none is, on any.
func shortestRun(t *planner.Task, c *planner.Cluster) float64 {
	fitting, anywhere := math.Inf(1), math.Inf(1)
	for i := range t.Options {
		shortest := t.Options[i].Response.MinTime()
		anywhere = min(anywhere, shortest)
		if slices.ContainsFunc(c.Classes, func(k planner.NodeClass) bool {
			return k.Model == t.Options[i].Model && k.HasRoom(t, i)
		}) {
			fitting = min(fitting, shortest)
		}
	}
	if math.IsInf(fitting, 1) {
		return anywhere
	}
	return fitting
}

// endAtLimit has a task that can't be done within its limit run for as long as that, at default clocks: the
// workload manager starts it all the same, and ends it then. How much it had to do nobody knows: slower
// clocks would only have it do less.
func (j *joiner) endAtLimit(t *planner.Task, job *queue.Job, shortest float64) {
	for i := range t.Options {
		o := &t.Options[i]
		at := o.Response.Default()
		at.Time, at.Energy = job.Limit, at.Power.Over(job.Limit)
		o.Response, o.Uncertainties = &dvfsmodel.Fixed{At: at}, nil
	}
	j.warn(job, queue.WarnKilled, shortest/job.Limit,
		" needs %.6g s at the fastest clocks, its limit is %.6g s: planned for its limit, at which it will be "+
			"killed",
		shortest, job.Limit)
}

// warn adds a warning about a job.
func (j *joiner) warn(job *queue.Job, kind queue.WarningKind, weight float64, format string, args ...any) {
	j.warnings = append(j.warnings, &queue.Warning{
		Kind: kind, Job: job.ID, Weight: weight,
		Err: fmt.Errorf("%s: job %q"+format, append([]any{job.Pos, job.ID}, args...)...),
	})
}

// options joins the job with each GPU model of the cluster on which it is known how
// it runs.
func (j *joiner) options(t *planner.Task, job *queue.Job) error {
	if job.Model == nil && job.Workload != "" {
		if err := j.checkWorkload(job); err != nil {
			return err
		}
	}
	runs, err := j.knownRuns(job)
	if err != nil {
		return err
	}
	for _, g := range job.GPUs {
		if g.Model == "" {
			continue
		}
		if _, err := j.resolveName(g.Model); err != nil && len(job.GPUs) > 1 {
			j.warn(job, queue.WarnUnused, 1, " asks for GPU model %s, which isn't known: its other models count", g.Model)
		}
		if len(runs) == 0 {
			t.Named = append(t.Named, queue.Printable(g.Model))
		}
	}
	t.Options = make([]planner.Option, len(runs))
	for i := range runs {
		if t.Options[i], err = j.option(job, &runs[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkWorkload is an error if the job's workload has no model anywhere: it may be misspelt.
// Where others stand for it, that is a warning.
func (j *joiner) checkWorkload(job *queue.Job) error {
	err := j.catalog.CheckWorkload(job.Workload)
	if err == nil {
		return nil
	}
	if job.HasRunTime() && slices.ContainsFunc(j.hardware, func(h Hardware) bool { return h.Unseen != nil }) {
		j.warn(job, queue.WarnWorkload, 0, ": workload %q has no model: planned as others respond",
			queue.Printable(job.Workload))
		return nil
	}
	return fmt.Errorf("%s: job %q: %w", job.Pos, job.ID, err)
}

// canShare reports whether GPUs of a model may be shared by profile.
func (j *joiner) canShare(model string) bool {
	return slices.ContainsFunc(j.cluster.Classes, func(k planner.NodeClass) bool {
		return k.Model == model && k.SharedGB != nil
	})
}

// responseTo returns the response to a job's own coefficients.
func (h *Hardware) responseTo(p dvfsmodel.Params) dvfsmodel.Response {
	if h.Table != nil {
		return &dvfsmodel.Discrete{Params: p, Table: h.Table, At: h.Default}
	}
	return &dvfsmodel.Continuous{Params: p, Range: h.Range}
}
