package planner

import (
	"cmp"
	"math"
	"slices"
)

// complete completes a plan whose assignments and nodes are final: idle gaps are
// cut where switching off pays and the future is known, nodes that are always
// on stay on to the end, and status, misses and ledger are computed.
func (plan *Plan) complete(p *Problem, park Parker) {
	if p.Mode == Clairvoyant {
		plan.CutIdle(p)
	}
	plan.keepNodesOn(p, park)
	plan.addSleepers(p)
	slices.SortFunc(plan.Unplaced, func(a, b Unplaced) int { return cmp.Compare(a.Task, b.Task) })
	plan.Recount(p)
}

// Recount computes the ledger of a plan, which tasks miss their deadlines, and its
// status, from its assignments and nodes.
func (plan *Plan) Recount(p *Problem) {
	plan.Ledger, plan.Misses = account(p, plan)
	switch {
	case len(plan.Unplaced) > 0:
		plan.Status = Partial
	case len(plan.Misses) > 0:
		plan.Status = Missed
	default:
		plan.Status = Complete
	}
}

// CutIdle sets each node's intervals from what runs on it: on from its first
// start to its last end, off in gaps where sleeping and switching on again
// takes less than idling.
func (plan *Plan) CutIdle(p *Problem) {
	byNode := make([][]Interval, len(plan.Nodes))
	for i := range plan.Assignments {
		if a := &plan.Assignments[i]; a.Node >= 0 {
			for part := range a.Parts {
				byNode[part.Node] = append(byNode[part.Node], Interval{From: a.Start, To: a.End})
			}
		}
	}
	for n := range plan.Nodes {
		plan.Nodes[n].On = onIntervals(&p.Cluster.Classes[plan.Nodes[n].Class], byNode[n])
	}
}

// onIntervals joins runs whose gaps are too short to sleep in.
func onIntervals(k *NodeClass, runs []Interval) []Interval {
	slices.SortFunc(runs, func(a, b Interval) int { return cmp.Compare(a.From, b.From) })
	var on []Interval
	for _, run := range runs {
		run.From = max(0, run.From-k.TurnOnDelay)
		if n := len(on); n > 0 && !k.IsSleepWorthwhile(run.From-on[n-1].To) {
			on[n-1].To = max(on[n-1].To, run.To)
			continue
		}
		on = append(on, run)
	}
	return on
}

// IsSleepWorthwhile reports whether a gap of so many seconds costs more idling than
// switching the node off and on again.
func (k *NodeClass) IsSleepWorthwhile(gap float64) bool {
	saved := float64(k.GPUs)*float64(k.IdleW+k.HostW) - float64(k.SleepW)
	return gap > 0 && saved*gap > float64(k.TurnOn)*float64(k.GPUs)+saved*k.TurnOnDelay
}

// keepNodesOn leaves every node on from the start to the end of the plan if nodes
// never sleep.
func (plan *Plan) keepNodesOn(p *Problem, park Parker) {
	if !NeverSleeps(park, &p.Cluster) {
		return
	}
	plan.setAlwaysOn(p)
}

// NeverSleeps reports whether nodes of a cluster are on all the time.
func NeverSleeps(park Parker, c *Cluster) bool { return math.IsInf(park.OffAt(c, 0), 1) }

// KeepNodesOn has every node of a finished plan on from its start to its end, as if nodes never slept.
func (plan *Plan) KeepNodesOn(p *Problem) {
	plan.setAlwaysOn(p)
	plan.Recount(p)
}

func (plan *Plan) setAlwaysOn(p *Problem) {
	end := 0.0
	for i := range plan.Assignments {
		if plan.Assignments[i].Node >= 0 {
			end = max(end, plan.Assignments[i].End)
		}
	}
	plan.addUnused(p)
	for n := range plan.Nodes {
		plan.Nodes[n].On = []Interval{{From: 0, To: end}}
	}
}

// addSleepers adds the nodes of limited classes that nothing runs on, where
// sleeping takes energy.
func (plan *Plan) addSleepers(p *Problem) {
	if slices.ContainsFunc(p.Cluster.Classes, func(k NodeClass) bool { return k.SleepW > 0 }) {
		plan.addUnused(p)
	}
}

// addUnused adds the nodes of limited classes that the plan doesn't use yet.
func (plan *Plan) addUnused(p *Problem) {
	used := make([]int, len(p.Cluster.Classes))
	for i := range plan.Nodes {
		used[plan.Nodes[i].Class]++
	}
	for class := range p.Cluster.Classes {
		for range p.Cluster.Classes[class].Count - used[class] {
			plan.Nodes = append(plan.Nodes, PlannedNode{Class: class})
		}
	}
}

// nameBounds adds to the reasons of tasks that are bound, or late, what bounds them, and
// to those of tasks without a model that others stand for it. Stages don't: they know the
// room that is left and a response, not where these come from.
func (plan *Plan) nameBounds(p *Problem) {
	for i := range plan.Assignments {
		a := &plan.Assignments[i]
		a.Reason.Prior = a.Node >= 0 && p.Tasks[i].Options[a.Option].Prior
		if a.Node >= 0 && (a.Reason.Clocks == ClocksDeadline || a.Reason.Clocks == ClocksLate) {
			a.Reason.Bound, a.Reason.Margin = p.Tasks[i].bound(a.Start)
		}
	}
}

// dropUnused leaves out the nodes that were never on.
func (plan *Plan) dropUnused() {
	to := make([]int, len(plan.Nodes))
	kept := plan.Nodes[:0]
	for n := range plan.Nodes {
		to[n] = len(kept)
		if len(plan.Nodes[n].On) > 0 {
			kept = append(kept, plan.Nodes[n])
		}
	}
	plan.Nodes = kept
	for i := range plan.Assignments {
		if a := &plan.Assignments[i]; a.Node >= 0 {
			a.Node = int32(to[a.Node])
			for k := range a.More {
				a.More[k].Node = int32(to[a.More[k].Node])
			}
		}
	}
	if plan.Shared == nil {
		return
	}
	for i := range plan.Shared.ClockIntervals {
		s := &plan.Shared.ClockIntervals[i]
		s.Node = to[s.Node]
	}
}
