package control

import (
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// record is a job as the store keeps it, in a state and of a workload; nil where Slurm
// said too little of it.
func (k *knownJob) record(cluster string, id slurm.JobID, workload string, state slurm.State) *record.Job {
	if k.submitted == 0 {
		return nil
	}
	j := &record.Job{
		Cluster: cluster, ID: int64(id), Submitted: time.Unix(k.submitted, 0).UTC(), Token: k.token,
		User: k.user.Value(), Account: k.account.Value(), Partition: k.partition.Value(), Name: []byte(k.name.Value()),
		Workload: workload, Nodes: int(k.nodes), GPUs: int(k.gpus), State: string(state), Limit: k.limit,
	}
	if k.scripted {
		j.ScriptHash = k.source.String()
	}
	return j
}

// liveRecord is a job that Slurm has as a record would have it.
func (k *knownJob) liveRecord(cluster string, id slurm.JobID) *record.Job {
	return k.record(cluster, id, k.workload(), k.state.state())
}

// workload is the key of a job's workload on its GPUs, "" if it isn't known.
func (k *knownJob) workload() string {
	if k.source == (source{}) || k.gpus == 0 {
		return ""
	}
	return k.source.workload(int(k.gpus))
}
