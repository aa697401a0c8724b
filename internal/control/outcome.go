package control

import (
	"context"
	"fmt"
	"time"
	"unique"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/jobs"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// Record stores an outcome, once however often it comes, with what was decided
// for its run and how its job ended, and has the workload's model take account
// of it. After an error it wasn't stored, and whoever sends it keeps it; after
// [record.ErrInvalid] it never will be. [ErrNotYet] tells that it came too early.
func (c *Controller) Record(ctx context.Context, sent *record.Outcome) (store.Receipt, error) {
	if err := c.options.Records.Decisions.WriteProblem(); err != nil { // its decision won't be stored either
		c.counters.outcomeErrors.Add(1)
		return 0, err
	}
	o, err := c.plausible(sent)
	if err != nil {
		return 0, err
	}
	run, err := c.attribute(ctx, &o)
	if err != nil {
		return 0, err
	}
	var submitted int64
	var job *jobs.Job
	if !o.Unmatched && hasJob(&o) {
		if submitted, job, err = c.Jobs.Settle(ctx, &o, run); err != nil {
			return 0, fmt.Errorf("%w: %w", ErrNotYet, err)
		}
	}
	if o.DecisionID == 0 || o.Workload == "" {
		if err := c.attributeLate(ctx, &o, submitted, job); err != nil {
			return 0, err
		}
	}
	c.settings.Load().nodeEnergy(&o)
	receipt, err := c.options.Records.Runs.PutOutcome(ctx, &o)
	if err != nil {
		c.counters.outcomeErrors.Add(1)
		return 0, err
	}
	if receipt == store.Stored {
		c.counters.ran(&o)
		c.noteImplausible(&o)
		c.options.OnOutcome(&o, c.partitionOf(&o, job))
	}
	c.counters.outcomes.Add(1) // last: who sees it finds the rest done
	if receipt == store.Stored && !o.Unmatched && o.Workload != "" {
		c.learner.RunEnded(ctx, &o)
	}
	if receipt == store.Stored && !o.Unmatched && hasJob(&o) && !o.Submitted.IsZero() {
		c.forecasts.JobEnded(o.JobID, o.Submitted)
	}
	if hasJob(&o) {
		c.decider.Release(jobID(&o), o.Node, o.RunID)
	}
	return receipt, nil
}

// plausible is an outcome as it can be: what a sensor or a clock got wrong is set
// aside, and what no agent sends is [record.ErrInvalid].
func (c *Controller) plausible(sent *record.Outcome) (record.Outcome, error) {
	o := *sent
	o.Cluster, o.Implausible = c.options.Cluster, record.Implausible{}
	o, err := o.Canonical()
	if err != nil {
		return o, err
	}
	o.DropImplausible(c.settings.Load().mostPower(o.GPUModel))
	return o, nil
}

// noteImplausible tells of an outcome that came with what can't be.
func (c *Controller) noteImplausible(o *record.Outcome) {
	if o.Implausible.IsZero() {
		return
	}
	c.counters.implausible.Add(1)
	what := fmt.Sprintf("run %s of job %d on %s: %s", o.RunID, o.JobID,
		slurm.Printable(o.Node, epdapi.MaxModelName), o.Implausible.Why)
	c.counters.lastImplausible.Store(&what)
	c.options.Log.Warn("what an outcome says can't be: it is kept, and counts nowhere", "run", o.RunID, "job",
		o.JobID, "node", o.Node, "what", o.Implausible.Why)
}

// attribute gives an outcome its decision: what the controller decided counts,
// not what comes with the outcome. It returns when the run began.
func (c *Controller) attribute(ctx context.Context, o *record.Outcome) (jobs.Run, error) {
	if !hasJob(o) {
		return jobs.Run{Began: o.Started}, nil
	}
	if d := c.decider.Kept(jobID(o), o.Node); d != nil && d.IsOf(o.RunID) {
		id, err := d.StoredID(ctx)
		if err != nil {
			return jobs.Run{}, fmt.Errorf("the decision of run %s isn't stored yet: %w", o.RunID, err)
		}
		o.DecisionID, o.Workload, o.GPUModel, o.Arm = id, d.Workload, d.GPUModel, d.Arm
		if o.Submitted.IsZero() && !d.Submitted().IsZero() {
			o.Submitted, o.Restart = d.Submitted(), int(d.Restarts)
		}
		if o.Submitted.IsZero() { // it was decided before the controller began
			o.Submitted = c.submissionAt(ctx, o.JobID, d.At)
			return jobs.Run{Began: d.At, Submitted: o.Submitted}, nil
		}
		return jobs.Run{Began: d.At, Submitted: d.Submitted()}, nil
	}
	d, err := c.decider.Recorded(ctx, jobID(o), o.Node, o.RunID)
	switch {
	case err != nil:
		return jobs.Run{}, err
	case d == nil:
		o.DecisionID = 0
		return jobs.Run{Began: o.Started}, nil
	}
	o.DecisionID, o.Workload, o.GPUModel, o.Arm = d.ID, d.Workload, d.GPUModel, d.Arm
	if o.Submitted.IsZero() {
		o.Submitted = c.submissionAt(ctx, o.JobID, d.Created)
	}
	return jobs.Run{Began: d.Created, Submitted: o.Submitted}, nil
}

// submissionAt is when the job was submitted that ran under an id at a time, by the
// records; zero: they don't tell.
func (c *Controller) submissionAt(ctx context.Context, id int64, at time.Time) time.Time {
	f := &store.JobFilter{Cluster: c.options.Cluster, ID: id}
	page, err := c.options.Records.Queries.Jobs.Jobs(ctx, f, 0, jobs.MaxSameID)
	if err != nil {
		return time.Time{}
	}
	if i := jobs.At(page.Jobs, at); i >= 0 {
		return page.Jobs[i].Submitted
	}
	return time.Time{}
}

// partitionOf is where a job ran: where it started, for one that names several
// while it waits, or else where Slurm has it; "" if nobody knows any more.
func (c *Controller) partitionOf(o *record.Outcome, job *jobs.Job) string {
	if hasJob(o) {
		d := c.decider.Kept(jobID(o), o.Node)
		if d != nil && d.IsOf(o.RunID) && d.Partition != (unique.Handle[string]{}) {
			return d.Partition.Value()
		}
	}
	if job == nil && hasJob(o) {
		job = c.Jobs.Get(jobID(o))
	}
	if job == nil {
		return ""
	}
	return job.Partition.Value()
}

// attributeLate gives an outcome the workload that wasn't known when its run began:
// nobody decided about it, as the controller was away, or Slurm didn't tell of its
// job in time. By now Slurm does, or the records have the job that ended. What was
// decided stays. Without a decision the agent names the GPU model, and the run was at
// default clocks and is in no arm.
func (c *Controller) attributeLate(
	ctx context.Context, o *record.Outcome, submitted int64, job *jobs.Job,
) error {
	if job == nil && submitted == 0 {
		return nil // nobody tells
	}
	if o.DecisionID == 0 {
		o.GPUModel, o.Arm = c.settings.Load().ModelName(o.GPUModel), live.ArmExcluded
	}
	workload, err := c.workloadOfEnded(ctx, o, submitted, job)
	if err != nil {
		return fmt.Errorf("what run %s of job %d was: %w", o.RunID, o.JobID, err)
	}
	if workload != "" && o.GPUModel != "" {
		o.Workload = workload
	}
	return nil
}

// workloadOfEnded is the workload of an outcome's job, "" if nobody knows it. A job
// that Slurm still knows is recorded as one that ended.
func (c *Controller) workloadOfEnded(
	ctx context.Context, o *record.Outcome, submitted int64, job *jobs.Job,
) (string, error) {
	if job == nil {
		recorded, err := c.Jobs.Recorded(ctx, jobID(o), submitted)
		if err != nil || recorded == nil {
			return "", err
		}
		return recorded.Workload, nil
	}
	known, err := c.Jobs.WithSubmission(ctx, job)
	if err != nil {
		return "", err
	}
	workload := ""
	if gpus := max(int(known.GPUs), len(o.GPUs)); gpus > 0 && known.Source != (jobs.Source{}) {
		workload = known.Source.Workload(gpus)
	}
	if about := known.Record(c.options.Cluster, jobID(o), workload,
		slurm.State(o.ExitState)); about != nil {
		c.decider.WriteJob(about)
	}
	return workload, nil
}

// hasJob reports whether an outcome names a job that there can be.
func hasJob(o *record.Outcome) bool { return o.JobID > 0 && o.JobID <= maxJob }

// jobID is the job of an outcome that has one.
func jobID(o *record.Outcome) slurm.JobID {
	return slurm.JobID(o.JobID) //nolint:gosec // hasJob says so
}

const maxJob = 1<<31 - 1
