package planner

import (
	"container/heap"
	"slices"

	"github.com/epplan/epplan/planner/sharing"
)

// share makes the nodes whose GPUs may be shared known, all of them off.
func (e *engine) share() {
	e.tenancy = newTenancy(e.problem, e.plan, e.view.Tuner)
	if e.tenancy == nil {
		return
	}
	classes := e.problem.SharedNodes()
	for _, class := range classes {
		e.addNode(class)
	}
	for node, class := range slices.Backward(classes) {
		e.view.asleep[class] = append(e.view.asleep[class], int32(node))
	}
	e.view.tenancy = e.tenancy
}

// wake switches on a node of which Place knows that it sleeps.
func (e *engine) wake(node int) {
	asleep := &e.view.asleep[e.view.nodes[node].class]
	if i := slices.Index(*asleep, int32(node)); i >= 0 {
		*asleep = slices.Delete(*asleep, i, i+1)
	}
	e.switchOn(node)
}

// nextEnd is when the next task ends, or begins on a node that wasn't ready.
func (e *engine) nextEnd() float64 {
	for e.tenancy != nil && len(e.ends) > 0 && e.tenancy.stale(e.ends[0]) {
		heap.Pop(&e.ends)
	}
	return e.ends.first()
}

// happens plays the event of a task: it begins or it ends.
func (e *engine) happens(task int) {
	if e.tenancy == nil || e.tenancy.tenants[task].phase != reserved {
		e.finished(task)
		return
	}
	e.tenancy.begin(task, e.view.Now)
	e.reschedule()
}

// due is when the next event of a task is.
func (e *engine) due(task int, a *Assignment) float64 {
	if e.tenancy != nil && e.tenancy.tenants[task].phase == reserved {
		return a.Start
	}
	return a.End
}

// reschedule notes the ends of tasks that go faster or slower now.
func (e *engine) reschedule() {
	for _, task := range e.tenancy.moved {
		a := &e.plan.Assignments[task]
		heap.Push(&e.ends, entry{at: a.End, what: task})
		e.tenancy.each(a, func(gpu int) { e.view.free[gpu] = e.tenancy.lastEnd(gpu) })
	}
	e.tenancy.moved = e.tenancy.moved[:0]
}

// left takes a task off the GPUs that may be shared. A node may go to sleep if it
// was the last one.
func (e *engine) left(task int, a *Assignment) {
	e.tenancy.leave(task, e.view.Now)
	e.reschedule()
	for part := range a.Parts {
		node := int(part.Node)
		if !e.tenancy.covers(node) || e.tenancy.booked.IsServerOn(node) {
			continue
		}
		n := &e.view.nodes[node]
		n.off = a.End
		if e.problem.Mode == Online {
			heap.Push(&e.parking, entry{at: e.offAt(node, n.off), what: node})
		}
	}
}

// notIdle tells whether a shared node is off already, or has tasks: an entry that
// says when it goes off has nothing to say then.
func (y *tenancy) notIdle(node int, on bool) bool {
	return y.covers(node) && (!on || y.booked.IsServerOn(node))
}

// Shared is what tasks hold of the GPUs that may be shared, those on nodes that
// aren't ready yet included; nil where none may be. Its servers are the first
// nodes, and GPUs have the same numbers. It is not to be changed.
func (v *View) Shared() *sharing.State {
	if v.tenancy == nil {
		return nil
	}
	return v.tenancy.booked
}

// Tenant is a task's number in [View.Shared]: those that were offered, in that
// order.
func (v *View) Tenant(task int) int { return v.tenancy.number[task] }

// Offered is the task that has a number in [View.Shared].
func (v *View) Offered(number int) int { return v.tenancy.task[number] }

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
	for i := range plan.Shared.Spells {
		s := &plan.Shared.Spells[i]
		s.Node = to[s.Node]
	}
}
