package slurmqueue

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/join"
	"github.com/epplan/epplan/queue"
	"github.com/epplan/epplan/slurm"
)

// Batch is what waits in Slurm's queue and can be planned. A record of an array
// is a job for each of its tasks.
type Batch struct {
	Jobs         []queue.Job
	RecordOf     []QueueRecord // by job: of which record it is
	PartitionsOf [][]string    // by job: partitions that it may run in; nil: any
	Unasked      int           // tasks that weren't asked for
	// Jobs without model and prediction: at default clocks for as long as their limit.
	Unknown int
	Left    Unplannable
	Running Running

	cluster     *planner.Cluster
	catalog     join.Catalog
	plannable   []queuedRecord
	runningJobs []runningJob // what runs, as far as the cluster has room for it
}

// queuedRecord is a record that can be planned, with how many tasks of it are.
type queuedRecord struct {
	job    queue.Job
	of     QueueRecord
	within []string
	tasks  int
	array  *epdapi.QueuedJob // nil: it is none
}

// QueueRecord is a job of Slurm's as it lists it.
type QueueRecord struct {
	ID        slurm.JobID
	Waited    float64 // seconds since it was submitted
	Partition string  // or several, with commas between
	Slowdown  float64 // how much longer it may run, by its user's wish; 0: not stated
}

// Unplannable counts jobs that can't be planned, by reason.
type Unplannable struct {
	Held    int      // held, or not due yet: they wait for a time, for other jobs, or for another request
	Names   []string // of these, with Slurm's reason, a record each
	Several int      // on several nodes that don't have equal parts of it
	Endless int      // without model, prediction and time limit
	Many    int      // beyond what epd lists
}

// Running counts jobs that run, and the GPUs they hold. The cluster may have no room for
// some of these.
type Running struct{ Jobs, GPUs, Without int }

// maxArrayTasks is how many tasks of one array a plan of the whole queue takes.
const maxArrayTasks = 10_000

// NewBatch takes the jobs of a queue that wait, in its order. Of each array it
// takes 10,000 tasks at most; the others are among those left out.
//
// The cluster's node classes get the partitions that they are in; nil: those aren't known, and any job may
// run anywhere.
func NewBatch(q *epdapi.Queue, cluster *planner.Cluster, partitions [][]string, catalog join.Catalog) *Batch {
	within := *q
	within.Jobs = slices.Clone(q.Jobs)
	for i := range within.Jobs {
		j := &within.Jobs[i]
		beyond := max(0, j.Tasks-maxArrayTasks)
		j.Tasks, within.LeftOut = j.Tasks-beyond, within.LeftOut+beyond
	}
	return batchOf(&within, cluster, partitions, catalog, 0)
}

// batchOf is [NewBatch] with so many tasks at most, those that wait longest; 0: all.
// The tasks of an array that aren't among them take no memory.
func batchOf(
	q *epdapi.Queue, cluster *planner.Cluster, partitions [][]string, catalog join.Catalog, most int,
) *Batch {
	for class := range partitions {
		cluster.Classes[class].Partitions = partitions[class]
	}
	b := &Batch{cluster: cluster, catalog: catalog}
	for i := range q.Jobs {
		b.add(&q.Jobs[i])
	}
	b.Left.Many += q.LeftOut
	b.addRunning(q)
	if most > 0 {
		b.keepLongestWaiting(most)
	}
	for i := range b.plannable {
		f := &b.plannable[i]
		if f.tasks == 0 {
			continue
		}
		names := f.taskNames()
		for k := range f.tasks {
			task := f.job
			if names != nil {
				task.ID = names(k)
			}
			b.Jobs, b.RecordOf, b.PartitionsOf = append(b.Jobs, task), append(b.RecordOf, f.of),
				append(b.PartitionsOf, f.within)
		}
	}
	b.plannable = nil
	return b
}

// taskNames returns those of the tasks of an array; nil: it is none. Slurm's own where its list
// says which they are.
func (f *queuedRecord) taskNames() func(task int) string {
	if f.array == nil {
		return nil
	}
	if list, _, err := slurm.ParseArrayTasks(f.array.ArrayTasks); err == nil && len(list) >= f.tasks &&
		f.array.ArrayJob > 0 {
		return func(task int) string { return fmt.Sprintf("%d_%d", f.array.ArrayJob, list[task]) }
	}
	return func(task int) string { return fmt.Sprintf("%d/%d", f.of.ID, task+1) }
}

// keepLongestWaiting leaves so many tasks, those that wait longest.
func (b *Batch) keepLongestWaiting(most int) {
	oldest := make([]*queuedRecord, len(b.plannable))
	for i := range b.plannable {
		oldest[i] = &b.plannable[i]
	}
	slices.SortStableFunc(oldest, func(x, y *queuedRecord) int {
		return cmp.Compare(y.of.Waited, x.of.Waited)
	})
	for _, f := range oldest {
		beyond := max(0, f.tasks-most)
		f.tasks -= beyond
		most -= f.tasks
		b.Unasked += beyond
	}
}

// add takes a job if it can be planned; one without GPUs is none of ours.
func (b *Batch) add(q *epdapi.QueuedJob) {
	tasks := max(1, q.Tasks)
	responses := b.responses(q)
	_, limited := q.Limit.Duration()
	_, predicted := q.RuntimeS.Get()
	switch {
	case q.GPUs < 1:
		return
	case q.State != string(slurm.Pending):
		b.Running.Jobs++
		b.Running.GPUs += q.GPUs
		return
	case q.Held:
		b.Left.Held += tasks
		b.Left.Names = append(b.Left.Names, recordText(q))
		return
	case q.Nodes > 1 && (q.GPUs%q.Nodes != 0 || q.Shared):
		b.Left.Several += tasks
		return
	case len(responses) == 0 && !predicted && !limited:
		b.Left.Endless += tasks
		return
	case len(responses) == 0 && !predicted:
		b.Unknown += tasks
	}
	job := jobOf(q, responses)
	record := QueueRecord{
		ID: slurm.JobID(q.ID), Waited: q.AgeS.Or(0), //nolint:gosec // it was one of Slurm's
		Partition: q.Partition, Slowdown: q.Slowdown,
	}
	f := queuedRecord{job: job, of: record, tasks: tasks}
	if q.Partition != "" {
		f.within = strings.Split(q.Partition, ",")
	}
	if q.Tasks > 1 || q.ArrayJob > 0 {
		f.array = q
	}
	b.plannable = append(b.plannable, f)
}

// Text returns the records that are held or not due yet, a few of them by name.
func (l *Unplannable) Text() string {
	const most = 10
	text := "held or not due yet: " + strings.Join(l.Names[:min(most, len(l.Names))], ", ")
	if more := len(l.Names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// recordText returns a record by its number and why it waits.
func recordText(q *epdapi.QueuedJob) string {
	id := strconv.FormatInt(q.ID, 10)
	if q.ArrayJob > 0 && q.ArrayTasks != "" {
		id = fmt.Sprintf("%d_[%s]", q.ArrayJob, q.ArrayTasks)
	}
	if q.Reason == "" {
		return id
	}
	return id + " (" + q.Reason + ")"
}

// jobOf returns a job as a batch file would have it.
func jobOf(q *epdapi.QueuedJob, responses []modelResponse) queue.Job {
	job := queue.NewJob(strconv.FormatInt(q.ID, 10))
	job.User, job.Name = q.User, q.Name
	job.RuntimeModel = queue.AnyModel // a prediction or a limit is of wherever it runs
	job.GPUs = []queue.GPUCount{{Model: q.GPUModel, Count: q.GPUs}}
	if q.Nodes > 1 { // one is what Slurm says of a job that doesn't say
		job.Nodes = q.Nodes
	}
	job.Limit = q.Limit.Seconds()
	if d, ok := q.DeadlineS.Get(); ok {
		job.Deadline = max(1, d) // one that is over can't be met
	}
	runtime, predicted := q.RuntimeS.Get()
	switch {
	case len(responses) == 0 && predicted:
		job.Runtime, job.Power = min(runtime, job.Limit), q.PowerW.Or(0)
	case len(responses) == 0:
		job.Runtime = job.Limit
	case q.HandsOff:
		for i := range responses {
			at := responses[i].Default()
			job.Measured = append(job.Measured, queue.Measured{
				Model: responses[i].model, Runtime: at.Time, Power: float64(at.Power),
			})
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

// responses returns those of a job on the cluster's GPU models that it may use, by name.
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
		if r, err := b.catalog.Workload(q.Workload, name); err == nil && r != nil &&
			!math.IsNaN(r.Default().Time) {
			all = append(all, modelResponse{r, name})
		}
	}
	slices.SortFunc(all, func(x, y modelResponse) int { return cmp.Compare(x.model, y.model) })
	return all
}

// byWait returns the places of the jobs, those that have waited longest first.
func (b *Batch) byWait() []int {
	all := make([]int, len(b.Jobs))
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, func(x, y int) int {
		return cmp.Compare(b.RecordOf[y].Waited, b.RecordOf[x].Waited)
	})
	return all
}
