package improve

import "slices"

// trial is a move under test: what it changes of lists, and what was there before.
type trial struct {
	l          *listSchedule
	limit      float64       // most that the move may add
	changed    []changedNode // by the move
	count      int           // how many of these there are
	formerJobs []changedJob  // jobs that the move changed, in that order
}

// changedNode is a node before a change.
type changedNode struct {
	node  int32
	jobs  []int32
	gangs int
	net   float64
	busy  float64
}

// changedJob is a job before a change.
type changedJob struct {
	index int32
	job   job
}

// begin remembers the nodes that a move is about to change.
func (t *trial) begin(nodes ...int32) {
	t.count, t.formerJobs = 0, t.formerJobs[:0]
	if !t.l.links.known {
		t.l.links.playAll()
	}
	for _, n := range nodes {
		t.touch(n)
	}
}

// touch remembers one more node.
func (t *trial) touch(node int32) {
	for k := range t.count {
		if t.changed[k].node == node {
			return
		}
	}
	if t.count == len(t.changed) {
		t.changed = append(t.changed, changedNode{})
	}
	c, n := &t.changed[t.count], &t.l.nodes[node]
	c.node, c.jobs, c.gangs, c.net, c.busy = node, append(c.jobs[:0], n.jobs...), n.gangs, n.net, n.busy
	t.count++
}

// listBefore returns the list of a node before the move.
func (t *trial) listBefore(node int32) []int32 {
	for k := range t.count {
		if t.changed[k].node == node {
			return t.changed[k].jobs
		}
	}
	return nil
}

// set gives a job nodes and a level, and remembers what it had.
func (t *trial) set(i, node int32, more []int32, level int32) {
	if j := &t.l.jobs[i]; j.more != nil {
		t.touch(j.node)
		for _, n := range j.more {
			t.touch(n)
		}
	}
	t.formerJobs = append(t.formerJobs, changedJob{i, t.l.jobs[i]})
	t.l.assign(i, node, more, min(max(level, 0), priceCount-1))
}

func (t *trial) setLevel(i, level int32) {
	j := &t.l.jobs[i]
	t.set(i, j.node, j.more, level)
}

// moveJobs makes some jobs that were on a node be on another one, at the levels that they
// have. ok is false where a gang is there already.
func (t *trial) moveJobs(jobs []int32, from, to int32) (ok bool) {
	for _, i := range jobs {
		j := &t.l.jobs[i]
		if j.more == nil {
			t.set(i, to, nil, j.level)
			continue
		}
		node, more := j.node, slices.Clone(j.more)
		if k := slices.Index(more, from); k >= 0 {
			more[k] = to
		} else {
			node = to
		}
		if j.node == to || slices.Contains(j.more, to) {
			return false
		}
		t.set(i, node, more, j.level)
	}
	return true
}

// tryTake times the nodes, and reports whether the move is taken.
func (t *trial) tryTake() bool {
	l := t.l
	for k := range t.count {
		if l.nodes[t.changed[k].node].gangs > 0 {
			return l.links.tryTake(t)
		}
	}
	a := &l.nodes[t.changed[0].node]
	most := a.cost + t.limit
	if t.count == 1 {
		cost, late := l.timeNode(a, most)
		if cost > most {
			return false
		}
		a.cost, a.late = cost, late
		l.links.nodes[t.changed[0].node].known = false
		return true
	}
	b := &l.nodes[t.changed[1].node]
	most += b.cost
	cost, late := l.timeNode(a, most)
	if cost > most {
		return false
	}
	other, late2 := l.timeNode(b, most-cost)
	if cost+other > most {
		return false
	}
	a.cost, a.late, b.cost, b.late = cost, late, other, late2
	l.links.nodes[t.changed[0].node].known = false
	l.links.nodes[t.changed[1].node].known = false
	return true
}

func (t *trial) undo() {
	l := t.l
	for k := range t.count {
		c := &t.changed[k]
		n := &l.nodes[c.node]
		n.jobs = append(n.jobs[:0], c.jobs...)
		n.gangs, n.net, n.busy = c.gangs, c.net, c.busy
	}
	for _, was := range slices.Backward(t.formerJobs) {
		l.jobs[was.index] = was.job
	}
}
