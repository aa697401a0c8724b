package control

import (
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
// 1 kB for each job: Queued takes one at a time.
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
