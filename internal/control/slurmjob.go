package control

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
func (j *jobTable) all() []named {
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
func (t *tracker) All() iter.Seq2[slurm.JobID, *knownJob] {
	return func(yield func(slurm.JobID, *knownJob) bool) {
		for _, j := range t.table.all() {
			if !yield(j.id, j.job) {
				return
			}
		}
	}
}

// slurmJob is a job that is known as Slurm would have it.
func (k *knownJob) slurmJob(id slurm.JobID) slurm.Job {
	a, u := k.about.Value(), k.unusual()
	j := slurm.Job{
		ID: id, ArrayJob: u.arrayJob, ArrayTask: int(u.arrayTask), ArrayTasks: u.arrayTasks, HetJob: u.hetJob, HetOffset: int(u.hetOffset),
		Name: k.name.Value(), Comment: k.comment.Value(), User: k.user.Value(), UID: k.uid, Account: k.account.Value(),
		Partition: k.partition.Value(), QOS: a.qos, State: k.stateOf(), Reason: a.reason, Nice: int64(k.nice),
		TimeLimit: k.limit, Submit: timeOf(k.submitted), Start: timeOf(u.start), Deadline: timeOf(k.deadline),
		Restarts: int(k.restarts), NodeList: u.nodeList, NodeCount: int(k.nodes), Features: a.features, Prefer: a.prefer,
		GPUFreq: a.gpuFreq, TRESPerNode: a.perNode, Requested: tresOf(a.requested), Allocated: tresOf(a.allocated),
	}
	if k.token != "" {
		j.AdminComment, _ = slurm.MergeToken("", k.token)
	}
	j.Nodes, _ = slurm.ExpandHostlist(j.NodeList) // it was read from one
	return j
}

// arrayID is which task of an array a job is, such as 4_3; "" if it is none.
func (k *knownJob) arrayID() string {
	if r := k.unusual(); r.arrayJob != 0 && r.arrayTask >= 0 {
		return fmt.Sprintf("%d_%d", r.arrayJob, r.arrayTask)
	}
	return ""
}

// tasks is how many tasks of an array a job stands for: 1 where it isn't of one.
func (k *knownJob) tasks() int {
	n, ok := slurm.CountArrayTasks(k.unusual().arrayTasks)
	if !ok {
		return 1
	}
	return n
}

// tresPerNode is what a job asks for on each node, as Slurm says it.
func (k *knownJob) tresPerNode() string { return k.about.Value().perNode }

// start is when a job started, of one that waits when it is planned to; zero: that
// isn't known.
func (k *knownJob) start() time.Time { return timeOf(k.unusual().start) }
