package planner

import "slices"

// mapToNodes is the server mapping of EDL algorithm 3: the single GPUs that
// the batch at time 0 was placed on, sorted by falling finish time, become
// nodes of l consecutive GPUs each. From here on whole nodes are opened.
func (e *engine) mapToNodes() {
	v := e.view
	old := v.renew()
	v.falls = slices.Grow(v.falls[:0], len(old))[:len(old)]
	order := v.falls
	for i := range order {
		order[i] = int32(i)
	}
	// By class, then by falling finish time; equal ones keep their opening order.
	Order(order, func(n int32) float64 { return -old[n].last })
	if len(e.problem.Cluster.Classes) > 1 {
		Order(order, func(n int32) float64 { return float64(old[n].class) })
	}
	v.homes = slices.Grow(v.homes[:0], len(old))[:len(old)]
	v.single = false
	v.held, e.plan.Nodes = nil, make([]Node, 0, len(old))
	clear(v.onByClass)
	e.placer = unobserved{}
	slot := 0
	for i, single := range order {
		class := int(old[single].class)
		gpus := e.problem.Cluster.Classes[class].GPUs
		if i == 0 || slot == gpus || v.nodes[len(v.nodes)-1].class != old[single].class {
			e.open(class)
			slot = 0
		}
		n := &v.nodes[len(v.nodes)-1]
		v.homes[single] = place{node: int32(len(v.nodes) - 1), gpus: 1 << uint(slot)}
		v.free[int(n.first)+slot] = old[single].last
		n.last = max(n.last, old[single].last)
		n.off = max(n.off, old[single].off)
		slot++
	}
	for i := range e.plan.Assignments {
		if a := &e.plan.Assignments[i]; v.taken[i] {
			to := v.homes[a.Node]
			a.Node, a.GPUs = to.node, to.gpus
			if v.books {
				v.book(int(to.node), i, int(a.Option), a.GPUs, a.End)
			}
		}
	}
	if e.next < len(e.order) || len(e.waiting()) > 0 {
		e.makeStages()
	}
}

// place is where a single GPU went.
type place struct {
	node int32
	gpus GPUSet
}

// unobserved is a Placer for the time of the mapping, and after it if nothing
// is left to be placed: no stage listens.
type unobserved struct{ Placer }

// Opened ignores the node.
func (unobserved) Opened(int) {}

// Closed ignores the node.
func (unobserved) Closed(int) {}
