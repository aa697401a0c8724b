package pick

import (
	"math"
)

// shadowSchedule is what is free of each class as the running tasks are expected to end,
// and what is kept for tasks that come first.
type shadowSchedule struct {
	curves []capacityProfile
	age    *residualTimes
}

func newShadowSchedule(u *classUsage, age *residualTimes) *shadowSchedule {
	s, now := &shadowSchedule{curves: make([]capacityProfile, len(u.total)), age: age}, u.v.Now
	for class := range s.curves {
		s.curves[class] = capacityProfile{
			at: []float64{now}, free: []float64{u.total[class] - u.busy[class]}, instant: age.instant,
		}
	}
	for i := range u.running {
		r := &u.running[i]
		s.curves[r.pair.class].addFreed(now+age.remaining(r.pair.Time, now-r.start), r.pair.GPUs)
	}
	for class := range s.curves {
		s.curves[class].sumUp()
	}
	return s
}

// copyTo makes another shadow like this one; nil: a new one.
func (s *shadowSchedule) copyTo(to *shadowSchedule) *shadowSchedule {
	if to == nil {
		to = &shadowSchedule{curves: make([]capacityProfile, len(s.curves))}
	}
	to.age = s.age
	for class := range s.curves {
		to.curves[class].set(&s.curves[class])
	}
	return to
}

// pass lets time pass in which nothing starts.
func (s *shadowSchedule) pass(until float64) {
	for class := range s.curves {
		s.curves[class].dropBefore(until)
	}
}

func (s *shadowSchedule) heldSeconds(p *pair) float64 { return s.age.remaining(p.Time, 0) }

// firstToStart is the pair that can start first, and the step of its class's curve at
// which it does; none: no pair can.
func (s *shadowSchedule) firstToStart(pairs []pair) (best, at int) {
	best = noPair
	for i := range pairs {
		c := &s.curves[pairs[i].class]
		if step := c.earliest(pairs[i].GPUs, s.heldSeconds(&pairs[i])); step >= 0 &&
			(best == noPair || c.at[step] < s.curves[pairs[best].class].at[at]-c.instant) {
			best, at = i, step
		}
	}
	return best, at
}

// reserve keeps room for the pair that can start first, and tells when it can;
// none and +Inf: no pair ever.
func (s *shadowSchedule) reserve(pairs []pair) (start float64, best int) {
	best, at := s.firstToStart(pairs)
	if best == noPair {
		return math.Inf(1), noPair
	}
	c := &s.curves[pairs[best].class]
	start = c.at[at]
	c.book(at, pairs[best].GPUs, s.heldSeconds(&pairs[best]))
	return start, best
}

// sparesReserved reports whether a pair that starts now leaves what is reserved.
func (s *shadowSchedule) sparesReserved(p *pair) bool {
	return s.curves[p.class].isFree(p.GPUs, s.heldSeconds(p))
}

// book takes the room of a pair that starts at a time, or with sign -1 gives it
// back.
func (s *shadowSchedule) book(p *pair, start, sign float64) {
	c := &s.curves[p.class]
	c.book(c.split(start), sign*p.GPUs, s.heldSeconds(p))
}

// bookFrom keeps room for a pair as soon as there is any from a time on, and tells
// when it starts; +Inf: never.
func (s *shadowSchedule) bookFrom(p *pair, from float64) (start float64) {
	start = s.curves[p.class].firstFree(from, p.GPUs, s.heldSeconds(p))
	if !math.IsInf(start, 1) {
		s.book(p, start, 1)
	}
	return start
}
