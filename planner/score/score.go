package score

import (
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
)

// Scorer judges placing a task on a node that it fits on. Its answer depends on
// the demand and on the node's state alone, memory and the order of the GPUs
// aside, so that it can be remembered until the node changes and holds for
// other nodes in the same state. See [Adaptive] for scorers that look further.
type Scorer interface {
	// Score is higher for better nodes. The set names the GPUs that the scorer
	// would give to a task that shares one; empty where it doesn't care.
	Score(d *fleet.Demand, n *fleet.Node) (score float64, gpus planner.GPUSet)
	// Stretch maps a score onto 0..100 when the scores of the nodes that the
	// task fits on lie from lowest to highest; it keeps their order. Scorers
	// that don't compare nodes return the score: see [Absolute].
	Stretch(score, lowest, highest float64) float64
}

// Chooser finds nodes for tasks on one cluster and keeps the cluster's state.
// It is not safe for concurrent use.
type Chooser interface {
	// Choose is the best node for a task and the GPUs that it gets there; ok is
	// false when it fits nowhere. Nothing is placed yet.
	Choose(d *fleet.Demand) (node int, gpus planner.GPUSet, ok bool)
	// Place, Release, Sleep and Wake change the state; see [fleet.State].
	Place(node int, d *fleet.Demand, gpus planner.GPUSet) error
	Release(node int, d *fleet.Demand, gpus planner.GPUSet)
	Sleep(node int)
	Wake(node int)
	// State is the cluster. The caller must change it through the chooser only.
	State() *fleet.State
}
