package pick

import (
	"math"

	"github.com/epplan/epplan/planner"
)

// classSchedule plays the future of a queue by class: how many GPUs of each class are free
// from when on, as the running tasks are expected to end, less the room that is booked.
type classSchedule struct {
	curves []capacityProfile
	age    *residualTimes // how much longer tasks run; nil: as long as predicted
}

// newClassSchedule begins with the running tasks of a cluster.
func newClassSchedule(u *classUsage, age *residualTimes) *classSchedule {
	s, now := &classSchedule{age: age}, u.v.Now
	s.begin(now, u.total)
	for class := range s.curves {
		s.curves[class].free[0] -= u.busy[class]
	}
	for i := range u.running {
		r := &u.running[i]
		s.addEnd(r.pair.class, now+age.remaining(r.pair.Time, now-r.start), r.pair.GPUs)
	}
	s.sumUp()
	return s
}

// begin forgets all that is booked: from a time on so many GPUs of each class are free.
func (s *classSchedule) begin(at float64, free []float64) {
	if s.curves == nil {
		s.curves = make([]capacityProfile, len(free))
	}
	for class := range s.curves {
		c := &s.curves[class]
		c.at, c.free = append(c.at[:0], at), append(c.free[:0], free[class])
		if s.age != nil {
			c.instant = s.age.instant
		}
	}
}

// addEnd notes the end of a running task, before the schedule is summed up.
func (s *classSchedule) addEnd(class int, at, gpus float64) { s.curves[class].addFreed(at, gpus) }

func (s *classSchedule) sumUp() {
	for class := range s.curves {
		s.curves[class].sumUp()
	}
}

// copyFrom makes the schedule like another one.
func (s *classSchedule) copyFrom(from *classSchedule) {
	if s.curves == nil {
		s.curves = make([]capacityProfile, len(from.curves))
	}
	s.age = from.age
	for class := range s.curves {
		s.curves[class].set(&from.curves[class])
	}
}

// advance lets time pass in which nothing starts.
func (s *classSchedule) advance(until float64) {
	for class := range s.curves {
		s.curves[class].dropBefore(until)
	}
}

func (s *classSchedule) heldSeconds(p *pair) float64 {
	if s.age == nil {
		return p.Time
	}
	return s.age.remaining(p.Time, 0)
}

// firstToStart returns the pair that can start first, and the step of its class's curve at
// which it does; none: no pair can.
func (s *classSchedule) firstToStart(pairs []pair) (best, at int) {
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
func (s *classSchedule) reserve(pairs []pair) (start float64, best int) {
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
func (s *classSchedule) sparesReserved(p *pair) bool {
	return s.curves[p.class].isFree(p.GPUs, s.heldSeconds(p))
}

// longestRun returns how long tasks of a class may run at most, from now on so many GPUs, to leave what is
// reserved, as sparesReserved has it but for rounding upwards.
func (s *classSchedule) longestRun(class int, gpus float64) float64 {
	c := &s.curves[class]
	for i := range c.at {
		if c.free[i] < gpus-planner.ShareSlack {
			held := c.at[i] - c.at[0] + c.instant
			return held * (1 + 1e-9) / s.heldSeconds(&pair{Prediction: planner.Prediction{Time: 1}})
		}
	}
	return math.Inf(1)
}

// book takes the room of a pair that starts at a time, or with sign -1 gives it
// back.
func (s *classSchedule) book(p *pair, start, sign float64) {
	c := &s.curves[p.class]
	c.book(c.split(start), sign*p.GPUs, s.heldSeconds(p))
}

// bookFrom keeps room for a pair as soon as there is any from a time on, and tells
// when it starts; +Inf: never.
func (s *classSchedule) bookFrom(p *pair, from float64) (start float64) {
	start = s.curves[p.class].firstFree(from, p.GPUs, s.heldSeconds(p))
	if !math.IsInf(start, 1) {
		s.book(p, start, 1)
	}
	return start
}
