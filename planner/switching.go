package planner

import "slices"

// openNode switches on a node of the class: one that sleeps, which -1 leaves open, or a
// new one.
func (e *engine) openNode(class, node int) int {
	c, asleep := e.calendar, &e.calendar.asleep[class]
	switch last := len(*asleep) - 1; {
	case node >= 0:
		if i := slices.Index(*asleep, int32(node)); i >= 0 {
			*asleep = slices.Delete(*asleep, i, i+1)
		}
	case last >= 0:
		node = int((*asleep)[last])
		*asleep = (*asleep)[:last]
	default:
		node = len(c.nodes)
		e.addNode(class)
	}
	since, delay := e.view.Now, e.problem.Cluster.Classes[class].TurnOnDelay
	if e.problem.Snapshot != nil && !e.begun { // it has been on for long
		since -= delay
	}
	c.switchOn(node, since, since+delay)
	e.placer.Opened(node)
	e.queueSwitchOff(node)
	return node
}

// addNode adds a node of the class, which is off, to the calendar and to the plan.
// While GPUs are placed one by one it has a single GPU, and [engine.mapToNodes]
// makes the plan's nodes.
func (e *engine) addNode(class int) {
	gpus := 1
	if !e.view.PerGPUMode {
		gpus = e.problem.Cluster.Classes[class].GPUs
		e.plan.Nodes = append(e.plan.Nodes, PlannedNode{Class: class})
	}
	e.calendar.add(class, gpus)
}

// queueSwitchOff notes when a node goes off if nothing happens to it.
func (e *engine) queueSwitchOff(node int) {
	if e.problem.Mode == Online && !e.view.PerGPUMode {
		e.switchOffs.Add(Event{e.offAt(node), node})
	}
}

// offAt returns when a node goes off as things are.
func (e *engine) offAt(node int) float64 {
	lastEnd := e.calendar.nodes[node].off
	if e.idlePolicy != nil {
		return e.answers.offAt(node, e.idlePolicy.OffAt(node, lastEnd), lastEnd)
	}
	return e.answers.offAt(node, e.policy.Park.OffAt(&e.problem.Cluster, lastEnd), lastEnd)
}

// switchOff switches off the node that is due next, unless it got another task:
// then the entry moves to when the node is due by now.
func (e *engine) switchOff() {
	top := e.switchOffs[0]
	if e.shared != nil && e.shared.isOffOrBusy(top.What, e.calendar.nodes[top.What].on) {
		e.switchOffs.Pop()
		return
	}
	if at := e.offAt(top.What); at > top.At {
		e.switchOffs.Move(0, at)
		return
	}
	e.switchOffs.Pop()
	e.closeNode(top.What, top.At)
}

// closeNode switches a node off at a time and notes how long it was on. Nodes that
// may be woken again are listed as asleep; of an unlimited class a new one will
// do as well.
func (e *engine) closeNode(node int, at float64) {
	c := e.calendar
	n := &c.nodes[node]
	n.on = false
	on := &e.plan.Nodes[node].On
	if *on == nil {
		*on = e.intervals.newList()
	}
	*on = append(*on, Interval{From: max(0, n.since), To: at})
	c.onByClass[n.class]--
	if e.problem.Cluster.Classes[n.class].Count > 0 || (e.shared != nil && e.shared.isShared(node)) {
		c.asleep[n.class] = append(c.asleep[n.class], int32(node))
	}
	e.placer.Closed(node)
}
