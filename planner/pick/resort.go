package pick

import (
	"cmp"
	"math"
	"slices"
)

// resort is the plan of last resort: where and when each of the tasks that wait
// can start if nothing passes it. It is kept from event to event, and tasks only
// move forward in it, in order of arrival; where runs have come out longer than
// thought, so that it can't be kept, all are placed anew.
type resort struct {
	age     *ages
	free    *shadow // as the running tasks end
	booked  *shadow // with the plan's tasks
	tried   *shadow // scratch
	berths  []berth // by place in line
	attempt []berth // scratch
	order   []int   // scratch
}

// berth is a task's place in the plan.
type berth struct {
	task   int
	pair   int     // which of the task's; none: it can't start
	start  float64 // +Inf: it can't
	latest float64 // its bound, or the start where that is later
}

// Numbers of the plan of last resort.
const (
	mostPromised = 64   // tasks in it
	promiseSlack = 1e-6 // seconds of rounding
	leastPause   = 16   // a part of a pause that is looked at is one in so many at least
)

// make renews the plan for the tasks that wait, each for so long at most.
func (r *resort) make(l *line, bound float64) {
	r.free = newShadow(l, r.age)
	r.booked = r.free.copyTo(r.booked)
	kept := r.carry(l)
	if !kept {
		r.booked = r.free.copyTo(r.booked)
	}
	for i := range r.berths {
		b := &r.berths[i]
		pairs := l.known[b.task]
		if kept && b.pair != none {
			r.booked.keep(&pairs[b.pair], b.start, -1)
		}
		b.start, b.pair = r.booked.reserve(pairs)
		b.latest = max(b.start, l.v.Problem.Tasks[b.task].Arrival+bound)
	}
}

// carry books the tasks of the plan that still wait where they were, or as soon
// after as there is room, and appends those that are new. It tells whether all
// are in time.
func (r *resort) carry(l *line) (kept bool) {
	old := r.berths
	r.berths, r.attempt, r.order = r.attempt[:0], old, r.order[:0]
	for _, task := range l.waiting[:min(len(l.waiting), mostPromised)] {
		for len(old) > 0 && l.known[old[0].task] == nil {
			old = old[1:]
		}
		b := berth{task: task, pair: none}
		if len(old) > 0 && old[0].task == task {
			b, old = old[0], old[1:]
		}
		if b.pair != none {
			r.order = append(r.order, len(r.berths))
		}
		r.berths = append(r.berths, b)
	}
	slices.SortStableFunc(r.order, func(i, j int) int { return cmp.Compare(r.berths[i].start, r.berths[j].start) })
	for _, i := range r.order {
		b := &r.berths[i]
		if b.start = r.booked.follow(&l.known[b.task][b.pair], b.start); b.start > b.latest+promiseSlack {
			return false
		}
	}
	return true
}

// bears tells whether a pair that fits may start now: the others still can by
// their latest starts.
func (r *resort) bears(l *line, p *pair) bool {
	for i := range r.berths {
		if b := &r.berths[i]; b.task == p.task && b.start == l.v.Now && l.known[p.task][b.pair].class == p.class {
			return true // as planned
		}
	}
	if r.booked.spares(p) {
		return true
	}
	r.tried = r.free.copyTo(r.tried)
	r.tried.keep(p, l.v.Now, 1)
	return r.inTime(l, p.task)
}

// inTime places all tasks but one in what is left free in tried, and tells
// whether each starts in time.
func (r *resort) inTime(l *line, but int) bool {
	r.attempt = r.attempt[:0]
	for _, b := range r.berths {
		if b.task == but {
			continue
		}
		if b.start, b.pair = r.tried.reserve(l.known[b.task]); b.start > b.latest+promiseSlack {
			return false
		}
		r.attempt = append(r.attempt, b)
	}
	return true
}

// rests tells for how long nothing need start, until a time at most; now: not at
// all. Where nothing can, ends are what is waited for.
func (r *resort) rests(l *line, until float64) (again float64) {
	now, next, idle := l.v.Now, until, true
	for i := range r.berths {
		b := &r.berths[i]
		if idle = idle && b.start > now; b.start > now {
			next = min(next, b.start)
		} else if b.latest > now {
			next = min(next, b.latest)
		}
	}
	if idle || r.pauses(l, until) {
		return until
	}
	for part := 1.0; part <= leastPause; part *= 2 {
		if again = now + (next-now)/part; r.pauses(l, again) {
			return again
		}
	}
	return now
}

// pauses tells whether nothing need start until a time, and plans so.
func (r *resort) pauses(l *line, until float64) bool {
	if !(until > l.v.Now) {
		return false
	}
	r.tried = r.free.copyTo(r.tried)
	r.tried.pass(until)
	if !r.inTime(l, none) {
		return false
	}
	r.berths, r.attempt = r.attempt, r.berths
	return true
}

// due are the tasks that start now by the plan, those first that must.
func (r *resort) due(now float64) (all []berth) {
	for _, b := range r.berths {
		if b.start == now {
			all = append(all, b)
		}
	}
	slices.SortStableFunc(all, func(a, b berth) int { return cmp.Compare(a.latest, b.latest) })
	return all
}

// keep takes the room of a pair that starts at a time, or with sign -1 gives it
// back.
func (s *shadow) keep(p *pair, start, sign float64) {
	c := &s.curves[p.class]
	c.book(c.split(start), sign*p.GPUs, s.runs(p))
}

// follow keeps room for a pair as soon as there is any from a time on, and tells
// when it starts; +Inf: never.
func (s *shadow) follow(p *pair, from float64) (start float64) {
	start = s.curves[p.class].since(from, p.GPUs, s.runs(p))
	if !math.IsInf(start, 1) {
		s.keep(p, start, 1)
	}
	return start
}
