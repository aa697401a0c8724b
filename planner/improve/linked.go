package improve

import (
	"math"
	"slices"
)

// play is a play of all nodes whose lists have gangs, and of some
// others. Of the lists as they are, cuts are kept, from which a play can go on: most
// moves change something late.
type play struct {
	l          *listSchedule
	clocks     []nodeClock // by node
	checkpoint             // where the play is
	nodes      []int32     // that are played
	ready      []int32     // nodes that may go on
	arrived    []int32     // by job: nodes on which a gang's turn has come
	from       []float64   // by job: when the last of them is free
	least      float64     // least that all nodes cost, by what is known of the play
	most       float64     // that they may cost

	recording   bool
	recorded    bool // cuts, turn and start are those of the lists as they are
	checkpoints []checkpoint
	turn        []int     // by job: how many were started before it
	start       []float64 // by job, seconds
}

// checkpoint is a moment of a play.
type checkpoint struct {
	count int       // jobs started so far
	extra float64   // cost of lateness and waiting, and of GPUs that idle between jobs
	at    []int     // by node: index in its list of the job whose turn it is; -1: it isn't played
	cost  []float64 // by node
	late  []int     // by node
	held  []nodeClock
}

// nextCheckpoint returns how many jobs start before the next cut.
func (k *play) nextCheckpoint() int {
	l := k.l
	between := max(8, len(l.jobs)/32)
	if n := len(k.checkpoints); n > 0 {
		return k.checkpoints[n-1].count + between
	}
	return between
}

// timeLists times the lists that have gangs, and those of some more nodes; what it starts
// first, so many jobs, is as it was recorded. ok is false where gangs wait for each
// other, or where all nodes cost more than limit above what they did. [play.accept]
// makes what it found count.
func (k *play) timeLists(more []int32, limit float64, same int) (ok bool) {
	l := k.l
	if k.clocks == nil {
		k.prepare()
	}
	k.nodes = k.nodes[:0]
	for n := range l.nodes {
		if l.nodes[n].gangs > 0 {
			k.nodes = append(k.nodes, int32(n))
		}
	}
	for _, n := range more {
		if l.nodes[n].gangs == 0 {
			k.nodes = append(k.nodes, n)
		}
	}
	k.restore(same)
	k.least, k.most = k.extra, limit
	for _, n := range k.nodes {
		v := &l.nodes[n]
		c := &l.classes[v.class]
		k.most += v.cost
		if len(v.jobs) > 0 || v.begin != nil {
			k.least += v.net + c.used + c.onCost()*v.busy/float64(len(c.clock.free))
		}
	}
	for k.ready = append(k.ready[:0], k.nodes...); len(k.ready) > 0 && k.least <= k.most; {
		if k.recording && k.count >= k.nextCheckpoint() {
			k.addCheckpoint()
		}
		n := k.ready[len(k.ready)-1]
		k.ready = k.ready[:len(k.ready)-1]
		k.playNode(n)
	}
	return k.sumCosts()
}

func (k *play) prepare() {
	l := k.l
	n, jobs := len(l.nodes), len(l.jobs)
	*k = play{
		l:      l,
		clocks: make([]nodeClock, n), checkpoint: checkpoint{
			at: make([]int, n), cost: make([]float64, n), late: make([]int, n),
		},
		arrived: make([]int32, jobs), from: make([]float64, jobs), turn: make([]int, jobs),
		start: make([]float64, jobs),
	}
	for n := range l.nodes {
		k.clocks[n].free = make([]float64, len(l.classes[l.nodes[n].class].clock.free))
	}
}

// restore begins a play at the last cut before which no more than so many jobs start.
func (k *play) restore(same int) {
	l := k.l
	last := len(k.checkpoints) - 1
	for last >= 0 && k.checkpoints[last].count > same {
		last--
	}
	k.count, k.extra = 0, 0
	if last >= 0 {
		k.count, k.extra = k.checkpoints[last].count, k.checkpoints[last].extra
	}
	for _, n := range k.nodes {
		v, t := &l.nodes[n], &k.clocks[n]
		if last < 0 || k.checkpoints[last].at[n] < 0 {
			t.restart(&l.classes[v.class], v)
			k.at[n], k.cost[n], k.late[n] = 0, 0, 0
			continue
		}
		c := &k.checkpoints[last]
		t.copyFrom(&c.held[n])
		k.at[n], k.cost[n], k.late[n] = c.at[n], c.cost[n], c.late[n]
	}
}

func (k *play) addCheckpoint() {
	l := k.l
	if len(k.checkpoints) == cap(k.checkpoints) {
		k.checkpoints = append(k.checkpoints, checkpoint{})
	} else {
		k.checkpoints = k.checkpoints[:len(k.checkpoints)+1]
	}
	c := &k.checkpoints[len(k.checkpoints)-1]
	if c.at == nil {
		n := len(l.nodes)
		*c = checkpoint{
			at: make([]int, n), cost: make([]float64, n), late: make([]int, n), held: make([]nodeClock, n),
		}
	}
	c.count, c.extra = k.count, k.extra
	for n := range c.at {
		c.at[n] = -1
	}
	for _, n := range k.nodes {
		c.at[n], c.cost[n], c.late[n] = k.at[n], k.cost[n], k.late[n]
		c.held[n].copyFrom(&k.clocks[n])
	}
}

func (t *nodeClock) copyFrom(o *nodeClock) {
	t.free = append(t.free[:0], o.free...)
	t.last, t.held, t.until, t.slept = o.last, append(t.held[:0], o.held...), o.until, o.slept
	t.parts = append(t.parts[:0], o.parts...)
}

// playNode plays a node's list until a gang's turn comes that still waits for other nodes.
func (k *play) playNode(node int32) {
	l := k.l
	n := &l.nodes[node]
	for ; k.at[node] < len(n.jobs); k.at[node]++ {
		i := n.jobs[k.at[node]]
		j := &l.jobs[i]
		from := l.earliest(&k.clocks[node], n.class, i, j.gpus)
		if j.more == nil {
			k.noteStart(i, from)
			k.run(node, i, j, from)
			continue
		}
		k.from[i] = max(k.from[i], from)
		if k.arrived[i]++; int(k.arrived[i]) <= len(j.more) {
			return
		}
		from = k.from[i]
		k.arrived[i], k.from[i] = 0, 0
		k.noteStart(i, from)
		k.run(j.node, i, j, from)
		for _, other := range j.more {
			k.run(other, i, j, from)
			k.goOnBehind(other, node)
		}
		k.goOnBehind(j.node, node)
	}
}

func (k *play) noteStart(i int32, at float64) {
	l := k.l
	if k.recording {
		k.turn[i], k.start[i] = k.count, at
	}
	k.count++
	l.steps += 3 // about that many times the work of a list by itself
}

// goOnBehind lets a node go on behind a gang that has started, unless it is the one that
// goes on anyway.
func (k *play) goOnBehind(node, besides int32) {
	if node != besides {
		k.at[node]++
		k.ready = append(k.ready, node)
	}
}

// run starts a job on a node. A gang is late on its first node.
func (k *play) run(node, i int32, j *job, from float64) {
	l := k.l
	t, end := &k.clocks[node], from+j.time
	if from > t.free[0] && !l.arrive && j.used >= 1 { // else the node may sleep, or others are on its GPU
		idle := 0.0
		for g := range j.gpus {
			idle += from - t.free[g]
		}
		extra := idle * l.classes[l.nodes[node].class].onCost() / float64(len(t.free))
		k.extra += extra
		k.least += extra
	}
	l.start(t, l.nodes[node].class, i, j.gpus, from, end)
	if l.weights.waited+l.weights.ended > 0 {
		k.charge(node, l.waitCost(j, from))
	}
	if node == j.node && end > j.due*(1+roundOff) {
		k.late[node]++
		k.charge(node, l.late.cost(end, j.due))
	}
}

// charge adds to what a node costs that the play began without.
func (k *play) charge(node int32, cost float64) {
	k.cost[node] += cost
	k.extra += cost
	k.least += cost
}

// sumCosts adds up what the nodes cost. ok is false where one didn't come to its end.
func (k *play) sumCosts() (ok bool) {
	l := k.l
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
			c, t := &l.classes[v.class], &k.clocks[n]
			k.cost[n] += v.net + c.used + c.onCost()*t.free[len(t.free)-1] - t.slept
		}
	}
	return ok
}

// accept makes the costs count that [play.timeLists] found.
func (k *play) accept() {
	l := k.l
	for _, n := range k.nodes {
		l.nodes[n].cost, l.nodes[n].late = k.cost[n], k.late[n]
	}
}

// record keeps cuts, turns and starts of the lists as they are; what starts first, so
// many jobs, is as it was.
func (k *play) record(same int) {
	l := k.l
	if !k.recorded {
		same = 0
	}
	for len(k.checkpoints) > 0 && k.checkpoints[len(k.checkpoints)-1].count > same {
		k.checkpoints = k.checkpoints[:len(k.checkpoints)-1]
	}
	for c := range k.checkpoints {
		for n := range l.nodes {
			if l.nodes[n].gangs == 0 {
				k.checkpoints[c].at[n] = -1 // what it runs may change without a play
			}
		}
	}
	k.recording = true
	k.timeLists(nil, math.Inf(1), same)
	k.recording, k.recorded = false, true
}

// gain returns how much less the nodes of the last play cost by it.
func (k *play) gain() float64 {
	l := k.l
	sum := 0.0
	for _, n := range k.nodes {
		sum += l.nodes[n].cost - k.cost[n]
	}
	return sum
}

// startsOf returns the starts of the jobs of a node, seconds, in the order of its list.
func (l *listSchedule) startsOf(node int32) []float64 {
	v := &l.nodes[node]
	c := &l.classes[v.class]
	begins := make([]float64, 0, len(v.jobs))
	if v.gangs > 0 {
		if !l.playing.recorded {
			l.playing.record(0)
		}
		for _, i := range v.jobs {
			begins = append(begins, l.playing.start[i])
		}
		return begins
	}
	t := &c.clock
	t.restart(c, v)
	for _, i := range v.jobs {
		j := &l.jobs[i]
		from := l.earliest(t, v.class, i, j.gpus)
		l.start(t, v.class, i, j.gpus, from, from+j.time)
		begins = append(begins, from)
	}
	return begins
}

// hasLinks reports whether gangs link nodes.
func (l *listSchedule) hasLinks() bool {
	return slices.ContainsFunc(l.jobs, func(j job) bool { return j.more != nil })
}
