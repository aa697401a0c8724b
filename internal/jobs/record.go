package jobs

import (
	"context"
	"time"

	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// Record returns a job as the store keeps it, in a state and of a workload; nil where Slurm
// said too little of it.
func (job *Job) Record(cluster string, id slurm.JobID, workload string, state slurm.State) *record.Job {
	if job.Submitted == 0 {
		return nil
	}
	j := &record.Job{
		Cluster: cluster, ID: int64(id), Submitted: time.Unix(job.Submitted, 0).UTC(), Token: job.Token,
		User: job.User.Value(), Account: job.Account.Value(), Partition: job.Partition.Value(),
		Name:     []byte(job.Name),
		Workload: workload, Nodes: int(job.Nodes), GPUs: int(job.GPUs), State: string(state),
		Limit: job.Limit,
	}
	if r := job.rareParts(); r.arrayJob != 0 && r.arrayTask >= 0 {
		j.ArrayJob, j.ArrayTask = int64(r.arrayJob), int(r.arrayTask)
	}
	if job.Scripted {
		j.ScriptHash = job.Source.String()
	}
	return j
}

// LiveRecord returns a job as the store keeps it, in the state that Slurm says; nil as for
// [Job.Record].
func (job *Job) LiveRecord(cluster string, id slurm.JobID) *record.Job {
	return job.Record(cluster, id, job.Workload(), job.state.state())
}

// Workload returns the key of a job's workload on its GPUs, "" if it isn't known.
func (job *Job) Workload() string {
	if job.Source == (Source{}) || job.GPUs == 0 {
		return ""
	}
	return job.Source.Workload(int(job.GPUs))
}

// WorkloadOfEnded returns the workload of a settled outcome's job, "" if nobody knows it. A job
// that Slurm still knows is recorded as one that ended.
func (t *Tracker) WorkloadOfEnded(
	ctx context.Context, id slurm.JobID, o *record.Outcome, submitted int64, job *Job,
) (string, error) {
	if job == nil {
		recorded, err := t.options.recordedJob(ctx, id, submitted)
		if err != nil || recorded == nil {
			return "", err
		}
		return recorded.Workload, nil
	}
	known, err := t.WithSubmission(ctx, job)
	if err != nil {
		return "", err
	}
	workload := ""
	if gpus := max(int(known.GPUs), len(o.GPUs)); gpus > 0 && known.Source != (Source{}) {
		workload = known.Source.Workload(gpus)
	}
	if about := known.Record(t.options.Cluster, id, workload, slurm.State(o.ExitState)); about != nil {
		t.options.Write(about)
	}
	return workload, nil
}

// MaxSameID is how many submissions under one id are told apart. Ids come again, and a
// job that is requeued is submitted anew.
const MaxSameID = 100

// recordedJob returns what the records have of a job, by its submission too, nil: nothing.
func (o *Options) recordedJob(
	ctx context.Context,
	id slurm.JobID,
	submitted int64,
) (*store.ListedJob, error) {
	all, err := o.submissions(ctx, id)
	for i := range all {
		if all[i].Submitted.Unix() == submitted {
			return &all[i], nil
		}
	}
	return nil, err
}

// submissions returns what the records have under a job's number.
func (o *Options) submissions(ctx context.Context, id slurm.JobID) ([]store.ListedJob, error) {
	page, err := o.Records.JobRows(ctx, &store.JobFilter{Cluster: o.Cluster, ID: int64(id)}, 0, MaxSameID)
	return page.Jobs, err
}

// recordedTask returns the number under which the records have a task of an array, the last submission of
// several; 0: they have none.
func (o *Options) recordedTask(ctx context.Context, array slurm.JobID, task int) (slurm.JobID, error) {
	page, err := o.Records.JobRows(ctx,
		&store.JobFilter{Cluster: o.Cluster, ArrayJob: int64(array), ArrayTask: task}, 0, 1)
	if err != nil || len(page.Jobs) == 0 {
		return 0, err
	}
	return slurm.JobID(page.Jobs[0].ID), nil //nolint:gosec // ids of Slurm's have 32 bits
}

// SubmittedAt returns the job that ran under a number at a time, by the records; nil: they don't tell.
func (t *Tracker) SubmittedAt(ctx context.Context, id slurm.JobID, at time.Time) *record.Job {
	rows, _ := t.options.submissions(ctx, id) // there are none then
	all := make([]record.Job, len(rows))
	for i := range rows {
		all[i] = rows[i].Job
	}
	if i := IndexAt(all, at); i >= 0 {
		return &all[i]
	}
	return nil
}

// IndexAt returns the index of the job of an id that was submitted last by a time; -1: none was.
func IndexAt(all []record.Job, t time.Time) int {
	latest := -1
	for i := range all {
		s := all[i].Submitted
		if !s.After(t) && (latest < 0 || s.After(all[latest].Submitted)) {
			latest = i
		}
	}
	return latest
}
