package planner

import (
	"fmt"
	"math"
)

// Present is a cluster at work: plans go on from there. Tasks that arrived
// before Now wait since, or run. Nodes on which something runs are on and ready.
type Present struct {
	Now     float64 // seconds; 0 offline
	Running []Running
}

// Running is a task that runs: since when, on which node class, and until when as
// it is predicted now. One for which the cluster has no room left is listed as
// unplaced, and the plan goes on without it.
type Running struct {
	Task, Class int
	Start, End  float64 // seconds; End is after the present
}

// validate reports the first thing that makes no sense of a problem.
func (n *Present) validate(p *Problem) error {
	if p.Mode == Clairvoyant {
		return fmt.Errorf("a plan from the present is online or offline, not %s", p.Mode)
	}
	if p.Mode == Offline && n.Now != 0 {
		return fmt.Errorf("the present of an offline plan is at %v s, want 0", n.Now)
	}
	if !(n.Now >= 0) || math.IsInf(n.Now, 0) {
		return fmt.Errorf("the present is at %v s, want a finite number of 0 or more", n.Now)
	}
	seen := make(map[int]bool, len(n.Running))
	for _, r := range n.Running {
		if r.Task < 0 || r.Task >= len(p.Tasks) || seen[r.Task] {
			return fmt.Errorf("task %d runs, want one of %d, each once", r.Task, len(p.Tasks))
		}
		seen[r.Task] = true
		t := &p.Tasks[r.Task]
		if r.Class < 0 || r.Class >= len(p.Cluster.Classes) || t.Option(p.Cluster.Classes[r.Class].Model) < 0 {
			return fmt.Errorf("job %q runs on node class %d, which doesn't suit it", t.ID, r.Class)
		}
		if !(r.Start >= t.Arrival) || !(r.Start <= n.Now) || !(r.End > n.Now) || math.IsInf(r.End, 0) {
			return fmt.Errorf("job %q runs from %v to %v s, want it from its arrival, %v, or later, and beyond %v", t.ID, r.Start, r.End, t.Arrival, n.Now)
		}
	}
	return nil
}

// Runs tells by task which ones run at the present; nil where none does.
func (p *Problem) Runs() []bool {
	if p.Present == nil || len(p.Present.Running) == 0 {
		return nil
	}
	runs := make([]bool, len(p.Tasks))
	for _, r := range p.Present.Running {
		runs[r.Task] = true
	}
	return runs
}

// arrivals puts the tasks that run before all others in the order of arrival.
func (n *Present) arrivals(order []int) {
	runs := make(map[int]bool, len(n.Running))
	for _, r := range n.Running {
		runs[r.Task] = true
	}
	Front(order, func(task int) bool { return runs[task] })
}

// begin places the tasks that run, by start.
func (e *engine) begin(n *Present) {
	running := make([]int, len(n.Running))
	for i := range running {
		running[i] = i
	}
	Order(running, func(i int) float64 { return n.Running[i].Start })
	e.next = len(running) // they come first in the order
	for _, i := range running {
		r := &n.Running[i]
		e.view.Now = r.Start
		pl, ok := e.roomFor(r, n.Now)
		if !ok {
			e.giveUp(r.Task, "nodes have no room for it though it runs", math.Inf(1))
			continue
		}
		e.commit(r.Task, &pl)
	}
	e.view.Now, e.begun = n.Now, true
}

// roomFor finds GPUs for a task that runs: on the first nodes of its class that have
// enough free ones, or else on nodes that are switched on for it. ok is false when
// too few can be.
func (e *engine) roomFor(r *Running, now float64) (pl Placement, ok bool) {
	v, t := e.view, &e.problem.Tasks[r.Task]
	option := v.Option(r.Task, r.Class)
	if option < 0 {
		return pl, false
	}
	pl = Placement{
		Node: -1, Class: r.Class, Option: option, Start: r.Start, Point: t.Options[option].Response.Default(), Reason: Reason{Place: PlaceRuns},
	}
	pl.Point.Time = r.End - r.Start
	pl.Point.Energy = pl.Point.Power.Over(pl.Point.Time)
	o := &t.Options[option]
	var parts []Part
	for node := range v.nodes {
		if v.ClassOf(node) != r.Class || !v.On(node) || len(parts) == o.Over() {
			continue
		}
		if free := v.freeAt(node, o.PerNode(), now); free.Len() == o.PerNode() {
			parts = append(parts, Part{int32(node), free})
		}
	}
	for opened := 0; len(parts) < o.Over(); opened++ {
		if !v.CanOpen(r.Task, option, r.Class) || opened == v.Sleeping(r.Class) {
			return pl, false
		}
		parts = append(parts, Part{-1, FirstGPUs(o.PerNode())})
	}
	pl.Node, pl.GPUs, pl.More = int(parts[0].Node), parts[0].GPUs, parts[1:]
	return pl, true
}

// freeAt are up to count GPUs of a node that is on which are free at the present.
func (v *View) freeAt(node, count int, now float64) (free GPUSet) {
	delay := v.Problem.Cluster.Classes[v.ClassOf(node)].TurnOnDelay
	first, gpus := v.GPUs(node)
	for g := 0; g < gpus && free.Len() < count; g++ {
		if v.Free(first+g) <= max(now, v.Since(node)+delay) {
			free |= 1 << uint(g)
		}
	}
	return free
}
