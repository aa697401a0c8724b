package pick

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// crew is the tasks that run, as predicted.
type crew struct{ residents []resident }

// resident is a task that runs.
type resident struct {
	pair  pair
	start float64
}

// hire adds a task that starts.
func (c *crew) hire(v *planner.View, task int, a *planner.Assignment) {
	c.residents = append(c.residents, resident{start: a.Start, pair: pair{
		task: task, class: v.ClassOf(int(a.Node)), Prediction: planner.Prediction{
			Time: max(a.End-a.Start, math.SmallestNonzeroFloat32),
			GPUs: float64(a.GPUCount()) * v.Problem.Tasks[task].Share,
		},
	}})
}

// dismiss removes a task that ended.
func (c *crew) dismiss(task int) {
	c.residents = slices.DeleteFunc(c.residents, func(r resident) bool { return r.pair.task == task })
}

// shadow is what is free of each class as the running tasks are expected to end,
// and what is kept for tasks that come first.
type shadow struct {
	curves []curve
	age    *ages
}

// newShadow is the shadow of the tasks that run.
func newShadow(l *line, age *ages) *shadow {
	s, now := &shadow{curves: make([]curve, len(l.total)), age: age}, l.v.Now
	for class := range s.curves {
		s.curves[class] = curve{at: []float64{now}, free: []float64{l.total[class] - l.busy[class]}, instant: age.instant}
	}
	for i := range l.residents {
		r := &l.residents[i]
		s.curves[r.pair.class].gain(now+age.remaining(r.pair.Time, now-r.start), r.pair.GPUs)
	}
	for class := range s.curves {
		s.curves[class].sumUp()
	}
	return s
}

// copyTo makes another shadow like this one; nil: a new one.
func (s *shadow) copyTo(to *shadow) *shadow {
	if to == nil {
		to = &shadow{curves: make([]curve, len(s.curves))}
	}
	to.age = s.age
	for class := range s.curves {
		to.curves[class].set(&s.curves[class])
	}
	return to
}

// pass lets time pass in which nothing starts.
func (s *shadow) pass(until float64) {
	for class := range s.curves {
		s.curves[class].pass(until)
	}
}

// runs is how long a pair's place is kept.
func (s *shadow) runs(p *pair) float64 { return s.age.remaining(p.Time, 0) }

// first is the pair that can start first, and the step of its class's curve at
// which it does; none: no pair can.
func (s *shadow) first(pairs []pair) (best, at int) {
	best = none
	for i := range pairs {
		c := &s.curves[pairs[i].class]
		if step := c.earliest(pairs[i].GPUs, s.runs(&pairs[i])); step >= 0 &&
			(best == none || c.at[step] < s.curves[pairs[best].class].at[at]-c.instant) {
			best, at = i, step
		}
	}
	return best, at
}

// reserve keeps room for the pair that can start first, and tells when it can;
// none and +Inf: no pair ever.
func (s *shadow) reserve(pairs []pair) (start float64, best int) {
	best, at := s.first(pairs)
	if best == none {
		return math.Inf(1), none
	}
	c := &s.curves[pairs[best].class]
	start = c.at[at]
	c.book(at, pairs[best].GPUs, s.runs(&pairs[best]))
	return start, best
}

// spares tells whether a pair that starts now leaves what is reserved.
func (s *shadow) spares(p *pair) bool { return s.curves[p.class].isFree(p.GPUs, s.runs(p)) }
