package slurmqueue

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/queue"
	"github.com/epplan/epplan/slurm"
)

// Batch is what waits in Slurm's queue and can be planned. A record of an array
// is a job for each of its tasks.
type Batch struct {
	Jobs    []queue.Job
	Of      []Record // by job: of which record it is
	Beyond  int      // tasks that weren't asked for
	Unknown int      // jobs without model and prediction: at default clocks for as long as their limit
	Left    Left
	Running Running

	cluster *planner.Cluster
	catalog planner.Catalog
	found   []found
}

// found is a record that can be planned, with how many tasks of it are.
type found struct {
	job   queue.Job
	of    Record
	tasks int
	array bool
}

// Record is a job of Slurm's as it lists it.
type Record struct {
	ID     slurm.JobID
	Waited float64 // seconds since it was submitted
}

// Left counts jobs that can't be planned, by reason.
type Left struct {
	Held    int // held, or not due yet
	Several int // on several nodes
	Endless int // without model, prediction and time limit
	Many    int // beyond what epd lists
}

// Running counts jobs that run, and the GPUs they hold.
type Running struct{ Jobs, GPUs int }

// arrayTasks is how many tasks of one array a plan of the whole queue takes.
const arrayTasks = 10_000

// NewBatch takes the jobs of a queue that wait, in its order. Of each array it
// takes 10,000 tasks at most; the others are among those left out.
func NewBatch(q *epdapi.Queue, cluster *planner.Cluster, catalog planner.Catalog) *Batch {
	within := *q
	within.Jobs = slices.Clone(q.Jobs)
	for i := range within.Jobs {
		j := &within.Jobs[i]
		beyond := max(0, j.Tasks-arrayTasks)
		j.Tasks, within.LeftOut = j.Tasks-beyond, within.LeftOut+beyond
	}
	return batchOf(&within, cluster, catalog, 0)
}

// batchOf is [NewBatch] with so many tasks at most, those that wait longest; 0: all.
// The tasks of an array that aren't among them take no memory.
func batchOf(q *epdapi.Queue, cluster *planner.Cluster, catalog planner.Catalog, most int) *Batch {
	b := &Batch{cluster: cluster, catalog: catalog}
	for i := range q.Jobs {
		b.add(&q.Jobs[i])
	}
	b.Left.Many += q.LeftOut
	if most > 0 {
		b.keep(most)
	}
	for i := range b.found {
		f := &b.found[i]
		for k := range f.tasks {
			task := f.job
			if f.array {
				task.ID = fmt.Sprintf("%d/%d", f.of.ID, k+1)
			}
			b.Jobs, b.Of = append(b.Jobs, task), append(b.Of, f.of)
		}
	}
	b.found = nil
	return b
}

// keep leaves so many tasks, those that wait longest.
func (b *Batch) keep(most int) {
	oldest := make([]*found, len(b.found))
	for i := range b.found {
		oldest[i] = &b.found[i]
	}
	slices.SortStableFunc(oldest, func(x, y *found) int { return cmp.Compare(y.of.Waited, x.of.Waited) })
	for _, f := range oldest {
		beyond := max(0, f.tasks-most)
		f.tasks -= beyond
		most -= f.tasks
		b.Beyond += beyond
	}
}

// add takes a job if it can be planned.
func (b *Batch) add(q *epdapi.QueuedJob) {
	tasks := max(1, q.Tasks)
	responses := b.responses(q)
	_, limited := q.LimitS.Get()
	_, predicted := q.RuntimeS.Get()
	switch {
	case q.State != string(slurm.Pending):
		b.Running.Jobs++
		b.Running.GPUs += q.GPUs
		return
	case q.Held:
		b.Left.Held += tasks
		return
	case q.Nodes > 1:
		b.Left.Several += tasks
		return
	case len(responses) == 0 && !predicted && !limited:
		b.Left.Endless += tasks
		return
	case len(responses) == 0 && !predicted:
		b.Unknown += tasks
	}
	job := jobOf(q, responses)
	record := Record{ID: slurm.JobID(q.ID), Waited: q.AgeS.Or(0)} //nolint:gosec // it was one of Slurm's
	b.found = append(b.found, found{job: job, of: record, tasks: tasks, array: q.Tasks > 1})
}

// jobOf is a job as a batch file would have it.
func jobOf(q *epdapi.QueuedJob, responses []modelResponse) queue.Job {
	job := queue.NewJob(strconv.FormatInt(q.ID, 10))
	job.User, job.Name = q.User, q.Name
	job.RuntimeModel = queue.AnyModel // a prediction or a limit is of wherever it runs
	job.GPUs = []queue.GPUCount{{Model: q.GPUModel, Count: q.GPUs}}
	limit, limited := q.LimitS.Get()
	if limited {
		job.Limit = limit
	}
	if d, ok := q.DeadlineS.Get(); ok {
		job.Deadline = max(1, d) // one that is over can't be met
	}
	runtime, predicted := q.RuntimeS.Get()
	switch {
	case len(responses) == 0 && predicted:
		job.Runtime, job.Power = min(runtime, job.Limit), q.PowerW.Or(0)
	case len(responses) == 0:
		job.Runtime = limit
	case q.HandsOff:
		for i := range responses {
			at := responses[i].Default()
			job.Measured = append(job.Measured, queue.Measured{Model: responses[i].model, Runtime: at.Time, Power: float64(at.Power)})
		}
	default:
		job.Workload = q.Workload
	}
	return job
}

// modelResponse is how a job responds on a GPU model.
type modelResponse struct {
	dvfsmodel.Response
	model string
}

// responses are those of a job on the cluster's GPU models that it may use, by name.
func (b *Batch) responses(q *epdapi.QueuedJob) []modelResponse {
	if q.Workload == "" {
		return nil
	}
	var all []modelResponse
	var seen []string
	for i := range b.cluster.Classes {
		name := b.cluster.Classes[i].Model
		if slices.Contains(seen, name) || q.GPUModel != "" && q.GPUModel != name {
			continue
		}
		seen = append(seen, name)
		if r, err := b.catalog.Workload(q.Workload, name); err == nil && r != nil && !math.IsNaN(r.Default().Time) {
			all = append(all, modelResponse{r, name})
		}
	}
	slices.SortFunc(all, func(x, y modelResponse) int { return cmp.Compare(x.model, y.model) })
	return all
}

// longest are the places of the jobs, those that have waited longest first.
func (b *Batch) longest() []int {
	all := make([]int, len(b.Jobs))
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, func(x, y int) int { return cmp.Compare(b.Of[y].Waited, b.Of[x].Waited) })
	return all
}
