package planner

import (
	"context"
	"math/rand/v2"

	"github.com/epplan/epplan/dvfsmodel"
)

// Policy is one choice for each question that a scheduler answers. The stages
// are constructors: each run of the engine gets its own, so a Policy is
// immutable and can be used by many goroutines.
type Policy struct {
	Name  string
	Tune  func(*Problem) Tuner
	Place func(*View) Placer
	Pick  func(*View, Placer) Picker
	Park  Parker
	// Map groups the GPUs that a batch at time 0 uses into nodes after it was
	// placed on single GPUs (EDL algorithm 3), where the tasks allow it.
	Map bool
	// Share lets Place put tasks with profiles on GPUs together, on node classes
	// that allow it. Such a Place is an [EndObserver].
	Share bool
	// Improve reworks a finished offline plan; nil leaves it as it is.
	Improve Improver
	// Hindsight has Improve rework online plans too. It knows what only is known at
	// the end: such plans are there to hold others against, nobody could have made them.
	Hindsight bool
}

// Picker decides which waiting task is offered next.
type Picker interface {
	// Arrive hands over the tasks that arrived at this instant, in input order;
	// none when the picker is woken. The picker may reorder and keep the slice.
	// Stages that are made anew in the middle of a run are first handed the
	// tasks that wait.
	Arrive(tasks []int)
	// Next is the task to offer now, by index: one that arrived and was neither
	// placed nor rejected. ok is false when nothing more is to be offered before
	// the next event.
	Next() (task int, ok bool)
	// Refused returns a task whose offer Place wants to answer later.
	Refused(task int)
	// Wake is when the picker wants to be asked again if nothing else happens,
	// seconds; +Inf: not at all.
	Wake() float64
}

// TaskObserver is a Picker that also wants to be told of starts and ends, whichever
// way they came about. For such a one ends are events: it is asked again after
// each.
type TaskObserver interface {
	Picker
	// Committed tells that a placement took effect. The end is as predicted.
	Committed(task int, a *Assignment)
	// Finished tells that a task has ended, before anything else happens at
	// that time.
	Finished(task int, a *Assignment)
}

// Placer decides where an offered task runs.
type Placer interface {
	// Opened tells that a node is on; all its GPUs are free from View.FreeFrom.
	Opened(node int)
	// Closed tells that a node is off.
	Closed(node int)
	// Place answers an offer.
	Place(task int) (Placement, Verdict)
	// Committed tells that a placement took effect.
	Committed(task int, a *Assignment)
}

// EndObserver is a Placer that also wants to be told when tasks end. Only for such
// a one are ends events: what waits is offered again after each.
type EndObserver interface {
	Placer
	// Finished tells that a task has ended, before anything else happens at
	// that time.
	Finished(task int, a *Assignment)
}

// ClusterChecker is a Placer that can't place on every cluster. It is asked before
// anything else; an error is a [ClassError].
type ClusterChecker interface {
	Placer
	CheckCluster() error
}

// ClassError says why a policy can't place on a cluster with a node class.
type ClassError struct {
	Class int // of the cluster's
	Msg   string
}

// Error returns what the policy says, without the name of the class.
func (e *ClassError) Error() string { return e.Msg }

// Verdict is Place's answer to an offer.
type Verdict uint8

// Start commits the placement, now or as a reservation. Wait returns the task
// to Pick. Reject gives it up: it fits nowhere.
const (
	Start Verdict = iota
	Wait
	Reject
)

// Placement is a place and clocks for a task.
type Placement struct {
	Node   int     // a node that is on, or -1 to switch one of Class on
	Class  int     // index in Cluster.Classes
	Option int     // index in Task.Options
	GPUs   GPUSet  // of the node, as many as the option needs of each
	More   []Part  // further nodes of Class, likewise, of a task on several: each another one
	Start  float64 // seconds; after now, it is a reservation
	Point  dvfsmodel.Point
	Reason Reason
	// Shared lets the task run beside others on GPUs that are shared by profile.
	// The node may then also be one that is off.
	Shared bool
}

// Parker decides when an idle node goes to sleep.
type Parker interface {
	// OffAt is when a node goes off whose last task ends at the given time, not
	// before that, seconds; +Inf: never.
	OffAt(c *Cluster, lastEnd float64) float64
}

// AdaptiveParker is a Parker that looks at the run: how long a node waits may depend
// on its class and on what came before.
type AdaptiveParker interface {
	Parker
	// NewNodeParker is the parker of one run.
	NewNodeParker(v *View) NodeParker
}

// NodeParker decides when an idle node goes to sleep.
type NodeParker interface {
	// OffAt is when the node goes off whose last task ended at the given time;
	// +Inf: never. It is asked until the node is off or gets another task.
	OffAt(node int, lastEnd float64) float64
	// Busy tells that a node gets a task now.
	Busy(node int)
}

// Improver reworks a complete plan into one that costs less and that package check
// accepts. It returns the plan it was given when it finds nothing better.
type Improver interface {
	Improve(ctx context.Context, p *Problem, plan *Plan, rng *rand.Rand) (*Plan, error)
}
