package improve

import "github.com/epplan/epplan/planner"

// subplan is the part of a plan that can be aligned by itself: nodes of a class,
// on from 0 to the end of their last tasks, and their tasks, each of which
// takes one whole GPU and could be on any of those nodes at any time.
type subplan struct {
	class    int
	tasks    []int
	nodes    []bool // by node of the plan
	used     int    // how many nodes
	maxNodes int    // how many there may be; 0: any number
}

// subplanOf finds the island of a class. ok is false when there is none.
func subplanOf(p *planner.Problem, plan *planner.Plan, class int) (isle *subplan, ok bool) {
	if p.Start != planner.StartContinuous || plan.Status != planner.Complete || len(p.Tasks) > mostTasks {
		return nil, false
	}
	isle = &subplan{class: class, nodes: make([]bool, len(plan.Nodes))}
	k := &p.Cluster.Classes[class]
	last := lastEnds(plan)
	foreign := make([]bool, len(plan.Nodes))
	for i := range plan.Assignments {
		a := &plan.Assignments[i]
		foreign[a.Node] = foreign[a.Node] || !isMovable(&p.Tasks[i], k)
	}
	others := 0
	for n := range plan.Nodes {
		if plan.Nodes[n].Class != class {
			continue
		}
		if isle.nodes[n] = !foreign[n] && isOnToLastEnd(&plan.Nodes[n], last[n]); isle.nodes[n] {
			isle.used++
		} else {
			others++
		}
	}
	if k.Count > 0 {
		isle.maxNodes = k.Count - others
	}
	for i := range plan.Assignments {
		if isle.nodes[plan.Assignments[i].Node] {
			isle.tasks = append(isle.tasks, i)
		}
	}
	return isle, len(isle.tasks) > 0
}

// isMovable reports whether a task is there from the start and takes one whole GPU,
// and no more of the node's cores and memory than every GPU has.
func isMovable(t *planner.Task, k *planner.NodeClass) bool {
	o := t.Option(k.Model)
	gpus := float64(k.GPUs)
	return o >= 0 && t.Options[o].GPUs == 1 && t.Arrival == 0 && t.Share == 1 &&
		(k.CPUs == 0 || t.CPUs*gpus <= k.CPUs) && (k.MemGiB == 0 || t.MemGiB*gpus <= k.MemGiB)
}

// lastEnds returns when the last task of each node ends; 0: it has none.
func lastEnds(plan *planner.Plan) []float64 {
	last := make([]float64, len(plan.Nodes))
	for i := range plan.Assignments {
		if a := &plan.Assignments[i]; a.Node >= 0 {
			for part := range a.Parts {
				last[part.Node] = max(last[part.Node], a.End)
			}
		}
	}
	return last
}

// isOnToLastEnd reports whether a node is on once, from 0 until its last task ends.
func isOnToLastEnd(n *planner.PlannedNode, last float64) bool {
	return len(n.On) == 1 && n.On[0].From == 0 && n.On[0].To <= last*(1+roundOff)
}

// nodeCounts returns the numbers of nodes that are worth trying: around what the
// plan uses.
func (isle *subplan) nodeCounts(p *planner.Problem) []int {
	l := p.Cluster.Classes[isle.class].GPUs
	most := (len(isle.tasks) + l - 1) / l
	if isle.maxNodes > 0 {
		most = min(most, isle.maxNodes)
	}
	used := isle.used
	tries := []int{used - 2, used - 1, used, used + 1, used + 2, used + 2 + used/20, used + 2 + used/8}
	if len(isle.tasks) > largeBatch {
		tries = []int{used, used + 2 + used/20}
	}
	var counts []int
	last := 0
	for _, n := range tries {
		if n > last && n <= most {
			counts = append(counts, n)
			last = n
		}
	}
	return counts
}
