package planner

import (
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/sharing"
)

// Tuner decides clocks. Its answers depend on nothing but the question, so that
// they can be remembered. A question names a task, one of its options and a node
// class with the option's GPU model, all by index; room is in seconds.
type Tuner interface {
	// Want is the point that the task would have with room seconds to run: its
	// own optimum, free or limited. ok is false when no clocks that the tuner
	// would set meet the room.
	Want(task, option, class int, room float64) (q Quote, ok bool)
	// Fit answers a room shorter than what the task wants. ok is false when
	// the tuner would rather have the task elsewhere.
	Fit(task, option, class int, want Quote, room float64) (q Quote, ok bool)
	// Fastest is the quickest point that the tuner would set, for a task that
	// is late anyway.
	Fastest(task, option, class int) Quote
}

// SharedClockTuner is a Tuner that also sets the clock of GPUs that tasks share. Others
// leave those at the highest frequency.
type SharedClockTuner interface {
	Tuner
	// Clock is the frequency of a GPU with those tasks. It is asked again
	// whenever one of them begins or ends.
	Clock(running *sharing.State, gpu int) dvfsmodel.MHz
}

// Quote is an offer by Tune: a setting with its run time and energy, and why.
type Quote struct {
	Point  dvfsmodel.Point
	Clocks ClockReason
	Want   float64 // run time at the task's own optimum, seconds
}
