package improve

import "math"

// linked is the state of a play of all nodes whose lists have gangs, and of some
// others.
type linked struct {
	at      []int       // by node: index in its list of the job whose turn it is
	clocks  []nodeClock // by node
	cost    []float64   // by node
	late    []int       // by node
	nodes   []int32     // that are played
	ready   []int32     // nodes that may go on
	arrived []int32     // by job: nodes on which a gang's turn has come
	from    []float64   // by job: when the last of them is free
	start   []float64   // by job, where it was played
}

// play times the lists that have gangs, and those of some more nodes. ok is false
// where gangs wait for each other. [lists.take] makes what it found count.
func (l *lists) play(more []int32) (ok bool) {
	k := &l.link
	if k.at == nil {
		l.prepare()
	}
	k.nodes = k.nodes[:0]
	for n := range l.nodes {
		if l.nodes[n].gangs > 0 {
			k.nodes = append(k.nodes, int32(n)) //nolint:gosec // few nodes
		}
	}
	for _, n := range more {
		if l.nodes[n].gangs == 0 {
			k.nodes = append(k.nodes, n)
		}
	}
	k.ready = append(k.ready[:0], k.nodes...)
	for _, n := range k.nodes {
		v := &l.nodes[n]
		k.clocks[n].restart(&l.classes[v.class], v)
		k.at[n], k.cost[n], k.late[n] = 0, 0, 0
	}
	for len(k.ready) > 0 {
		n := k.ready[len(k.ready)-1]
		k.ready = k.ready[:len(k.ready)-1]
		l.goOn(n)
	}
	return l.played()
}

// prepare makes the buffers.
func (l *lists) prepare() {
	n, jobs := len(l.nodes), len(l.jobs)
	l.link = linked{
		at: make([]int, n), clocks: make([]nodeClock, n), cost: make([]float64, n), late: make([]int, n),
		arrived: make([]int32, jobs), from: make([]float64, jobs), start: make([]float64, jobs),
	}
	for n := range l.nodes {
		l.link.clocks[n].free = make([]float64, len(l.classes[l.nodes[n].class].clock.free))
	}
}

// goOn plays a node's list until a gang's turn comes that still waits for other nodes.
func (l *lists) goOn(node int32) {
	k, n := &l.link, &l.nodes[node]
	for ; k.at[node] < len(n.jobs); k.at[node]++ {
		i := n.jobs[k.at[node]]
		j := &l.jobs[i]
		from := l.couldStart(node, i, j)
		l.steps++
		if j.more == nil {
			l.run(node, i, j, from)
			continue
		}
		k.from[i] = max(k.from[i], from)
		if k.arrived[i]++; int(k.arrived[i]) <= len(j.more) {
			return
		}
		from = k.from[i]
		k.arrived[i], k.from[i] = 0, 0
		l.run(j.node, i, j, from)
		for _, other := range j.more {
			l.run(other, i, j, from)
			l.follows(other, node)
		}
		l.follows(j.node, node)
	}
}

// follows lets a node go on behind a gang that has started, unless it is the one that
// goes on anyway.
func (l *lists) follows(node, besides int32) {
	if node != besides {
		l.link.at[node]++
		l.link.ready = append(l.link.ready, node)
	}
}

// couldStart is when a node could start a job whose turn has come.
func (l *lists) couldStart(node, i int32, j *job) float64 {
	t := &l.link.clocks[node]
	from := t.free[j.gpus-1]
	if l.needs != nil {
		class := l.nodes[node].class
		from = t.room(from, l.need(i, class), &l.classes[class].has)
	}
	return from
}

// run starts a job on a node. A gang is late on its first node.
func (l *lists) run(node, i int32, j *job, from float64) {
	k := &l.link
	t, end := &k.clocks[node], from+j.time
	if l.needs != nil {
		t.keep(from, l.need(i, l.nodes[node].class), end)
	}
	occupy(t.free, int(j.gpus), end)
	k.start[i] = from
	if node == j.node && end > j.due*(1+roundOff) {
		k.late[node]++
		k.cost[node] += l.late.of(end, j.due)
	}
}

// played adds up what the nodes cost. ok is false where one didn't come to its end.
func (l *lists) played() (ok bool) {
	k := &l.link
	ok = true
	for _, n := range k.nodes {
		v := &l.nodes[n]
		if k.at[n] < len(v.jobs) {
			ok = false
			i := v.jobs[k.at[n]]
			k.arrived[i], k.from[i] = 0, 0
			continue
		}
		if len(v.jobs) > 0 || v.begin != nil {
			c, free := &l.classes[v.class], k.clocks[n].free
			k.cost[n] += v.net + c.used + c.on()*free[len(free)-1]
		}
	}
	return ok
}

// take makes the costs count that [lists.play] found.
func (l *lists) take() {
	k := &l.link
	for _, n := range k.nodes {
		l.nodes[n].cost, l.nodes[n].late = k.cost[n], k.late[n]
	}
}

// gain is how much less the nodes of the last play cost by it.
func (l *lists) gain() float64 {
	sum := 0.0
	for _, n := range l.link.nodes {
		sum += l.nodes[n].cost - l.link.cost[n]
	}
	return sum
}

// starts are the starts of all jobs, seconds; +Inf of those that aren't in a list.
func (l *lists) starts() []float64 {
	if l.link.at == nil {
		l.prepare()
	}
	for i := range l.jobs {
		l.link.start[i] = math.Inf(1)
	}
	all := make([]int32, len(l.nodes))
	for n := range all {
		all[n] = int32(n) //nolint:gosec // few nodes
	}
	l.play(all)
	return l.link.start
}
