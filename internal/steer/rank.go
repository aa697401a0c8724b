package steer

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

// groupRank is how far a group is put in order.
type groupRank struct {
	begun       bool
	limit       int64       // the priority that the next one may have at most
	predecessor slurm.JobID // whom it comes behind
	behind      string      // why
}

// groupRanker puts a group in order.
type groupRanker struct {
	groupRank
	plan    *Plan
	key     jobGroup
	enforce bool
	noRoom  bool
	most    int64 // by which one is lowered
}

// orderGroup lowers what must be lowered so that the group is in order. Among
// equal priorities Slurm takes the job of the lower number. Jobs that neither
// have a deadline nor a place only come behind those with a deadline. planned: the places are of a plan that
// has counted deadlines.
func (p *Plan) orderGroup(key jobGroup, list []pendingJob, enforce, planned bool) {
	slices.SortFunc(list, func(a, b pendingJob) int { return a.compare(&b) })
	placed := slices.IndexFunc(list, func(e pendingJob) bool { return e.deadline.IsZero() })
	if placed < 0 {
		placed = len(list)
	}
	rest := placed + slices.IndexFunc(list[placed:], func(e pendingJob) bool { return e.place == noPlace })
	if rest < placed {
		rest = len(list)
	}
	r := groupRanker{plan: p, key: key, enforce: enforce}
	urgent := r.rankLine(list[:placed])
	after := r.groupRank
	ranked := r.rankLine(list[placed:rest])
	var others []WantedChange
	if r.groupRank = after; after.begun {
		others = r.rankLine(list[rest:])
	}
	// In this order nothing is ever put behind what it is to come before, while
	// only some of it is done yet.
	nice := make(map[slurm.JobID]int64, len(list))
	for i := range list {
		nice[list[i].job.ID] = list[i].job.Nice
	}
	if enforce && r.most > 0 {
		p.lines[key] = line{r.most, planned}
	}
	p.Wants = slices.Concat(p.Wants, others, lowersFirst(ranked, nice), lowersFirst(urgent, nice))
	if r.noRoom {
		p.Notes = append(p.Notes, fmt.Sprintf("partition %s: "+lowPrioritiesNote, key.partition))
	}
}

// lowPrioritiesNote says in a note that a partition has no room below its priorities.
const lowPrioritiesNote = "priorities are too near 1 for jobs to be put in order"

// NotesOnLowPriorities returns the notes of partitions whose priorities leave no room for an order.
func (s *Status) NotesOnLowPriorities() []string {
	return slices.DeleteFunc(slices.Clone(s.Notes), func(note string) bool {
		return !strings.HasSuffix(note, lowPrioritiesNote)
	})
}

// lowersFirst puts wanted changes of a line, from its front on, in an order to make them in: first jobs that
// are lowered, from the end of the line on, then those that come forward, from its front on.
func lowersFirst(wants []WantedChange, nice map[slurm.JobID]int64) []WantedChange {
	ordered := make([]WantedChange, 0, len(wants))
	var raised []WantedChange
	for i := range wants {
		if after, err := strconv.ParseInt(wants[i].After, 10, 64); err == nil && after < nice[wants[i].Job] {
			raised = append(raised, wants[i])
		} else {
			ordered = append(ordered, wants[i])
		}
	}
	slices.Reverse(ordered)
	return append(ordered, raised...)
}

// A long line isn't packed as tightly as it could be: else each job that comes between others would have all
// behind it change, each by a command.
const (
	longLine    = 16 // jobs
	lineSpacing = 8  // points between two
	tightFront  = 4  // jobs at the front that are lowered by no more than they must be
	looseness   = 16 // how much more the others may be lowered, in jobs of the line
)

// spacing is how a line is kept in order with few changes.
type spacing struct {
	stays []bool  // by place: it may stay at its priority
	next  []int64 // the priority of the next one that stays, at that place or behind; 0: there is none
	until []int64 // how many don't stay from that place on, until one does
	slack int64
}

// spacingOf has as many jobs of a line stay as are in order already.
func spacingOf(list []pendingJob) *spacing {
	s := &spacing{
		stays: make([]bool, len(list)), next: make([]int64, len(list)+1), until: make([]int64, len(list)+1),
		slack: looseness * int64(len(list)),
	}
	before := func(a, b int) bool { // in Slurm's order
		x, y := &list[a], &list[b]
		return cmp.Or(cmp.Compare(y.priority(), x.priority()), cmp.Compare(x.job.ID, y.job.ID)) < 0
	}
	var ends []int // by length: the end of the best sequence that is so long
	from := make([]int, len(list))
	for i := range list {
		at := sort.Search(len(ends), func(k int) bool { return !before(ends[k], i) })
		from[i] = -1
		if at > 0 {
			from[i] = ends[at-1]
		}
		if at == len(ends) {
			ends = append(ends, i)
		} else {
			ends[at] = i
		}
	}
	if len(ends) > 0 {
		for i := ends[len(ends)-1]; i >= 0; i = from[i] {
			s.stays[i] = true
		}
	}
	for i := len(list) - 1; i >= 0; i-- {
		if s.next[i], s.until[i] = s.next[i+1], s.until[i+1]+1; s.stays[i] {
			s.next[i], s.until[i] = list[i].priority(), 0
		}
	}
	return s
}

// offset is by how much the job at a place is lowered to have at most a priority of limit.
func (s *spacing) offset(list []pendingJob, i int, limit int64) int64 {
	e := &list[i]
	if s == nil || i < tightFront || e.agePart < ageSteps {
		return e.minOffset(limit)
	}
	need := max(0, e.basePriority-limit)
	if s.stays[i] && e.ourNice >= need && e.ourNice-need <= s.slack {
		return e.ourNice
	}
	if need == 0 {
		return 0
	}
	space := int64(lineSpacing)
	if next := s.next[i+1]; next > 0 && next < limit {
		space = min(space, (limit-next)/(s.until[i+1]+2)) // it, those until the next one, and that one
	}
	return need + space
}

// rankLine lowers entrants so that each comes behind the one before, and all behind
// those of earlier lines.
func (r *groupRanker) rankLine(list []pendingJob) []WantedChange {
	var wants []WantedChange
	var loose *spacing
	if r.enforce && len(list) > longLine {
		loose = spacingOf(list)
	}
	for i := range list {
		e := &list[i]
		if !r.begun {
			r.begun, r.limit, r.predecessor = true, e.basePriority, e.job.ID
		} else if r.predecessor > e.job.ID {
			r.limit--
		}
		if r.limit < 1 {
			r.limit, r.noRoom = 1, true
		}
		offset := loose.offset(list, i, r.limit)
		if offset > maxOffset || e.userNice+offset > maxNice {
			r.plan.Notes = append(r.plan.Notes,
				fmt.Sprintf("partition %s: job %s would have to be lowered by %d, more than is done",
					r.key.partition, e.job.ID, offset))
			continue
		}
		if offset > 0 {
			wants = r.addWanted(wants, e, offset)
			r.most = max(r.most, offset)
		}
		r.limit, r.predecessor = min(r.limit, e.basePriority-offset), e.job.ID
		if !e.deadline.IsZero() || e.place != noPlace {
			r.behind = r.reason(e)
		}
	}
	return wants
}

// addWanted adds an offset, or says that it would be set.
func (r *groupRanker) addWanted(wants []WantedChange, e *pendingJob, offset int64) []WantedChange {
	w := e.niceChange(offset, r.behind)
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
func (r *groupRanker) reason(e *pendingJob) string {
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

func (e *pendingJob) niceChange(offset int64, why string) WantedChange {
	return WantedChange{lever.Undo{
		Lever: lever.Nice, Job: e.job.ID,
		Before: strconv.FormatInt(e.userNice, 10), After: strconv.FormatInt(e.userNice+offset, 10),
	}, why}
}
