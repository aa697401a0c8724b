package jobs

import (
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// record is a job as the store keeps it, in a state and of a workload; nil where Slurm
// said too little of it.
func (k *Job) Record(cluster string, id slurm.JobID, workload string, state slurm.State) *record.Job {
	if k.Submitted == 0 {
		return nil
	}
	j := &record.Job{
		Cluster: cluster, ID: int64(id), Submitted: time.Unix(k.Submitted, 0).UTC(), Token: k.Token,
		User: k.User.Value(), Account: k.Account.Value(), Partition: k.Partition.Value(), Name: []byte(k.Name.Value()),
		Workload: workload, Nodes: int(k.Nodes), GPUs: int(k.GPUs), State: string(state), Limit: k.Limit,
	}
	if k.Scripted {
		j.ScriptHash = k.Source.String()
	}
	return j
}

// liveRecord is a job that Slurm has as a record would have it.
func (k *Job) LiveRecord(cluster string, id slurm.JobID) *record.Job {
	return k.Record(cluster, id, k.Workload(), k.state.state())
}

// workload is the key of a job's workload on its GPUs, "" if it isn't known.
func (k *Job) Workload() string {
	if k.Source == (Source{}) || k.GPUs == 0 {
		return ""
	}
	return k.Source.Workload(int(k.GPUs))
}
