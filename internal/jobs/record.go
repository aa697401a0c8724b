package jobs

import (
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// Record is a job as the store keeps it, in a state and of a workload; nil where Slurm
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
	if job.Scripted {
		j.ScriptHash = job.Source.String()
	}
	return j
}

// LiveRecord is a job as the store keeps it, in the state that Slurm says; nil as for
// [Job.Record].
func (job *Job) LiveRecord(cluster string, id slurm.JobID) *record.Job {
	return job.Record(cluster, id, job.Workload(), job.state.state())
}

// Workload is the key of a job's workload on its GPUs, "" if it isn't known.
func (job *Job) Workload() string {
	if job.Source == (Source{}) || job.GPUs == 0 {
		return ""
	}
	return job.Source.Workload(int(job.GPUs))
}

// MaxSameID is how many submissions under one id are told apart. Ids come again, and a
// job that is requeued is submitted anew.
const MaxSameID = 100

// At is the index of the job of an id that was submitted last by a time; -1: none was.
func At(all []record.Job, t time.Time) int {
	latest := -1
	for i := range all {
		s := all[i].Submitted
		if !s.After(t) && (latest < 0 || s.After(all[latest].Submitted)) {
			latest = i
		}
	}
	return latest
}
