package steer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/slurm"
)

// rank is how far a group is put in order.
type rank struct {
	begun  bool
	limit  int64       // the priority that the next one may have at most
	before slurm.JobID // whom it comes behind
	behind string      // why
}

// ranker puts a group in order.
type ranker struct {
	rank
	plan    *Plan
	key     group
	enforce bool
	cramped bool
}

// orderGroup lowers what must be lowered so that the group is in order. Among
// equal priorities Slurm takes the job of the lower number. Jobs that neither
// have a deadline nor a place only come behind those with a deadline.
func (p *Plan) orderGroup(key group, list []entrant, enforce bool) {
	slices.SortFunc(list, func(a, b entrant) int { return a.compare(&b) })
	placed := slices.IndexFunc(list, func(e entrant) bool { return e.deadline.IsZero() })
	if placed < 0 {
		placed = len(list)
	}
	rest := placed + slices.IndexFunc(list[placed:], func(e entrant) bool { return e.place == unplaced })
	if rest < placed {
		rest = len(list)
	}
	r := ranker{plan: p, key: key, enforce: enforce}
	urgent := r.line(list[:placed])
	after := r.rank
	ranked := r.line(list[placed:rest])
	var others []Want
	if r.rank = after; after.begun {
		others = r.line(list[rest:])
	}
	// In this order nothing is ever put behind what it is to come before, while
	// only some of it is done yet.
	slices.Reverse(urgent)
	slices.Reverse(ranked)
	p.Wants = append(append(append(p.Wants, others...), ranked...), urgent...)
	if r.cramped {
		p.Notes = append(p.Notes, fmt.Sprintf("partition %s: "+tooLow, key.partition))
	}
}

// tooLow says in a note that a partition has no room below its priorities.
const tooLow = "priorities are too near 1 for jobs to be put in order"

// Cramped are the notes of partitions whose priorities leave no room for an order.
func (s *Status) Cramped() []string {
	return slices.DeleteFunc(slices.Clone(s.Notes), func(note string) bool { return !strings.HasSuffix(note, tooLow) })
}

// line lowers entrants so that each comes behind the one before, and all behind
// those of earlier lines.
func (r *ranker) line(list []entrant) []Want {
	var wants []Want
	for i := range list {
		e := &list[i]
		if !r.begun {
			r.begun, r.limit, r.before = true, e.base, e.job.ID
		} else if r.before > e.job.ID {
			r.limit--
		}
		if r.limit < 1 {
			r.limit, r.cramped = 1, true
		}
		offset := e.offset(r.limit)
		if offset > maxOffset || e.own+offset > maxNice {
			r.plan.Notes = append(r.plan.Notes, fmt.Sprintf("partition %s: job %s would have to be lowered by %d, more than is done", r.key.partition, e.job.ID, offset))
			continue
		}
		if offset > 0 {
			wants = r.want(wants, e, offset)
		}
		r.limit, r.before = min(r.limit, e.base-offset), e.job.ID
		if !e.deadline.IsZero() || e.place != unplaced {
			r.behind = r.reason(e)
		}
	}
	return wants
}

// want adds an offset, or says that it would be set.
func (r *ranker) want(wants []Want, e *entrant, offset int64) []Want {
	w := e.lowered(offset, r.behind)
	if r.enforce {
		return append(wants, w)
	}
	r.plan.advise(Advice{
		Kind: KindOrder, Job: e.job.ID, UID: e.job.UID, User: e.job.User, Partition: r.key.partition,
		Text: "nice " + w.After + " instead of " + w.Before + ": " + w.Why,
	})
	return wants
}

// maxNice is what Slurm takes.
const maxNice = 1<<31 - 3

// reason says behind what a job is put; of other users' jobs it says nothing.
func (r *ranker) reason(e *entrant) string {
	switch foreign := r.key.uid != e.job.UID; {
	case e.deadline.IsZero() && foreign:
		return "policy " + r.plan.Policy + " starts others of partition " + r.key.partition + " before"
	case e.deadline.IsZero():
		return "policy " + r.plan.Policy + " starts job " + e.job.ID.String() + " before"
	case foreign:
		return "jobs of partition " + r.key.partition + " with a deadline go first"
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
