package jobs

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/epplan/epplan/slurm"
)

// namedJob is a job with its id.
type namedJob struct {
	id slurm.JobID
	knownJob
}

// all returns the jobs that are known, by id.
func (j *table) all() []namedJob {
	j.mu.RLock()
	list := make([]namedJob, 0, len(j.byID))
	for id, h := range j.byID {
		list = append(list, namedJob{id, h})
	}
	j.mu.RUnlock()
	slices.SortFunc(list, func(a, b namedJob) int { return cmp.Compare(a.id, b.id) })
	return list
}

// All goes through the jobs that are known, by id.
func (t *Tracker) All() iter.Seq2[slurm.JobID, *Job] {
	return func(yield func(slurm.JobID, *Job) bool) {
		for _, j := range t.table.all() {
			if !yield(j.id, j.job) {
				return
			}
		}
	}
}

// Slurm returns a job as Slurm would have it.
func (job *Job) Slurm(id slurm.JobID) slurm.Job {
	a, u := job.about.Value(), job.rareParts()
	j := slurm.Job{
		ID: id, ArrayJob: u.arrayJob, ArrayTask: int(u.arrayTask), ArrayTasks: u.arrayTasks, HetJob: u.hetJob,
		HetOffset: int(u.hetOffset),
		Name:      job.Name, Comment: job.Comment.Value(), User: job.User.Value(), UID: job.UID,
		Account:   job.Account.Value(),
		Partition: job.Partition.Value(), QOS: a.qos, State: job.stateOf(), Reason: a.reason,
		Nice:      int64(job.nice),
		TimeLimit: job.Limit, Submit: timeOf(job.Submitted), Start: timeOf(u.start),
		Deadline: timeOf(u.deadline),
		Restarts: int(job.Restarts()), NodeList: u.nodeList, NodeCount: int(job.Nodes), Features: a.features,
		Prefer:  a.prefer,
		GPUFreq: a.gpuFreq, TRESPerNode: a.perNode, Requested: tresOf(a.requested),
		Allocated: tresOf(a.allocated),
	}
	if job.Token != "" {
		j.AdminComment, _ = slurm.MergeToken("", job.Token)
	}
	j.Nodes, _ = slurm.ExpandHostlist(j.NodeList) // it was read from one
	return j
}

// State returns the job's state as Slurm said last.
func (job *Job) State() slurm.State { return job.state.state() }

// Array returns the number of the array that the job is a task of; 0: of none.
func (job *Job) Array() slurm.JobID { return job.rareParts().arrayJob }

// ArrayID returns the task of an array that a job is, such as 4_3, or the tasks that wait under its number,
// 4_[3-7]; "" if it is of no array.
func (job *Job) ArrayID() string {
	switch r := job.rareParts(); {
	case r.arrayJob == 0:
		return ""
	case r.arrayTasks != "":
		return fmt.Sprintf("%d_[%s]", r.arrayJob, r.arrayTasks)
	case r.arrayTask >= 0:
		return fmt.Sprintf("%d_%d", r.arrayJob, r.arrayTask)
	}
	return ""
}

// Tasks returns how many tasks of an array a job stands for: 1 where it isn't of one.
func (job *Job) Tasks() int {
	n, ok := slurm.CountArrayTasks(job.rareParts().arrayTasks)
	if !ok {
		return 1
	}
	return n
}

// WaitsForTurn reports whether a job that waits does so for GPUs, or for its turn to have them.
func (job *Job) WaitsForTurn() bool {
	return (&slurm.Job{Reason: job.about.Value().reason}).WaitKind() == slurm.WaitTurn
}

// IsDue reports whether a job that waits could start as it is, if limits and what is free let it.
func (job *Job) IsDue() bool {
	kind := (&slurm.Job{Reason: job.about.Value().reason}).WaitKind()
	return kind == slurm.WaitTurn || kind == slurm.WaitElse
}

// TRESPerNode returns what a job asks for on each node, as Slurm says it.
func (job *Job) TRESPerNode() string { return job.about.Value().perNode }

// Start returns when a job started, of one that waits when it is planned to; zero: that
// isn't known.
func (job *Job) Start() time.Time { return timeOf(job.rareParts().start) }
