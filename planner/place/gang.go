package place

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// A task on several nodes, a gang, starts on all of them at once and at the same
// clocks. Every Place stage of this package puts it where enough nodes of one class
// are free together, whatever its rule for tasks of one node: those that book GPUs
// ahead by [placeGang], those that start tasks at once by [startGangNow].

// gangNode is what a node has for a gang, or for a task of one node among them.
type gangNode struct {
	node  int // -1: one that is off
	gpus  planner.GPUSet
	start float64 // from when on, seconds
	left  int     // GPUs of it that nothing runs on, where that counts
}

// gangRule ranks places of a gang by how it would run there: the least first, by the
// first number and then by the second.
type gangRule func(start, end, cost float64, inTime bool) [2]float64

// gangSoonest takes the place where a gang starts first, and then the cheapest.
func gangSoonest(start, _, cost float64, _ bool) [2]float64 { return [2]float64{start, cost} }

// gangCheapest takes the cheapest place that meets the due time, else the one where
// the gang ends first.
func gangCheapest(_, end, cost float64, inTime bool) [2]float64 {
	if inTime {
		return [2]float64{0, cost}
	}
	return [2]float64{1, end}
}

// placeGang books nodes for a gang: the best by the rule of those that are on and of
// fresh ones.
func placeGang(v *planner.View, task int, rule gangRule) (planner.Placement, planner.Verdict) {
	var best planner.Placement
	least := [2]float64{math.Inf(1), math.Inf(1)}
	for class, option := range appendOptions(v, nil, task) {
		if option < 0 || !v.CanRunOn(task, class) {
			continue
		}
		on := gangNodes(v, task, option, class)
		nodes := v.Problem.Tasks[task].Options[option].NodeCount()
		for fresh := max(0, nodes-len(on)); fresh <= min(nodes, v.SleepingCount(class)); fresh++ {
			spots := assembleGang(v, task, option, class, on, nodes, fresh)
			pl, inTime := placeTogether(v, task, option, class, spots)
			cost := gangCost(v, task, &pl, spots)
			if rank := rule(pl.Start, pl.Start+pl.Point.Time, cost,
				inTime); slices.Compare(rank[:], least[:]) < 0 {
				least, best = rank, pl
			}
		}
	}
	if best.Point.Time == 0 {
		return best, planner.Reject
	}
	return best, planner.Start
}

// gangNodes returns the nodes of a class that are on, those first that are free first.
func gangNodes(v *planner.View, task, option, class int) []gangNode {
	var on []gangNode
	for node := range v.NodeCount() {
		if n := v.Node(node); n.Class != class || !n.On {
			continue
		}
		if start, gpus, ok := v.Earliest(task, option, node); ok {
			on = append(on, gangNode{node: node, gpus: gpus, start: start})
		}
	}
	slices.SortStableFunc(on, func(a, b gangNode) int { return cmp.Compare(a.start, b.start) })
	return on
}

// assembleGang is so many nodes of which some are fresh: they are free together as soon
// as they can be, and of those that are by then the ones that wait least.
func assembleGang(v *planner.View, task, option, class int, on []gangNode, nodes, fresh int) []gangNode {
	spots := make([]gangNode, 0, nodes)
	from := nodes - fresh // nodes that are on
	if fresh > 0 {
		start := v.StartOnNew(task, class)
		for from < len(on) && on[from].start <= start {
			from++
		}
		for range fresh {
			spots = append(spots, gangNode{
				node: -1, gpus: planner.FirstGPUs(v.Problem.Tasks[task].Options[option].PerNode()),
				start: start,
			})
		}
	}
	for from > 0 && from < len(on) && on[from].start == on[from-1].start {
		from++
	}
	used := on[from-(nodes-fresh) : from]
	return append(slices.Clone(used), spots...)
}

// placeTogether places a gang on nodes, from when on all of them are free. inTime tells
// whether it meets its due time there.
func placeTogether(
	v *planner.View, task, option, class int, spots []gangNode,
) (pl planner.Placement, inTime bool) {
	start := 0.0
	for i := range spots {
		start = max(start, spots[i].start)
	}
	q, room, why := quoteOrFastest(v, task, option, class, start, planner.PlaceTogether)
	pl = newPlacement(spots[0].node, class, option, spots[0].gpus, start, &q, room, why)
	for _, s := range spots[1:] {
		pl.More = append(pl.More, planner.Part{Node: int32(s.node), GPUs: s.gpus})
	}
	return pl, why != planner.PlaceLate
}

// gangCost returns what a gang's run and its wait cost by the objective, with the idle time
// of the GPUs that wait for the last node, and, as in [Marginal], what it takes to switch
// nodes on.
func gangCost(v *planner.View, task int, pl *planner.Placement, spots []gangNode) float64 {
	p := v.Problem
	k := &p.Cluster.Classes[pl.Class]
	idle := idleCost(v, pl.Class)
	q := planner.Quote{Point: pl.Point}
	cost := taskCost(p, task, pl.Option, pl.Class, &q) + waitCost(v, task, pl.Option, pl.Start)
	for i := range spots {
		s := &spots[i]
		waits := float64(s.gpus.Len())
		if s.node < 0 {
			waits = float64(k.GPUs)
			cost += freshIdleWeight * idle * float64(k.GPUs-s.gpus.Len()) * pl.Point.Time
			if p.Mode != planner.Offline || p.Cluster.OfflineTurnOn {
				cost += 2*turnOnCost(v, pl.Class)*waits + idle*waits*k.TurnOnDelay
			}
		}
		cost += idle * waits * (pl.Start - s.start)
	}
	return cost
}

type capacityNow interface {
	// canUseClass reports whether a class is one for the task.
	canUseClass(task, class int) bool
	// freeGPUsFor is what a node that is on has for the task: GPUs, and how many are free in
	// all; ok is false where it lacks something.
	freeGPUsFor(task, node, option int) (gpus planner.GPUSet, free int, ok bool)
}

// startGangNow starts a gang at once on the nodes of the class where it costs least, or
// leaves it waiting. It takes nodes that are on first, those with the fewest GPUs
// left.
func startGangNow(v *planner.View, task int, r capacityNow) (planner.Placement, planner.Verdict) {
	var best planner.Placement
	least, suits := math.Inf(1), false
	for class, option := range appendOptions(v, nil, task) {
		if option < 0 || !v.CanRunOn(task, class) || !r.canUseClass(task, class) {
			continue
		}
		suits = true
		spots := gangNodesNow(v, task, option, class, r)
		if spots == nil {
			continue
		}
		pl, _ := placeTogether(v, task, option, class, spots)
		q := planner.Quote{Point: pl.Point}
		if cost := taskCost(v.Problem, task, option, class, &q); cost < least {
			least, best = cost, pl
		}
	}
	return best, verdictNow(v, task, !math.IsInf(least, 1), suits)
}

// verdictNow returns the answer to an offer of a stage that starts tasks at once: where it
// found a place, the task starts; where a class suits, or the task belongs to one, it
// may wait for a place.
func verdictNow(v *planner.View, task int, found, suits bool) planner.Verdict {
	switch {
	case found:
		return planner.Start
	case suits || v.RestrictedClass(task) != planner.AnyClass:
		return planner.Wait
	}
	return planner.Reject
}

// gangNodesNow are nodes of a class for a gang that starts now; nil: there are too few.
func gangNodesNow(v *planner.View, task, option, class int, r capacityNow) []gangNode {
	need := &v.Problem.Tasks[task].Options[option]
	var spots []gangNode
	for node := range v.NodeCount() {
		if n := v.Node(node); n.Class != class || !n.On {
			continue
		}
		if gpus, left, ok := r.freeGPUsFor(task, node, option); ok {
			spots = append(spots, gangNode{
				node: node, gpus: gpus, start: earliestStartOn(v, task, class, node),
				left: left,
			})
		}
	}
	slices.SortStableFunc(spots, func(a, b gangNode) int { return cmp.Compare(a.left, b.left) })
	spots = spots[:min(len(spots), need.NodeCount())]
	for sleeping := v.SleepingCount(class); len(spots) < need.NodeCount(); sleeping-- {
		if sleeping == 0 {
			return nil
		}
		spots = append(spots, gangNode{
			node: -1, gpus: planner.FirstGPUs(need.PerNode()), start: v.StartOnNew(task, class),
		})
	}
	return spots
}
