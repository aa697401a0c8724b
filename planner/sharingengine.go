package planner

import (
	"container/heap"
	"slices"

	"github.com/epplan/epplan/planner/sharing"
)

// addSharedNodes makes the nodes whose GPUs may be shared known, all of them off.
func (e *engine) addSharedNodes() {
	e.shared = newSharedGPUState(e.problem, e.plan, e.view.Tuner)
	if e.shared == nil {
		return
	}
	classes := e.problem.SharedNodes()
	for _, class := range classes {
		e.addNode(class)
	}
	for node, class := range slices.Backward(classes) {
		e.view.asleep[class] = append(e.view.asleep[class], int32(node))
	}
	e.view.shared = e.shared
}

// wakeShared switches on a node of which Place knows that it sleeps.
func (e *engine) wakeShared(node int) {
	asleep := &e.view.asleep[e.view.nodes[node].class]
	if i := slices.Index(*asleep, int32(node)); i >= 0 {
		*asleep = slices.Delete(*asleep, i, i+1)
	}
	e.switchOn(node)
}

// nextEnd is when the next task ends, or begins on a node that wasn't ready.
func (e *engine) nextEnd() float64 {
	for e.shared != nil && len(e.ends) > 0 && e.shared.isStale(e.ends[0]) {
		heap.Pop(&e.ends)
	}
	return e.ends.nextTime()
}

// playTaskEvent plays the event of a task: it begins or it ends.
func (e *engine) playTaskEvent(task int) {
	if e.shared == nil || e.shared.tenants[task].phase != phaseReserved {
		e.notifyEnd(task)
		return
	}
	e.shared.startTask(task, e.view.Now)
	e.reschedule()
}

// nextTaskEvent is when the next event of a task is.
func (e *engine) nextTaskEvent(task int, a *Assignment) float64 {
	if e.shared != nil && e.shared.tenants[task].phase == phaseReserved {
		return a.Start
	}
	return a.End
}

// reschedule notes the ends of tasks that go faster or slower now.
func (e *engine) reschedule() {
	for _, task := range e.shared.endsChanged {
		a := &e.plan.Assignments[task]
		heap.Push(&e.ends, queuedEvent{at: a.End, what: task})
		e.shared.eachGPU(a, func(gpu int) { e.view.free[gpu] = e.shared.lastEnd(gpu) })
	}
	e.shared.endsChanged = e.shared.endsChanged[:0]
}

// leaveShared takes a task off the GPUs that may be shared. A node may go to sleep if it
// was the last one.
func (e *engine) leaveShared(task int, a *Assignment) {
	e.shared.endTask(task, e.view.Now)
	e.reschedule()
	for part := range a.Parts {
		node := int(part.Node)
		if !e.shared.isShared(node) || e.shared.booked.IsServerOn(node) {
			continue
		}
		n := &e.view.nodes[node]
		n.off = a.End
		if e.problem.Mode == Online {
			heap.Push(&e.switchOffs, queuedEvent{at: e.offAt(node, n.off), what: node})
		}
	}
}

// isOffOrBusy reports whether a shared node is off already, or has tasks: an entry that
// says when it goes off has nothing to say then.
func (y *sharedGPUState) isOffOrBusy(node int, on bool) bool {
	return y.isShared(node) && (!on || y.booked.IsServerOn(node))
}

// Shared is what tasks hold of the GPUs that may be shared, those on nodes that
// aren't ready yet included; nil where none may be. Its servers are the first
// nodes, and GPUs have the same numbers. It is not to be changed.
func (v *View) Shared() *sharing.State {
	if v.shared == nil {
		return nil
	}
	return v.shared.booked
}

// SharedIndex is a task's number in [View.Shared]: those that were offered, in that
// order.
func (v *View) SharedIndex(task int) int { return v.shared.indexOf[task] }

// TaskAtSharedIndex is the task that has a number in [View.Shared].
func (v *View) TaskAtSharedIndex(number int) int { return v.shared.taskAt[number] }

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
