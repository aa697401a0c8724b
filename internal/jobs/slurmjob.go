package jobs

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/epplan/epplan/slurm"
)

// named is a job with its id.
type named struct {
	id slurm.JobID
	held
}

// all are the jobs that are known, by id.
func (j *table) all() []named {
	j.mu.RLock()
	list := make([]named, 0, len(j.byID))
	for id, h := range j.byID {
		list = append(list, named{id, h})
	}
	j.mu.RUnlock()
	slices.SortFunc(list, func(a, b named) int { return cmp.Compare(a.id, b.id) })
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

// slurmJob is a job that is known as Slurm would have it.
func (k *Job) Slurm(id slurm.JobID) slurm.Job {
	a, u := k.about.Value(), k.unusual()
	j := slurm.Job{
		ID: id, ArrayJob: u.arrayJob, ArrayTask: int(u.arrayTask), ArrayTasks: u.arrayTasks, HetJob: u.hetJob, HetOffset: int(u.hetOffset),
		Name: k.Name.Value(), Comment: k.Comment.Value(), User: k.User.Value(), UID: k.UID, Account: k.Account.Value(),
		Partition: k.Partition.Value(), QOS: a.qos, State: k.stateOf(), Reason: a.reason, Nice: int64(k.nice),
		TimeLimit: k.Limit, Submit: timeOf(k.Submitted), Start: timeOf(u.start), Deadline: timeOf(k.Deadline),
		Restarts: int(k.Restarts), NodeList: u.nodeList, NodeCount: int(k.Nodes), Features: a.features, Prefer: a.prefer,
		GPUFreq: a.gpuFreq, TRESPerNode: a.perNode, Requested: tresOf(a.requested), Allocated: tresOf(a.allocated),
	}
	if k.Token != "" {
		j.AdminComment, _ = slurm.MergeToken("", k.Token)
	}
	j.Nodes, _ = slurm.ExpandHostlist(j.NodeList) // it was read from one
	return j
}

// arrayID is which task of an array a job is, such as 4_3; "" if it is none.
func (k *Job) ArrayID() string {
	if r := k.unusual(); r.arrayJob != 0 && r.arrayTask >= 0 {
		return fmt.Sprintf("%d_%d", r.arrayJob, r.arrayTask)
	}
	return ""
}

// tasks is how many tasks of an array a job stands for: 1 where it isn't of one.
func (k *Job) Tasks() int {
	n, ok := slurm.CountArrayTasks(k.unusual().arrayTasks)
	if !ok {
		return 1
	}
	return n
}

// tresPerNode is what a job asks for on each node, as Slurm says it.
func (k *Job) TRESPerNode() string { return k.about.Value().perNode }

// start is when a job started, of one that waits when it is planned to; zero: that
// isn't known.
func (k *Job) Start() time.Time { return timeOf(k.unusual().start) }
