package planner

import (
	"cmp"
	"math"
	"slices"
)

func (e *engine) placeRunning(n *Snapshot) {
	running := make([]int, len(n.Running))
	for i := range running {
		running[i] = i
	}
	SortByKey(running, func(i int) float64 { return n.Running[i].Start })
	e.arrivals.next = len(running) // they come first in the order
	at := packRunning(e.view, running)
	nodes := make([]int, 0, len(running)) // by number in at: of the view
	for _, i := range running {
		r := &n.Running[i]
		if at[i] == nil {
			e.giveUp(r.Task, "nodes have no room for it though it runs", math.Inf(1))
			continue
		}
		e.view.Now = r.Start
		for _, node := range at[i] {
			for node >= len(nodes) {
				nodes = append(nodes, -1)
			}
		}
		before := len(e.calendar.nodes)
		pl := placementOfRunning(e.view, r, at[i], nodes)
		e.commit(r.Task, &pl)
		for _, node := range at[i] {
			if nodes[node] < 0 {
				nodes[node], before = before, before+1 // they are switched on in this order
			}
		}
	}
	e.view.Now, e.begun = n.Now, true
}

// packRunning finds nodes for the tasks that run, by index: numbers of nodes, which are switched
// on for them; nil where too few have room. Which ones they run on isn't known: each task
// takes the first nodes of its class that have enough GPUs left, in the given order, or,
// where that leaves tasks out, those first that take most of a node.
func packRunning(v *View, order []int) [][]int {
	at, left := firstFit(v, order)
	if left == 0 {
		return at
	}
	widest := slices.Clone(order)
	size := func(i int) (perNode, nodes int) {
		r := &v.Problem.Snapshot.Running[i]
		if option := v.Option(r.Task, r.Class); option >= 0 {
			o := &v.Problem.Tasks[r.Task].Options[option]
			perNode, nodes = o.PerNode(), o.NodeCount()
		}
		return perNode, nodes
	}
	slices.SortStableFunc(widest, func(i, j int) int {
		a, more := size(i)
		b, nodes := size(j)
		return cmp.Or(cmp.Compare(b, a), cmp.Compare(nodes, more))
	})
	if other, fewer := firstFit(v, widest); fewer < left {
		return other
	}
	return at
}

// firstFit is packRunning in an order. left is how many tasks it leaves out.
func firstFit(v *View, order []int) (at [][]int, left int) {
	type room struct{ class, gpus int }
	var rooms []room
	at, on := make([][]int, len(order)), make([]int, len(v.Problem.Cluster.Classes))
	for _, i := range order {
		r := &v.Problem.Snapshot.Running[i]
		t, k := &v.Problem.Tasks[r.Task], &v.Problem.Cluster.Classes[r.Class]
		option := v.Option(r.Task, r.Class)
		if !k.HasRoom(t, option) {
			left++
			continue
		}
		o := &t.Options[option]
		var nodes []int
		for number := 0; number < len(rooms) && len(nodes) < o.NodeCount(); number++ {
			if rooms[number].class == r.Class && rooms[number].gpus >= o.PerNode() {
				nodes = append(nodes, number)
			}
		}
		fresh := o.NodeCount() - len(nodes)
		if k.Count > 0 && on[r.Class]+fresh > k.Count {
			left++
			continue
		}
		on[r.Class] += fresh
		for range fresh {
			nodes, rooms = append(nodes, len(rooms)), append(rooms, room{r.Class, k.GPUs})
		}
		for _, number := range nodes {
			rooms[number].gpus -= o.PerNode()
		}
		at[i] = nodes
	}
	return at, left
}

// placementOfRunning returns the placement of a task that runs, on nodes by number, of which those below 0
// are to be switched on.
func placementOfRunning(v *View, r *RunningTask, at, nodes []int) Placement {
	t, option := &v.Problem.Tasks[r.Task], v.Option(r.Task, r.Class)
	pl := Placement{
		Class: r.Class, Option: option, Start: r.Start, Point: t.Options[option].Response.Default(),
		Reason: Reason{Place: PlaceRuns},
	}
	pl.Point.Time = r.End - r.Start
	pl.Point.Energy = pl.Point.Power.Over(pl.Point.Time)
	count := t.Options[option].PerNode()
	for i, number := range at {
		part := Part{-1, FirstGPUs(count)}
		if node := nodes[number]; node >= 0 {
			part = Part{int32(node), freeGPUsAt(v, node, count)}
		}
		if i == 0 {
			pl.Node, pl.GPUs = int(part.Node), part.GPUs
		} else {
			pl.More = append(pl.More, part)
		}
	}
	return pl
}

// freeGPUsAt are up to count GPUs of a node that is on which are free at the present.
func freeGPUsAt(v *View, node, count int) (free GPUSet) {
	n := v.Node(node)
	for g := 0; g < n.GPUs && free.Len() < count; g++ {
		if v.FreeFrom(n.FirstGPU+g) <= max(v.Problem.Snapshot.Now, n.Ready) {
			free |= 1 << uint(g)
		}
	}
	return free
}
