package control

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/epplan/epplan/slurm"
)

// Snapshot is what is known of the cluster.
type Snapshot struct {
	At      time.Time   // when Slurm was asked for the jobs; zero: it never answered
	Jobs    []slurm.Job // pending and running ones, by id; without exit codes and devices, and of comments only the wishes
	NodesAt time.Time   // as At
	Nodes   []slurm.Node
}

// Snapshot is what the last syncs and the questions since found. It takes about
// 1 kB for each job: [Controller.Queued] takes one at a time.
func (c *Controller) Snapshot() Snapshot {
	known, _ := c.jobs.len()
	s := Snapshot{At: c.synced.jobs.status().At, NodesAt: c.synced.nodes.status().At, Jobs: make([]slurm.Job, 0, known)}
	for j := range c.Queued() {
		s.Jobs = append(s.Jobs, *j)
	}
	c.synced.mu.Lock()
	defer c.synced.mu.Unlock()
	s.Nodes = slices.Clone(c.synced.nodeList)
	return s
}

// Queued goes through the pending and running jobs by id.
func (c *Controller) Queued() iter.Seq[*slurm.Job] {
	return func(yield func(*slurm.Job) bool) {
		for _, j := range c.jobs.all() {
			job := j.job.slurmJob(j.id)
			job.Priority = j.priority
			if !yield(&job) {
				return
			}
		}
	}
}

// named is a job with its id.
type named struct {
	id slurm.JobID
	held
}

// all are the jobs that are known, by id.
func (j *jobs) all() []named {
	j.mu.RLock()
	list := make([]named, 0, len(j.byID))
	for id, h := range j.byID {
		list = append(list, named{id, h})
	}
	j.mu.RUnlock()
	slices.SortFunc(list, func(a, b named) int { return cmp.Compare(a.id, b.id) })
	return list
}

// slurmJob is a job that is known as Slurm would have it.
func (k *knownJob) slurmJob(id slurm.JobID) slurm.Job {
	a, u := k.about.Value(), k.unusual()
	j := slurm.Job{
		ID: id, ArrayJob: u.arrayJob, ArrayTask: u.arrayTask, ArrayTasks: u.arrayTasks, HetJob: u.hetJob, HetOffset: u.hetOffset,
		Name: k.name.Value(), Comment: k.comment.Value(), User: k.user.Value(), UID: k.uid, Account: k.account.Value(),
		Partition: k.partition.Value(), QOS: a.qos, State: k.stateOf(), Reason: a.reason, Nice: int64(k.nice),
		TimeLimit: slurmLimit(k.limit), Submit: timeOf(k.submitted), Start: timeOf(u.start), Deadline: timeOf(k.deadline),
		Restarts: int(k.restarts), NodeList: u.nodeList, NodeCount: int(k.nodes), Features: a.features, Prefer: a.prefer,
		GPUFreq: a.gpuFreq, TRESPerNode: a.perNode, Requested: tresOf(a.requested), Allocated: tresOf(a.allocated),
	}
	if k.token != "" {
		j.AdminComment, _ = slurm.MergeToken("", k.token)
	}
	j.Nodes, _ = slurm.ExpandHostlist(j.NodeList) // it was read from one
	return j
}
