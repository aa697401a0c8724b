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
			GPUs: float64(a.GPUs.Len()) * v.Problem.Tasks[task].Share,
		},
	}})
}

// dismiss removes a task that ended.
func (c *crew) dismiss(task int) {
	c.residents = slices.DeleteFunc(c.residents, func(r resident) bool { return r.pair.task == task })
}

// shadow is what is free of each class as the running tasks are expected to end,
// and what is kept for a task that comes first.
type shadow struct{ curves []curve }

// newShadow is the shadow of the tasks that run.
func newShadow(l *line, age *ages) *shadow {
	s, now := &shadow{curves: make([]curve, len(l.total))}, l.v.Now
	for class := range s.curves {
		s.curves[class] = curve{at: []float64{now}, free: []float64{l.total[class] - l.busy[class]}}
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

// first is the pair that can start first, and the step of its class's curve at
// which it does; none: no pair can.
func (s *shadow) first(pairs []pair) (best, at int) {
	best = none
	for i := range pairs {
		c := &s.curves[pairs[i].class]
		if step := c.earliest(pairs[i].GPUs, pairs[i].Time); step >= 0 &&
			(best == none || c.at[step] < s.curves[pairs[best].class].at[at]) {
			best, at = i, step
		}
	}
	return best, at
}

// soonest is when the first of a task's pairs can start; +Inf: never.
func (s *shadow) soonest(pairs []pair) float64 {
	best, at := s.first(pairs)
	if best == none {
		return math.Inf(1)
	}
	return s.curves[pairs[best].class].at[at]
}

// reserve keeps room for the pair that can start first.
func (s *shadow) reserve(pairs []pair) {
	if best, at := s.first(pairs); best != none {
		s.curves[pairs[best].class].book(at, pairs[best].GPUs, pairs[best].Time)
	}
}

// spares tells whether a pair that starts now leaves what is reserved.
func (s *shadow) spares(p *pair) bool { return s.curves[p.class].earliest(p.GPUs, p.Time) == 0 }
