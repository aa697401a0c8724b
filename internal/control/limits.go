package control

import (
	"time"

	"github.com/epplan/epplan/slurm"
)

// startedIn is a job in the partition that slurmd says it started in: while it
// waited it may have named several. Empty: slurmd didn't say.
func (k *knownJob) startedIn(partition string) *knownJob {
	here := kept(partition)
	if partition == "" || k.partition == here {
		return k
	}
	started := *k
	started.partition = here
	return &started
}

// wishes are what the user asked for, by the job's submission.
func (k *knownJob) wishes(now time.Time) slurm.Wishes {
	asked := now
	if k.submitted > 0 {
		asked = time.Unix(k.submitted, 0).In(now.Location())
	}
	return slurm.ParseWishes(k.comment.Value(), asked)
}

// room is how long a run that begins at a time may take at most, and what says
// so.
func (k *knownJob) room(from, wish time.Time, margin float64) (limit float64, bound string) {
	limit, bound = k.limit.Seconds(), "limit"
	until := func(at time.Time) {
		left := at.Sub(from).Seconds() - margin
		if left < limit {
			limit, bound = left, "deadline"
		}
	}
	if k.deadline > 0 {
		until(time.Unix(k.deadline, 0))
	}
	if !wish.IsZero() {
		until(wish)
	}
	return max(0, limit), bound
}
