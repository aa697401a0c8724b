package replay

import "github.com/epplan/epplan/planner"

// DecisionLog keeps the decisions of a run.
type DecisionLog struct{ Decisions []Decision }

// Decision is where an arrival was placed.
type Decision struct {
	Node int32 // -1: dropped
	GPUs planner.GPUSet
}

// Observe keeps a decision.
func (l *DecisionLog) Observe(e *Event) {
	d := Decision{Node: -1}
	if e.Drop == Placed {
		d = Decision{Node: int32(e.Node), GPUs: e.GPUs}
	}
	l.Decisions = append(l.Decisions, d)
}
