package planner

import "slices"

// mapToNodes is the server mapping of EDL algorithm 3: the single GPUs that
// the batch at time 0 was placed on, sorted by falling finish time, become
// nodes of l consecutive GPUs each. From here on whole nodes are opened.
func (e *engine) mapToNodes() {
	v := e.view
	old := v.renew()
	v.byLatestFinish = slices.Grow(v.byLatestFinish[:0], len(old))[:len(old)]
	order := v.byLatestFinish
	for i := range order {
		order[i] = int32(i)
	}
	// By class, then by falling finish time; equal ones keep their opening order.
	SortByKey(order, func(n int32) float64 { return -old[n].last })
	if len(e.problem.Cluster.Classes) > 1 {
		SortByKey(order, func(n int32) float64 { return float64(old[n].class) })
	}
	v.mappedTo = slices.Grow(v.mappedTo[:0], len(old))[:len(old)]
	v.perGPUMode = false
	v.reservations, e.plan.Nodes = nil, make([]Node, 0, len(old))
	clear(v.onByClass)
	e.placer = silentPlacer{}
	slot := 0
	for i, single := range order {
		class := int(old[single].class)
		gpus := e.problem.Cluster.Classes[class].GPUs
		if i == 0 || slot == gpus || v.nodes[len(v.nodes)-1].class != old[single].class {
			e.openNode(class)
			slot = 0
		}
		n := &v.nodes[len(v.nodes)-1]
		v.mappedTo[single] = gpuPlace{node: int32(len(v.nodes) - 1), gpus: 1 << uint(slot)}
		v.free[int(n.first)+slot] = old[single].last
		n.last = max(n.last, old[single].last)
		n.off = max(n.off, old[single].off)
		slot++
	}
	for i := range e.plan.Assignments {
		if a := &e.plan.Assignments[i]; v.taken[i] {
			to := v.mappedTo[a.Node]
			a.Node, a.GPUs = to.node, to.gpus
			if v.keepsReservations {
				v.book(int(to.node), i, int(a.Option), a.GPUs, a.End)
			}
		}
	}
	if e.next < len(e.order) || len(e.waiting()) > 0 {
		e.makeStages()
	}
}

// gpuPlace is where a single GPU went.
type gpuPlace struct {
	node int32
	gpus GPUSet
}

// silentPlacer is a Placer for the time of the mapping, and after it if nothing
// is left to be placed: no stage listens.
type silentPlacer struct{ Placer }

// Opened ignores the node.
func (silentPlacer) Opened(int) {}

// Closed ignores the node.
func (silentPlacer) Closed(int) {}
