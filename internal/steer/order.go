package steer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// pendingJob is a pending job that may be put behind another.
type pendingJob struct {
	job          *slurm.Job
	userNice     int64     // the user's own nice
	ourNice      int64     // our part of its nice
	basePriority int64     // its priority without our part
	deadline     time.Time // zero: none
	place        int       // in the order of a policy; unplaced: none
	agePart      int       // of an offset that counts, in ageSteps: jobs that wait long come forward
}

// noPlace marks jobs that a policy's order doesn't name: they keep the order
// that the queue has.
const noPlace = -1

// ageSteps is in how many steps a job that waits comes forward: each is a
// command.
const ageSteps = 8

// Bounds of our part of a nice.
const (
	maxOffset = 1 << 20 // slurm's levers take no more
	// niceSlack is by how much an offset may be larger than it must be before it is
	// lowered: priority/multifactor rounds, and every change is a command.
	niceSlack = 8
)

// jobGroup is jobs that are put in order among themselves.
type jobGroup struct {
	partition string
	all       bool   // of all users
	uid       uint32 // else of this one
}

// planOrder puts jobs with a deadline first, the earliest first of all, and then
// the others as a policy would start them, by making some less urgent. Nothing
// ever becomes more urgent than its user left it.
func (p *Plan) planOrder(s *Snapshot, set *Settings, ours *OwnChanges) {
	places, planned := p.places(s, set), set.countsDeadlines(s)
	groups := make(map[jobGroup][]pendingJob)
	newcomers := make(map[jobGroup][]pendingJob)
	moved := make(map[jobGroup]bool)
	for i := range s.Jobs {
		e, ok := set.pendingJob(s, &s.Jobs[i], ours)
		if !ok {
			continue
		}
		key := set.groupOf(e.job)
		if place, ok := places[e.job.ID]; ok && set.Live.OrderModeOf(key.partition) != live.Observe {
			e.place = place
		}
		if set.awaitsPlace(s, &e) {
			newcomers[key] = append(newcomers[key], e)
			continue
		}
		moved[key] = moved[key] || e.place != noPlace || !e.deadline.IsZero()
		groups[key] = append(groups[key], e)
	}
	keys := slices.SortedFunc(maps.Keys(moved), jobGroup.compare)
	for _, key := range keys {
		enforce := set.Live.ModeOf(key.partition) == live.Enforce
		list := groups[key]
		switch {
		case enforce && set.Live.OrderModeOf(key.partition) != live.Enforce:
			p.adviseOrder(key, list)
			list = slices.Clone(list)
			for i := range list {
				list[i].place = noPlace
			}
		case planned:
			leaveDeadlinesToPlan(list)
		}
		p.orderGroup(key, list, enforce, planned && set.Live.OrderModeOf(key.partition) == live.Enforce)
	}
	for _, key := range slices.SortedFunc(maps.Keys(newcomers), jobGroup.compare) {
		list := newcomers[key]
		for i := range list {
			offset := max(list[i].ourNice, p.lines[key].most)
			if offset == 0 || offset > maxOffset || list[i].userNice+offset > maxNice {
				continue
			}
			p.Wants = append(p.Wants, list[i].niceChange(offset, "policy "+p.Policy+" has no place for it yet"))
		}
	}
	if p.Policy != "" {
		p.list(keys, groups)
	}
}

// pendingJob returns a job that may be put behind another, as yet without a place; not ok: it may not.
func (set *Settings) pendingJob(s *Snapshot, j *slurm.Job, ours *OwnChanges) (e pendingJob, ok bool) {
	if set.Live.ReorderOf(j.Partition) == config.ReorderOff || set.Live.ModeOf(j.Partition) == live.Observe ||
		ours.Untouchable[j.ID] || !canReorder(j, s.At) {
		return e, false
	}
	wishes := requestsOf(j)
	if wishes.Off {
		return e, false
	}
	e = pendingJob{job: j, userNice: j.Nice, place: noPlace, agePart: agePartOf(j, s.At, &set.Live.Pick)}
	if own, changed := ours.UserNice[j.ID]; changed {
		e.userNice, e.ourNice = own, j.Nice-own
	}
	e.basePriority = int64(j.Priority) + e.ourNice
	if wishes.Deadline.After(s.At) {
		e.deadline = wishes.Deadline
	}
	return e, true
}

// groupOf returns the group in which a job is put in order.
func (set *Settings) groupOf(j *slurm.Job) jobGroup {
	if set.Live.ReorderOf(j.Partition) == config.ReorderOwn {
		return jobGroup{partition: j.Partition, uid: j.UID}
	}
	return jobGroup{partition: j.Partition, all: true}
}

// awaitsPlace reports whether a job that was lowered as it was submitted came after the queue was looked at
// whose order counts, or one that was submitted before could start since only: it stays behind until it has
// its place, or hasn't got one, or has waited for as long as any is put behind. Where no plan counts
// deadlines, one puts it in order at once.
func (set *Settings) awaitsPlace(s *Snapshot, e *pendingJob) bool {
	r := set.Ranking
	if r == nil || s.At.After(r.Until) || e.place != noPlace || e.agePart == 0 {
		return false
	}
	looked := r.At.Truncate(time.Second) // Slurm says times in whole seconds
	return (e.ourNice > 0 || e.job.Submit.Before(looked)) && !e.job.Eligible.Before(looked) &&
		(e.deadline.IsZero() || set.countsDeadlines(s)) &&
		set.Live.OrderModeOf(e.job.Partition) == live.Enforce && set.Live.ModeOf(e.job.Partition) == live.Enforce
}

// leaveDeadlinesToPlan leaves deadlines to the plan that has counted them: it knows which can be met, and
// which are far off.
func leaveDeadlinesToPlan(list []pendingJob) {
	for i := range list {
		if list[i].place != noPlace {
			list[i].deadline = time.Time{}
		}
	}
}

// adviseOrder says which jobs a plan would put behind others, where deadlines alone may.
func (p *Plan) adviseOrder(key jobGroup, list []pendingJob) {
	advised := Plan{Policy: p.Policy}
	advised.orderGroup(key, list, false, false)
	placed := make(map[slurm.JobID]bool, len(list))
	for i := range list {
		placed[list[i].job.ID] = list[i].place != noPlace && list[i].deadline.IsZero()
	}
	for _, a := range advised.Advice {
		if placed[a.Job] {
			p.advise(a)
		}
	}
}

// places returns the places of a policy's order that says something yet.
func (p *Plan) places(s *Snapshot, set *Settings) map[slurm.JobID]int {
	r := set.Ranking
	if r == nil {
		return nil
	}
	p.Policy = r.Policy
	if r.Trouble != "" {
		p.Notes = append(p.Notes,
			"the order of policy "+r.Policy+" isn't renewed: "+slurm.Printable(r.Trouble, maxReason))
	}
	if s.At.After(r.Until) {
		return nil
	}
	if r.Without > 0 {
		p.Notes = append(p.Notes,
			fmt.Sprintf("policy %s: %d jobs have no place in its order: held, with unequal parts on "+
				"several nodes, without model and time limit, or too many", r.Policy, r.Without))
	}
	return r.Place
}

// maxReason bounds a reason in a note.
const maxReason = 200

// list says which order is wanted.
func (p *Plan) list(keys []jobGroup, groups map[jobGroup][]pendingJob) {
	var all []pendingJob
	for _, key := range keys {
		all = append(all, groups[key]...)
	}
	all = slices.DeleteFunc(all, func(e pendingJob) bool { return e.deadline.IsZero() && e.place == noPlace })
	slices.SortFunc(all, func(a, b pendingJob) int { return a.compare(&b) })
	for i := range all {
		p.Order = append(p.Order, all[i].job.ID)
	}
}

// agePartOf returns how much of an offset counts for a job that has waited for so long.
func agePartOf(j *slurm.Job, now time.Time, limits *config.LivePick) int {
	bound := limits.Ageing
	if limits.AgeingFactor > 0 {
		bound = min(bound, limits.AgeingFactor*j.TimeLimit.Seconds())
	}
	waited := now.Sub(j.Eligible).Seconds()
	if waited >= bound {
		return 0
	}
	return ageSteps - int(max(0, waited)/bound*ageSteps)
}

// canReorder reports whether a job may be put behind another, or before it: it could
// start now but for what it waits for, and its place in the queue is by one
// priority of its own.
func canReorder(j *slurm.Job, now time.Time) bool {
	switch {
	case j.State.Base != slurm.Pending, j.Held(), j.WaitKind() == slurm.WaitHeld:
		return false // a change of its nice would release a held job
	case j.HetJob != 0:
		return false // one component's nice is another's, too
	case j.Partition == "" || strings.Contains(j.Partition, ","):
		return false // it has a priority in each
	case strings.Contains(j.ArrayTasks, "..."):
		return false // of an array whose tasks can't be told
	}
	return isRunnable(j, now)
}

// isRunnable reports whether a job's time has come: it depends on none, and has no
// later begin. What limits leave it may change at any moment.
func isRunnable(j *slurm.Job, now time.Time) bool {
	w := j.WaitKind()
	return (w == slurm.WaitTurn || w == slurm.WaitElse) && !j.Eligible.IsZero() && !j.Eligible.After(now)
}

// compare returns the order in which groups are handled.
func (g jobGroup) compare(h jobGroup) int {
	if g.partition == h.partition && g.all != h.all {
		return compareFirst(g.all)
	}
	return cmp.Or(strings.Compare(g.partition, h.partition), cmp.Compare(g.uid, h.uid))
}

// compare puts deadlines first, the earliest first, then those that a policy's
// order names, and else keeps the order that the queue has without us.
func (e *pendingJob) compare(f *pendingJob) int {
	switch {
	case e.deadline.IsZero() != f.deadline.IsZero():
		return compareFirst(!e.deadline.IsZero())
	case !e.deadline.Equal(f.deadline):
		return e.deadline.Compare(f.deadline)
	case (e.place == noPlace) != (f.place == noPlace):
		return compareFirst(e.place != noPlace)
	case e.place != f.place:
		return cmp.Compare(e.place, f.place)
	}
	return cmp.Or(cmp.Compare(f.basePriority, e.basePriority), cmp.Compare(e.job.ID, f.job.ID))
}

// priority returns what it has at present.
func (e *pendingJob) priority() int64 { return e.basePriority - e.ourNice }

// compareFirst returns what a comparison answers where one of two comes first: whether it is the
// first of them.
func compareFirst(yes bool) int {
	if yes {
		return -1
	}
	return 1
}

// minOffset returns the least by which the entrant must be lowered to have at most a
// priority of limit, as far as its age lets it; one in force that is a little
// larger stays.
func (e *pendingJob) minOffset(limit int64) int64 {
	need := e.basePriority - limit
	if need <= 0 || e.agePart == 0 {
		return 0
	}
	if need = need * int64(e.agePart) / ageSteps; e.ourNice >= need && e.ourNice-need <= niceSlack {
		return e.ourNice
	}
	return need
}
