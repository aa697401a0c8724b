package planner

import "slices"

// mapToNodes is the server mapping of EDL algorithm 3: the single GPUs that
// the batch at time 0 was placed on, sorted by falling finish time, become
// nodes of l consecutive GPUs each. From here on whole nodes are opened.
func (e *engine) mapToNodes() {
	c, m := e.calendar, &e.memory
	old := c.nodes
	c.nodes, m.spare = slices.Grow(m.spare[:0], len(old)), old
	c.free, c.owner, c.reservations = c.free[:0], c.owner[:0], nil
	clear(c.onByClass)
	m.byLatestFinish = slices.Grow(m.byLatestFinish[:0], len(old))[:len(old)]
	order := m.byLatestFinish
	for i := range order {
		order[i] = int32(i)
	}
	// By class, then by falling finish time; equal ones keep their opening order.
	SortByKey(order, func(n int32) float64 { return -old[n].last })
	if len(e.problem.Cluster.Classes) > 1 {
		SortByKey(order, func(n int32) float64 { return float64(old[n].class) })
	}
	m.mappedTo = slices.Grow(m.mappedTo[:0], len(old))[:len(old)]
	e.view.PerGPUMode, e.plan.Nodes = false, make([]PlannedNode, 0, len(old))
	e.placer = silentPlacer{}
	node, slot := -1, 0
	for _, single := range order {
		if node < 0 || slot == int(c.nodes[node].gpus) || c.nodes[node].class != old[single].class {
			node, slot = e.openNode(int(old[single].class), -1), 0
		}
		to := Part{Node: int32(node), GPUs: 1 << uint(slot)}
		m.mappedTo[single] = to
		c.holdGPUs(node, to.GPUs, old[single].last)
		c.nodes[node].off = max(c.nodes[node].off, old[single].off)
		slot++
	}
	for i := range e.plan.Assignments {
		if a := &e.plan.Assignments[i]; e.taken[i] {
			to := m.mappedTo[a.Node]
			a.Node, a.GPUs = to.Node, to.GPUs
			if c.keepsReservations {
				c.holdResources(int(to.Node), &e.problem.Tasks[i], int(a.Option), a.GPUs, e.view.Now, a.End)
			}
		}
	}
	if e.arrivals.next < len(e.arrivals.order) || len(e.waiting()) > 0 {
		e.makeStages()
	}
}

// silentPlacer is a Placer for the time of the mapping, and after it if nothing
// is left to be placed: no stage listens.
type silentPlacer struct{ Placer }

// Opened ignores the node.
func (silentPlacer) Opened(int) {}

// Closed ignores the node.
func (silentPlacer) Closed(int) {}
