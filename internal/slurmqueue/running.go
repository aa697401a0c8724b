package slurmqueue

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/slurm"
)

// runningJob is a job that runs, or its part on one node.
type runningJob struct {
	id                 string
	class              int
	gpus               int
	elapsed, remaining float64 // seconds
}

// remainingShare is what a job is taken to need yet at least, as a part of what it ran, and minRemaining
// up to how much of that one is that is about to reach its limit, in seconds.
const (
	remainingShare = 0.02
	minRemaining   = 60
)

// addRunning notes the jobs that hold GPUs of which the model is known, as far as the
// cluster has room for them: those with most GPUs on a node first.
func (b *Batch) addRunning(q *epdapi.Queue) {
	var all []runningJob
	var jobs []*epdapi.QueuedJob // of which they are, each
	for i := range q.Jobs {
		j := &q.Jobs[i]
		if j.State == string(slurm.Pending) || j.GPUs < 1 {
			continue
		}
		ran := j.AgeS.Or(0)
		r := runningJob{id: fmt.Sprintf("%d (runs)", j.ID), elapsed: ran, remaining: b.remainingTime(j, ran)}
		parts := min(max(1, j.Nodes), j.GPUs)
		for part := range max(0, parts-j.NodesAway) {
			if r.gpus = j.GPUs / parts; part < j.GPUs%parts {
				r.gpus++
			}
			if parts > 1 {
				r.id = fmt.Sprintf("%d (runs, part %d)", j.ID, part+1)
			}
			all, jobs = append(all, r), append(jobs, j)
		}
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(all[y].gpus, all[x].gpus) })
	rooms := make([][]int, len(b.cluster.Classes)) // free GPUs of the nodes in use, by class
	for _, i := range order {
		r := &all[i]
		if r.class = b.classWith(jobs[i], r.gpus, rooms); r.class < 0 {
			b.Running.Without += r.gpus
			continue
		}
		b.runningJobs = append(b.runningJobs, *r)
	}
}

// remainingTime returns how long a job still runs.
func (b *Batch) remainingTime(j *epdapi.QueuedJob, ran float64) float64 {
	rest, limited := j.EndsS.Get()
	expected, known := j.RuntimeS.Get()
	if responses := b.responses(j); len(responses) > 0 {
		expected, known = responses[0].Default().Time, true
	}
	// One that is longer than expected by so much is taken to need as much again.
	if left := max(math.Abs(expected-ran), remainingShare*ran); known && (!limited || left < rest) {
		rest = left
	}
	return max(rest, min(minRemaining, max(1, remainingShare*ran)))
}

// classWith returns the first class in a job's partition, of the GPU model that it runs on where that is
// known, with a node on which so many GPUs are free, which it takes; -1: none.
func (b *Batch) classWith(j *epdapi.QueuedJob, gpus int, rooms [][]int) int {
	for i := range b.cluster.Classes {
		k := &b.cluster.Classes[i]
		if j.GPUModel != "" && k.Model != j.GPUModel || k.GPUs < gpus ||
			j.Partition != "" && len(k.Partitions) > 0 && !slices.Contains(k.Partitions, j.Partition) {
			continue
		}
		node := slices.IndexFunc(rooms[i], func(free int) bool { return free >= gpus })
		if node < 0 && (k.Count == 0 || len(rooms[i]) < k.Count) {
			node, rooms[i] = len(rooms[i]), append(rooms[i], k.GPUs)
		}
		if node >= 0 {
			rooms[i][node] -= gpus
			return i
		}
	}
	return -1
}

// AddRunning has a problem of the batch's tasks begin with what runs: it adds tasks that hold
// their GPUs until they are expected to end, and take no energy. Jobs stay in their partitions.
func (b *Batch) AddRunning(p *planner.Problem) error {
	for class := range b.cluster.Classes {
		p.Cluster.Classes[class].Partitions = b.cluster.Classes[class].Partitions
	}
	for i := range b.PartitionsOf {
		p.Tasks[i].Partitions = b.PartitionsOf[i]
	}
	if len(b.runningJobs) == 0 {
		return nil
	}
	present := &planner.Snapshot{}
	for i := range b.runningJobs {
		r := &b.runningJobs[i]
		task, err := b.runningTask(r, r.remaining)
		if err != nil {
			return err
		}
		present.Running = append(present.Running, planner.RunningTask{
			Task: len(p.Tasks), Class: r.class, End: r.remaining,
		})
		p.Tasks = append(p.Tasks, task)
	}
	p.Snapshot = present
	return nil
}

// runningTask returns what runs as a task of so many seconds.
func (b *Batch) runningTask(r *runningJob, seconds float64) (planner.Task, error) {
	k := &b.cluster.Classes[r.class]
	hardware, err := b.catalog.Hardware(k.Model)
	if err != nil {
		return planner.Task{}, fmt.Errorf("node class %q: %w", k.Name, err)
	}
	at := hardware.Default
	at.Time, at.Power, at.Energy = seconds, 0, 0
	task := planner.NewTask(r.id, planner.Option{
		Model: k.Model, GPUs: r.gpus, Response: &dvfsmodel.Fixed{At: at},
	})
	task.Due = math.Inf(1)
	return task, nil
}
