package steer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/slurm"
)

// entrant is a pending job that may be put behind another.
type entrant struct {
	job      *slurm.Job
	own      int64     // the user's own nice
	have     int64     // our part of its nice
	base     int64     // its priority without our part
	deadline time.Time // zero: none
}

// Bounds of our part of a nice.
const (
	maxOffset = 1 << 20 // slurm's levers take no more
	// slack is by how much an offset may be larger than it must be before it is
	// lowered: priority/multifactor rounds, and every change is a command.
	slack = 8
)

// group is jobs that are put in order among themselves.
type group struct {
	partition string
	uid       uint32 // 0 where all users' jobs are in one group
}

// order puts jobs with a deadline first, the earliest first of all, by making
// others less urgent. Nothing ever becomes more urgent than its user left it.
func (p *Plan) order(s *Snapshot, set *Settings, ours *Ours) {
	groups := make(map[group][]entrant)
	urgent := make(map[group]bool)
	for i := range s.Jobs {
		j := &s.Jobs[i]
		extent := set.Live.ReorderOf(j.Partition)
		if extent == config.ReorderOff || set.Live.ModeOf(j.Partition) == config.Observe || ours.Left[j.ID] || !mayWait(j, s.At) {
			continue
		}
		wishes := wishesOf(j)
		if wishes.Off {
			continue
		}
		e := entrant{job: j, own: j.Nice}
		if own, ok := ours.Own[j.ID]; ok {
			e.own, e.have = own, j.Nice-own
		}
		e.base = int64(j.Priority) + e.have
		key := group{partition: j.Partition}
		if extent == config.ReorderOwn {
			key.uid = j.UID
		}
		if wishes.Deadline.After(s.At) {
			e.deadline = wishes.Deadline
			urgent[key] = true
		}
		groups[key] = append(groups[key], e)
	}
	for _, key := range slices.SortedFunc(maps.Keys(urgent), group.compare) {
		p.orderGroup(key, groups[key], set.Live.ModeOf(key.partition) == config.Enforce)
	}
}

// mayWait tells whether a job may be put behind another, or before it: it could
// start now but for what it waits for, and its place in the queue is by one
// priority of its own.
func mayWait(j *slurm.Job, now time.Time) bool {
	switch {
	case j.State.Base != slurm.Pending, j.Held(), strings.Contains(strings.ToLower(j.Reason), "held"):
		return false // a change of its nice would release a held job
	case j.HetJob != 0:
		return false // one component's nice is another's, too
	case j.Partition == "" || strings.Contains(j.Partition, ","):
		return false // it has a priority in each
	case strings.Contains(j.ArrayTasks, "..."):
		return false // of an array whose tasks can't be told
	}
	return runnable(j, now)
}

// runnable tells whether a job's time has come: it depends on none, and has no
// later begin.
func runnable(j *slurm.Job, now time.Time) bool {
	switch j.Reason {
	case "BeginTime", "Dependency", "DependencyNeverSatisfied", "BadConstraints", "PartitionTimeLimit", "PartitionNodeLimit", "JobHoldMaxRequeue":
		return false
	}
	return !j.Eligible.IsZero() && !j.Eligible.After(now)
}

func (g group) compare(h group) int {
	return cmp.Or(strings.Compare(g.partition, h.partition), cmp.Compare(g.uid, h.uid))
}

// compare puts deadlines first, the earliest first, and else keeps the order
// that the queue has without us.
func (e *entrant) compare(f *entrant) int {
	switch {
	case e.deadline.IsZero() != f.deadline.IsZero():
		if e.deadline.IsZero() {
			return 1
		}
		return -1
	case !e.deadline.Equal(f.deadline):
		return e.deadline.Compare(f.deadline)
	}
	return cmp.Or(cmp.Compare(f.base, e.base), cmp.Compare(e.job.ID, f.job.ID))
}

// offset is the least by which the entrant must be lowered to have at most a
// priority of limit; one in force that is a little larger stays.
func (e *entrant) offset(limit int64) int64 {
	need := e.base - limit
	if need <= 0 {
		return 0
	}
	if e.have >= need && e.have-need <= slack {
		return e.have
	}
	return need
}

// orderGroup lowers what must be lowered so that the group is in order. Among
// equal priorities Slurm takes the job of the lower number.
func (p *Plan) orderGroup(key group, list []entrant, enforce bool) {
	slices.SortFunc(list, func(a, b entrant) int { return a.compare(&b) })
	first := &list[0]
	limit, before := first.base, first.job.ID
	behind, cramped := "", false
	var urgent, others []Want
	for i := range list {
		e := &list[i]
		if i > 0 && before > e.job.ID {
			limit--
		}
		if limit < 1 {
			limit, cramped = 1, true
		}
		offset := e.offset(limit)
		if offset > maxOffset || e.own+offset > maxNice {
			p.Notes = append(p.Notes, fmt.Sprintf("partition %s: job %s would have to be lowered by %d, more than is done", key.partition, e.job.ID, offset))
			continue
		}
		if offset > 0 {
			w := e.lowered(offset, behind)
			switch {
			case !enforce:
				p.advise(Advice{
					Kind: KindOrder, Job: e.job.ID, UID: e.job.UID, User: e.job.User, Partition: key.partition,
					Text: "nice " + w.After + " instead of " + w.Before + ": " + w.Why,
				})
			case e.deadline.IsZero():
				others = append(others, w)
			default:
				urgent = append(urgent, w)
			}
		}
		limit, before = e.base-offset, e.job.ID
		if !e.deadline.IsZero() {
			behind = reason(key, e)
		}
	}
	// In this order nothing urgent is ever put behind what isn't, while only some
	// of it is done yet.
	slices.Reverse(urgent)
	p.Wants = append(append(p.Wants, others...), urgent...)
	if cramped {
		p.Notes = append(p.Notes, fmt.Sprintf("partition %s: priorities are too near 1 for jobs to be put in order", key.partition))
	}
}

// maxNice is what Slurm takes.
const maxNice = 1<<31 - 3

// reason says behind what a job is put; of other users' jobs it says nothing.
func reason(key group, e *entrant) string {
	if key.uid != e.job.UID {
		return "jobs of partition " + key.partition + " with a deadline go first"
	}
	return fmt.Sprintf("job %s has a deadline at %s", e.job.ID, e.deadline.Format(time.RFC3339))
}

// lowered is the want that an entrant have an offset.
func (e *entrant) lowered(offset int64, why string) Want {
	return Want{slurm.Undo{
		Lever: slurm.LeverNice, Job: e.job.ID,
		Before: strconv.FormatInt(e.own, 10), After: strconv.FormatInt(e.own+offset, 10),
	}, why}
}
