package jobs

import (
	"time"

	"github.com/epplan/epplan/slurm"
)

// startedIn is a job in the partition that slurmd says it started in: while it
// waited it may have named several. Empty: slurmd didn't say.
func (k *Job) StartedIn(partition string) *Job {
	here := kept(partition)
	if partition == "" || k.Partition == here {
		return k
	}
	started := *k
	started.Partition = here
	return &started
}

// wishes are what the user asked for, by the job's submission.
func (k *Job) Wishes(now time.Time) slurm.Wishes {
	asked := now
	if k.Submitted > 0 {
		asked = time.Unix(k.Submitted, 0).In(now.Location())
	}
	return slurm.ParseWishes(k.Comment.Value(), asked)
}

// room is how long a run that begins at a time may take at most, and what says
// so.
func (k *Job) RunLimit(from, wish time.Time, margin float64) (limit float64, bound string) {
	limit, bound = k.Limit.Seconds(), "limit"
	until := func(at time.Time) {
		left := at.Sub(from).Seconds() - margin
		if left < limit {
			limit, bound = left, "deadline"
		}
	}
	if k.Deadline > 0 {
		until(time.Unix(k.Deadline, 0))
	}
	if !wish.IsZero() {
		until(wish)
	}
	return max(0, limit), bound
}
