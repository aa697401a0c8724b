package jobs

import (
	"cmp"
	"time"
	"unique"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

const (
	// runSlack is how much longer than Slurm's times say a run may have lasted: Slurm cuts seconds off, and
	// has a job end before its Epilogs.
	runSlack = time.Minute
	// killSlack is by how much longer a run may go on whose job Slurm ends: KillWait and UnkillableStepTimeout
	// are 30 and 60 s unless a site sets them (slurm.conf(5)).
	killSlack = 90 * time.Second
)

// bounds returns those of a run on a node: by how Slurm says that it ended, and where that isn't known by its
// decision, its job's time limit, and the time of day.
func (e *ending) bounds(run *Run, node string, t *Tracker) record.Bounds {
	b := record.Bounds{GPUs: GPUsOn(t.Nodes(), node, cmp.Or(e.gpus, run.GPUs)), Ended: t.options.Clock()}
	if e.at > 0 && e.at < b.Ended.Unix() {
		b.Ended = timeOf(e.at)
	}
	switch {
	case e.start > 0:
		b.Began = timeOf(e.start)
	case run.Decided:
		b.Began = run.Began
	}
	slack := runSlack
	if e.state != slurm.Completed {
		slack += killSlack
	}
	lasted := t.options.limitOf(run)
	if !b.Began.IsZero() {
		span := max(0, b.Ended.Sub(b.Began))
		if e.at > 0 || lasted == 0 || span < lasted {
			lasted = span
		}
	}
	if e.state != "" || run.Decided {
		b.Lasted = (lasted + slack).Seconds()
	}
	if b.Began.IsZero() {
		b.Ended = time.Time{}
	}
	return b
}

// asksSlurm reports whether there is a Slurm to ask about jobs.
func (o *Options) asksSlurm() bool { return o.Resolve != nil || o.Account != nil }

// limitOf returns a run's time limit by Slurm's clock; 0: it has none that is known and kept.
func (o *Options) limitOf(run *Run) time.Duration {
	limit, ok := run.Limit.Duration()
	if !ok || !o.asksSlurm() { // nobody keeps it
		return 0
	}
	return time.Duration(float64(limit) * cmp.Or(o.Speed, 1))
}

// GivenGPUs returns how many GPUs Slurm gave a job on all nodes; 0: it doesn't count them.
func (job *Job) GivenGPUs() int {
	if job.about == (unique.Handle[about]{}) {
		return 0
	}
	return tresOf(job.about.Value().allocated).GPUs()
}

// GPUsOn returns how many GPUs a job can have on a node at most: as many as Slurm gave it on all nodes, and
// as the node has. 0: Slurm says neither.
func GPUsOn(nodes []slurm.Node, node string, given int) int {
	for i := range nodes {
		if nodes[i].Name != node {
			continue
		}
		if has := nodes[i].GPUCount(); has > 0 && (given == 0 || has < given) {
			return has
		}
	}
	return given
}
