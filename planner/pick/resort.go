package pick

import (
	"cmp"
	"slices"
)

// fallbackPlan is the plan of last resort: where and when each of the tasks that wait
// can start if nothing passes it. It is kept from event to event, and tasks only
// move forward in it, in order of arrival; where runs have come out longer than
// thought, so that it can't be kept, all are placed anew.
type fallbackPlan struct {
	age     *residualTimes
	free    *classSchedule  // as the running tasks end
	booked  classSchedule   // with the plan's tasks
	tried   classSchedule   // scratch
	starts  []promisedStart // by place in line
	attempt []promisedStart // scratch
	order   []int           // scratch
}

type promisedStart struct {
	task   int
	pair   int     // which of the task's; none: it can't start
	start  float64 // +Inf: it can't
	latest float64 // its bound, or the start where that is later
}

const (
	mostPromised = 64 // tasks in the plan
	leastPause   = 16 // a part of a pause that is looked at is one in so many at least
)

// replan renews the plan for the tasks that wait, each for so long at most.
func (r *fallbackPlan) replan(l *waitingLine, bound float64) {
	r.free = newClassSchedule(&l.classUsage, r.age)
	r.booked.copyFrom(r.free)
	kept := r.carryOver(l)
	if !kept {
		r.booked.copyFrom(r.free)
	}
	for i := range r.starts {
		b := &r.starts[i]
		pairs := l.pairsOf[b.task]
		if kept && b.pair != noPair {
			r.booked.book(&pairs[b.pair], b.start, -1)
		}
		b.start, b.pair = r.booked.reserve(pairs)
		b.latest = max(b.start, l.v.Problem.Tasks[b.task].Arrival+bound)
	}
}

// carryOver books the tasks of the plan that still wait where they were, or as soon
// after as there is room, and appends those that are new. It reports whether all
// are in time.
func (r *fallbackPlan) carryOver(l *waitingLine) (kept bool) {
	old := r.starts
	r.starts, r.attempt, r.order = r.attempt[:0], old, r.order[:0]
	for _, task := range l.waiting[:min(len(l.waiting), mostPromised)] {
		for len(old) > 0 && l.pairsOf[old[0].task] == nil {
			old = old[1:]
		}
		b := promisedStart{task: task, pair: noPair}
		if len(old) > 0 && old[0].task == task {
			b, old = old[0], old[1:]
		}
		if b.pair != noPair {
			r.order = append(r.order, len(r.starts))
		}
		r.starts = append(r.starts, b)
	}
	slices.SortStableFunc(r.order, func(i, j int) int {
		return cmp.Compare(r.starts[i].start, r.starts[j].start)
	})
	for _, i := range r.order {
		b := &r.starts[i]
		if b.start = r.booked.bookFrom(&l.pairsOf[b.task][b.pair], b.start); b.start > b.latest+promiseSlack {
			return false
		}
	}
	return true
}

// allowsStart reports whether a pair that fits may start now: the others still can by
// their latest starts.
func (r *fallbackPlan) allowsStart(l *waitingLine, p *pair) bool {
	for i := range r.starts {
		if b := &r.starts[i]; b.task == p.task && b.start == l.v.Now &&
			l.pairsOf[p.task][b.pair].class == p.class {
			return true // as planned
		}
	}
	if r.booked.sparesReserved(p) {
		return true
	}
	r.tried.copyFrom(r.free)
	r.tried.book(p, l.v.Now, 1)
	return r.canAllStart(l, p.task)
}

// canAllStart places all tasks but one in what is left free in tried, and tells
// whether each starts in time.
func (r *fallbackPlan) canAllStart(l *waitingLine, but int) bool {
	r.attempt = r.attempt[:0]
	for _, b := range r.starts {
		if b.task == but {
			continue
		}
		if b.start, b.pair = r.tried.reserve(l.pairsOf[b.task]); b.start > b.latest+promiseSlack {
			return false
		}
		r.attempt = append(r.attempt, b)
	}
	return true
}

// maxPause tells for how long nothing need start, until a time at most; now: not at
// all. Where nothing can, ends are what is waited for.
func (r *fallbackPlan) maxPause(l *waitingLine, until float64) (again float64) {
	now, next, idle := l.v.Now, until, true
	for i := range r.starts {
		b := &r.starts[i]
		if idle = idle && b.start > now; b.start > now {
			next = min(next, b.start)
		} else if b.latest > now {
			next = min(next, b.latest)
		}
	}
	if idle || r.canPause(l, until) {
		return until
	}
	for part := 1.0; part <= leastPause; part *= 2 {
		if again = now + (next-now)/part; r.canPause(l, again) {
			return again
		}
	}
	return now
}

// canPause reports whether nothing need start until a time, and plans so.
func (r *fallbackPlan) canPause(l *waitingLine, until float64) bool {
	if !(until > l.v.Now) {
		return false
	}
	r.tried.copyFrom(r.free)
	r.tried.advance(until)
	if !r.canAllStart(l, noPair) {
		return false
	}
	r.starts, r.attempt = r.attempt, r.starts
	return true
}

// dueStarts returns the tasks that start now by the plan, those first that must.
func (r *fallbackPlan) dueStarts(now float64) (all []promisedStart) {
	for _, b := range r.starts {
		if b.start == now {
			all = append(all, b)
		}
	}
	slices.SortStableFunc(all, func(a, b promisedStart) int { return cmp.Compare(a.latest, b.latest) })
	return all
}
