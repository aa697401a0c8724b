package jobs

import (
	"time"

	"github.com/epplan/epplan/slurm"
)

// StartedIn returns a job in the partition that slurmd says it started in: while it
// waited it may have named several. Empty: slurmd didn't say.
func (job *Job) StartedIn(partition string) *Job {
	here := internText(partition)
	if partition == "" || job.Partition == here {
		return job
	}
	started := *job
	started.Partition = here
	return &started
}

// Wishes returns what the user asked for, by the job's submission.
func (job *Job) Wishes(now time.Time) slurm.Wishes {
	asked := now
	if job.Submitted > 0 {
		asked = time.Unix(job.Submitted, 0).In(now.Location())
	}
	return slurm.ParseWishes(job.Comment.Value(), asked)
}

// RunLimit returns how long a run that begins at a time may take at most, in seconds, and
// what says so: its limit, or a deadline, the job's or one that its user wishes (zero:
// none), by a margin in seconds.
func (job *Job) RunLimit(from, wish time.Time, margin float64) (limit float64, bound string) {
	limit, bound = job.Limit.Seconds(), "limit"
	until := func(at time.Time) {
		left := at.Sub(from).Seconds() - margin
		if left < limit {
			limit, bound = left, "deadline"
		}
	}
	if at := job.rareParts().deadline; at > 0 {
		until(time.Unix(at, 0))
	}
	if !wish.IsZero() {
		until(wish)
	}
	return max(0, limit), bound
}
