package slurmqueue

import (
	"fmt"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/queue"
	"github.com/epplan/epplan/slurm"
)

// runner is a job that runs, or its part on one node.
type runner struct {
	job       queue.Job
	class     int
	ran, rest float64 // seconds
}

// leastRest is what a job that overran its prediction is taken to need yet, as
// a part of what it ran, and at least, in seconds.
const (
	restPart  = 0.1
	leastRest = 60
)

// running are the jobs that hold GPUs of which the model is known, as many as
// the cluster has room for.
func (s *scene) running(q *epdapi.Queue) []runner {
	free := make([]int, len(s.cluster.Classes))
	for i := range s.cluster.Classes {
		free[i] = s.cluster.Classes[i].GPUs * max(1, s.cluster.Classes[i].Count)
	}
	var all []runner
	for i := range q.Jobs {
		j := &q.Jobs[i]
		if j.State == string(slurm.Pending) || j.GPUs < 1 {
			continue
		}
		ran := j.AgeS.Or(0)
		rest := s.rest(j, ran)
		parts := min(max(1, j.Nodes), j.GPUs)
		for part := range parts {
			gpus := j.GPUs / parts
			if part < j.GPUs%parts {
				gpus++
			}
			class := s.classWith(j.GPUModel, gpus, free)
			if class < 0 {
				continue
			}
			free[class] -= gpus
			job := queue.NewJob(fmt.Sprintf("%d running %d", j.ID, part+1))
			job.GPUs = []queue.GPUCount{{Model: s.cluster.Classes[class].Model, Count: gpus}}
			job.Runtime = ran + rest
			all = append(all, runner{job: job, class: class, ran: ran, rest: rest})
		}
	}
	return all
}

// rest is how long a job still runs.
func (s *scene) rest(j *epdapi.QueuedJob, ran float64) float64 {
	rest, limited := j.EndsS.Get()
	expected, known := j.RuntimeS.Get()
	if responses := s.waiting.responses(j); len(responses) > 0 {
		expected, known = responses[0].Default().Time, true
	}
	if left := max(expected-ran, restPart*ran); known && (!limited || left < rest) {
		rest = left
	}
	return max(rest, leastRest)
}

// classWith is the first class of a GPU model (empty: of any) with so many GPUs
// free on its nodes; -1: none.
func (s *scene) classWith(model string, gpus int, free []int) int {
	for i := range s.cluster.Classes {
		k := &s.cluster.Classes[i]
		if (model == "" || k.Model == model) && k.GPUs >= gpus && free[i] >= gpus {
			return i
		}
	}
	return -1
}
