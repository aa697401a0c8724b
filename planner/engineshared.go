package planner

import "slices"

// addSharedNodes makes the nodes whose GPUs may be shared known, all of them off.
func (e *engine) addSharedNodes() {
	if e.shared = newSharedGPUState(e.problem, e.plan, e.view.Tuner); e.shared == nil {
		return
	}
	e.view.Shared = &e.shared.SharedGPUs
	classes := e.problem.SharedNodes()
	for _, class := range classes {
		e.addNode(class)
	}
	for node, class := range slices.Backward(classes) {
		e.calendar.asleep[class] = append(e.calendar.asleep[class], int32(node))
	}
}

// nextEnd returns when the next task ends, or begins on a node that wasn't ready.
func (e *engine) nextEnd() float64 {
	for e.shared != nil && len(e.ends) > 0 && e.shared.isStale(e.ends[0]) {
		e.ends.Pop()
	}
	return e.ends.nextTime()
}

// reschedule notes the ends of tasks that go faster or slower now.
func (e *engine) reschedule() {
	for _, task := range e.shared.endsChanged {
		a := &e.plan.Assignments[task]
		e.ends.Add(Event{a.End, task})
		e.shared.eachGPU(a, func(gpu int) { e.calendar.free[gpu] = e.shared.lastEnd(gpu) })
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
		if !e.shared.isShared(node) || e.shared.Booked.IsServerOn(node) {
			continue
		}
		e.calendar.nodes[node].off = a.End
		e.queueSwitchOff(node)
	}
}

// isOffOrBusy reports whether a shared node is off already, or has tasks: an entry that
// says when it goes off has nothing to say then.
func (y *sharedGPUState) isOffOrBusy(node int, on bool) bool {
	return y.isShared(node) && (!on || y.Booked.IsServerOn(node))
}
