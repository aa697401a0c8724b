package planner

import (
	"math"

	"github.com/epplan/epplan/dvfsmodel"
)

// AnyClass is what [View.RestrictedClass] answers for a task that may go to every class
// that suits it.
const AnyClass = -1

// RestrictToClass lets Pick offer a task for one node class only, or for [AnyClass]
// again. Until it is confined otherwise, the view answers as if no other class
// suited the task.
func (v *View) RestrictToClass(task, class int) {
	if v.RestrictedClass(task) == class {
		return
	}
	if v.restricted == nil {
		v.restricted = make([]int, len(v.Problem.Tasks))
	}
	v.restricted[task] = class + 1
	clear(v.asked[task*v.classes : (task+1)*v.classes])
}

// RestrictedClass is the class that a task is offered for, or [AnyClass].
func (v *View) RestrictedClass(task int) int {
	if v.restricted == nil {
		return AnyClass
	}
	return v.restricted[task] - 1
}

// CanRunOn reports whether an empty node of a class has room for a task, and the
// task would keep its limit there.
func (v *View) CanRunOn(task, class int) bool {
	option, t := v.Option(task, class), &v.Problem.Tasks[task]
	if !v.Problem.Cluster.Classes[class].HasRoom(t, option) {
		return false
	}
	return math.IsInf(t.Limit, 1) ||
		dvfsmodel.MeetsLimit(v.Tuner.Fastest(task, option, class).Point.Time, t.Limit)
}

// Prediction is what a task takes on a class at the clocks that Tune would set
// if it started at its arrival.
type Prediction struct {
	Time   float64         // seconds
	Energy dvfsmodel.Joule // of all its GPUs
	GPUs   float64         // that it occupies: how many, or the share of one
}

// Predict is what a task takes on a class that suits it: see [View.CanRunOn]. Where
// its due time can't be met the clocks are the fastest.
func (v *View) Predict(task, class int) Prediction {
	want, option, ok := v.Wanted(task, class)
	q := *want
	if !ok {
		q = v.Tuner.Fastest(task, option, class)
	}
	t := &v.Problem.Tasks[task]
	gpus := float64(t.Options[option].GPUs) * t.Share
	return Prediction{Time: q.Point.Time, Energy: q.Point.Energy * dvfsmodel.Joule(gpus), GPUs: gpus}
}
