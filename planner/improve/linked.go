package improve

import "slices"

// links times the nodes that gangs link. It knows what each of them is like before each job of its list, so
// that a move plays only what comes after its changes there, and of other nodes what comes after gangs that
// start at other times.
type links struct {
	l     *listSchedule
	known bool          // what nodes with gangs are like
	nodes []nodeHistory // by node
	start []float64     // by job that is a gang, seconds
	clock nodeClock     // buffer of run

	// Of a walk in the order of the lists.
	turns   []int   // by node: index in its list of the gang whose turn it is
	ready   []int32 // nodes that may go on
	arrived []int32 // by job: nodes on which a gang's turn has come

	// Of a move.
	moved   []bool        // by job: it has other clocks or nodes
	visited []int32       // nodes that are played
	pending []int32       // of them, those to be played on
	former  []formerStart // in the order of the changes
}

// moment is what a node is like before a job of its list, and what that job costs beside its net.
type moment struct {
	clock  nodeClock
	charge float64 // for lateness and waiting
	late   bool    // on the job's first node
}

// nodeHistory is a node's moments by turn, the last one behind all jobs, and those that a move makes of them.
type nodeHistory struct {
	known  bool
	before []moment

	visited     bool
	tried       []moment
	from, until int     // turns of tried that count
	settled     int     // turn from which on the list is as it was
	pending     bool    // it is to be played on
	next        int     // from this turn
	through     int     // at least until this turn
	at          float64 // seconds: about the time of next
	cost        float64
	late        int
}

type formerStart struct {
	job   int32
	start float64
}

// playAll plays all lists that have gangs from their beginnings, and makes what they cost count. ok is false
// where gangs wait for each other.
func (k *links) playAll() (ok bool) {
	l := k.l
	if k.nodes == nil {
		n, jobs := len(l.nodes), len(l.jobs)
		k.nodes, k.turns = make([]nodeHistory, n), make([]int, n)
		k.start, k.arrived, k.moved = make([]float64, jobs), make([]int32, jobs), make([]bool, jobs)
	}
	k.visited, k.known = k.visited[:0], true
	for n := range l.nodes {
		h := &k.nodes[n]
		if h.known = false; l.nodes[n].gangs > 0 {
			k.begin(int32(n), 0, 1+len(l.nodes[n].jobs))
		}
	}
	ok = k.eachInOrder(func(i int32) {
		j := &l.jobs[i]
		k.start[i] = 0
		for x := range j.nodeCount() {
			n := j.nodeAt(x)
			k.playSingles(n)
			k.start[i] = max(k.start[i], k.earliest(n, k.nodes[n].until, i))
		}
		for x := range j.nodeCount() {
			k.playNext(j.nodeAt(x), i, k.start[i])
		}
	})
	if !ok {
		k.reject()
		k.known = false
		return false
	}
	for _, n := range k.visited {
		k.playSingles(n)
		k.priceNode(n)
	}
	k.accept()
	return true
}

// eachInOrder calls start for each gang once those are over that come before it on any of its nodes. ok is
// false where some wait for each other.
func (k *links) eachInOrder(start func(i int32)) (ok bool) {
	l := k.l
	k.ready = k.ready[:0]
	clear(k.turns)
	for n := range l.nodes {
		if l.nodes[n].gangs > 0 {
			k.ready = append(k.ready, int32(n))
		}
	}
	for len(k.ready) > 0 {
		n := k.ready[len(k.ready)-1]
		k.ready = k.ready[:len(k.ready)-1]
		jobs := l.nodes[n].jobs
		for k.turns[n] < len(jobs) && l.jobs[jobs[k.turns[n]]].more == nil {
			k.turns[n]++
		}
		if k.turns[n] == len(jobs) {
			continue
		}
		i := jobs[k.turns[n]]
		j := &l.jobs[i]
		if k.arrived[i]++; int(k.arrived[i]) < j.nodeCount() {
			continue
		}
		start(i)
		for x := range j.nodeCount() {
			k.turns[j.nodeAt(x)]++
			k.ready = append(k.ready, j.nodeAt(x))
		}
	}
	clear(k.arrived)
	for n := range l.nodes {
		if l.nodes[n].gangs > 0 && k.turns[n] < len(l.nodes[n].jobs) {
			return false
		}
	}
	return true
}

// playSingles plays a node's list up to the next gang.
func (k *links) playSingles(node int32) {
	h, jobs := &k.nodes[node], k.l.nodes[node].jobs
	for h.until < len(jobs) && k.l.jobs[jobs[h.until]].more == nil {
		i := jobs[h.until]
		k.playNext(node, i, k.earliest(node, h.until, i))
	}
}

// playNext starts the job behind the last moment that counts.
func (k *links) playNext(node, i int32, from float64) {
	h := &k.nodes[node]
	k.run(node, h.until, i, from)
	h.keep(h.until+1, &k.clock)
}

// begin has a node be played from a turn on; its list is as it was from another one on.
func (k *links) begin(node int32, turn, settled int) {
	h := &k.nodes[node]
	h.visited, h.from, h.until, h.settled, h.through = true, turn, turn-1, settled, turn
	k.visited = append(k.visited, node)
	if turn > 0 || h.known {
		k.fill(h, turn)
		return
	}
	v := &k.l.nodes[node]
	k.clock.free = append(k.clock.free[:0], k.l.classes[v.class].clock.free...)
	k.clock.restart(&k.l.classes[v.class], v)
	h.keep(0, &k.clock)
}

// fill has what was known count as tried up to a turn.
func (k *links) fill(h *nodeHistory, turn int) {
	for h.until < turn {
		b := &h.before[h.until+1]
		k.clock.copyFrom(&b.clock)
		h.keep(h.until+1, &k.clock)
		h.tried[h.until].charge, h.tried[h.until].late = b.charge, b.late
	}
}

// keep makes a clock that of a turn, and what that had the clock.
func (h *nodeHistory) keep(turn int, clock *nodeClock) {
	for len(h.tried) <= turn {
		h.tried = append(h.tried, moment{})
	}
	h.tried[turn].clock, *clock = *clock, h.tried[turn].clock
	h.until = max(h.until, turn)
}

// moment returns what is known of a turn; nil: nothing yet.
func (h *nodeHistory) moment(turn int) *moment {
	if !h.visited || turn < h.from {
		return &h.before[turn]
	}
	if turn <= h.until {
		return &h.tried[turn]
	}
	if turn < h.settled {
		return nil
	}
	return &h.before[turn]
}

// earliest returns when a node could start the job of a turn; 0 where nothing is known of it yet.
func (k *links) earliest(node int32, turn int, i int32) float64 {
	m := k.nodes[node].moment(turn)
	if m == nil {
		return 0
	}
	return k.l.earliest(&m.clock, k.l.nodes[node].class, i, k.l.jobs[i].gpus)
}

// run starts the job of a turn on a node. What the node is like then is in k.clock.
func (k *links) run(node int32, turn int, i int32, from float64) {
	l, m := k.l, &k.nodes[node].tried[turn]
	j, end := &l.jobs[i], from+l.jobs[i].time
	m.charge, m.late = 0, false
	if l.weights.waited+l.weights.ended > 0 {
		m.charge = l.waitCost(j, from)
	}
	if node == j.node && end > j.due*(1+roundOff) {
		m.charge += l.late.cost(end, j.due)
		m.late = true
	}
	k.clock.copyFrom(&m.clock)
	l.start(&k.clock, l.nodes[node].class, i, j.gpus, from, end)
	l.steps += stepsLinked
}

// stepsLinked is about how many times the work of a job in a list by itself one takes here.
const stepsLinked = 3

func (t *nodeClock) copyFrom(o *nodeClock) {
	t.free = append(t.free[:0], o.free...)
	t.last, t.until, t.slept = o.last, o.until, o.slept
	if len(t.held)+len(o.held)+len(t.parts)+len(o.parts) > 0 {
		t.held, t.parts = append(t.held[:0], o.held...), append(t.parts[:0], o.parts...)
	}
}

func (t *nodeClock) equals(o *nodeClock) bool {
	if t.last != o.last || t.until != o.until || t.slept != o.slept {
		return false
	}
	for g := range t.free {
		if t.free[g] != o.free[g] {
			return false
		}
	}
	return slices.Equal(t.held, o.held) && slices.Equal(t.parts, o.parts)
}

// tryTake times the nodes that a move changed, and those that gangs link with them. If all of them cost at
// most limit more than they did, that counts from now on.
func (k *links) tryTake(t *trial) bool {
	k.visited, k.pending, k.former = k.visited[:0], k.pending[:0], k.former[:0]
	reordered := k.visitChanged(t)
	if !k.playPending() || k.addedCost() > t.limit || reordered && !k.eachInOrder(func(int32) {}) {
		k.reject()
		return false
	}
	k.accept()
	return true
}

// visitChanged has the nodes that a move changed be played, each from its first change on. It reports whether
// gangs come in another order on one of them.
func (k *links) visitChanged(t *trial) (reordered bool) {
	for _, was := range t.formerJobs {
		k.moved[was.index] = true
	}
	for c := range t.count {
		was, now := &t.changed[c], k.l.nodes[t.changed[c].node].jobs
		from, settled := 0, len(now)
		h := &k.nodes[was.node]
		isSame := func(turn int) bool { return now[turn] == was.jobs[turn] && !k.moved[now[turn]] }
		for h.known && from < min(len(now), len(was.jobs)) && isSame(from) {
			from++
		}
		if h.known && len(now) == len(was.jobs) {
			for settled > from && isSame(settled-1) {
				settled--
			}
		} else {
			settled++
		}
		k.begin(was.node, from, settled)
		k.postpone(was.node, from, h.tried[from].clock.free[0])
		reordered = reordered || !k.haveSameGangs(was.jobs, now)
	}
	for _, was := range t.formerJobs {
		k.moved[was.index] = false
	}
	return reordered
}

// haveSameGangs reports whether two lists have the same gangs in the same order.
func (k *links) haveSameGangs(a, b []int32) bool {
	isGang := func(i int32) bool { return k.l.jobs[i].more != nil }
	for {
		x, y := slices.IndexFunc(a, isGang), slices.IndexFunc(b, isGang)
		if x < 0 || y < 0 || a[x] != b[y] {
			return x < 0 && y < 0
		}
		a, b = a[x+1:], b[y+1:]
	}
}

// postpone has a visited node be played from a turn on.
func (k *links) postpone(node int32, turn int, at float64) {
	h := &k.nodes[node]
	if !h.pending {
		k.pending = append(k.pending, node)
	}
	if !h.pending || turn < h.next {
		h.next, h.at = turn, at
	}
	h.pending, h.through = true, max(h.through, turn)
}

// playPending plays what is pending, the earliest first. ok is false where that doesn't end: gangs may wait for
// each other.
func (k *links) playPending() (ok bool) {
	most := k.l.steps + 4*stepsLinked*len(k.l.jobs)
	for len(k.pending) > 0 && k.l.steps < most {
		first := 0
		for p, n := range k.pending {
			if k.nodes[n].at < k.nodes[k.pending[first]].at {
				first = p
			}
		}
		n, last := k.pending[first], len(k.pending)-1
		k.pending[first] = k.pending[last]
		k.pending = k.pending[:last]
		k.nodes[n].pending = false
		k.playOn(n)
	}
	return len(k.pending) == 0
}

// playOn plays a node's list until all that follows is known, or a gang starts at another time: what
// its other nodes do then comes first.
func (k *links) playOn(node int32) {
	h, jobs := &k.nodes[node], k.l.nodes[node].jobs
	for turn := h.next; turn < len(jobs); turn++ {
		i, hasMoved := jobs[turn], false
		from := k.earliest(node, turn, i)
		if k.l.jobs[i].more != nil {
			from, hasMoved = k.restartGang(i, node, from)
		}
		k.run(node, turn, i, from)
		if m := h.moment(turn + 1); m != nil && turn >= h.through && m.clock.equals(&k.clock) {
			break
		}
		h.keep(turn+1, &k.clock)
		if hasMoved {
			k.postpone(node, turn+1, from)
			return
		}
	}
	h.through = 0
}

// restartGang returns when a gang starts that one of its nodes could start then, by what is known of the
// others. If that has changed, these are played from it on.
func (k *links) restartGang(i, node int32, from float64) (start float64, hasMoved bool) {
	j := &k.l.jobs[i]
	start = from
	for x := range j.nodeCount() {
		if n := j.nodeAt(x); n != node {
			start = max(start, k.earliest(n, slices.Index(k.l.nodes[n].jobs, i), i))
		}
	}
	if start == k.start[i] {
		return start, false
	}
	k.former = append(k.former, formerStart{i, k.start[i]})
	k.start[i] = start
	for x := range j.nodeCount() {
		n := j.nodeAt(x)
		if n == node {
			continue
		}
		turn, h := slices.Index(k.l.nodes[n].jobs, i), &k.nodes[n]
		k.markVisited(n, turn)
		if h.moment(turn) != nil { // else it is played up to the gang anyway
			k.postpone(n, turn, start)
		}
	}
	return start, true
}

// markVisited has moments from a turn on be tried.
func (k *links) markVisited(node int32, turn int) {
	h := &k.nodes[node]
	switch {
	case !h.visited:
		k.begin(node, turn, 0)
	case turn < h.from:
		from, until := h.from, h.until
		h.until = turn - 1
		k.fill(h, from-1)
		h.from, h.until = turn, until
	case turn > h.until && !h.pending:
		k.fill(h, turn)
	}
}

// addedCost returns how much more the visited nodes cost than they did.
func (k *links) addedCost() (sum float64) {
	for _, n := range k.visited {
		k.priceNode(n)
		sum += k.nodes[n].cost - k.l.nodes[n].cost
	}
	return sum
}

// priceNode finds what a visited node costs.
func (k *links) priceNode(node int32) {
	v, h := &k.l.nodes[node], &k.nodes[node]
	h.cost, h.late = 0, 0
	if len(v.jobs) == 0 && v.begin == nil {
		return
	}
	for turn := range v.jobs {
		m := h.moment(turn)
		h.cost += m.charge
		if m.late {
			h.late++
		}
	}
	c, t := &k.l.classes[v.class], &h.moment(len(v.jobs)).clock
	h.cost += v.net + c.used + c.onCostRate()*t.free[len(t.free)-1] - t.slept
}

// accept makes what was tried count.
func (k *links) accept() {
	for _, n := range k.visited {
		h, v := &k.nodes[n], &k.l.nodes[n]
		for len(h.before) <= len(v.jobs) {
			h.before = append(h.before, moment{})
		}
		for turn := h.from; turn <= h.until; turn++ {
			h.before[turn], h.tried[turn] = h.tried[turn], h.before[turn]
		}
		h.visited, h.known = false, true
		v.cost, v.late = h.cost, h.late
	}
}

// reject leaves all as it was.
func (k *links) reject() {
	for _, was := range slices.Backward(k.former) {
		k.start[was.job] = was.start
	}
	for _, n := range k.visited {
		k.nodes[n].visited, k.nodes[n].pending = false, false
	}
}

// startsOf returns the starts of the jobs of a node, seconds, in the order of its list.
func (l *listSchedule) startsOf(node int32) []float64 {
	v := &l.nodes[node]
	c := &l.classes[v.class]
	begins := make([]float64, 0, len(v.jobs))
	if v.gangs > 0 && !l.links.known {
		l.links.playAll()
	}
	t := &c.clock
	t.restart(c, v)
	for _, i := range v.jobs {
		j := &l.jobs[i]
		from := l.earliest(t, v.class, i, j.gpus)
		if j.more != nil {
			from = l.links.start[i]
		}
		l.start(t, v.class, i, j.gpus, from, from+j.time)
		begins = append(begins, from)
	}
	return begins
}

// hasLinks reports whether gangs link nodes.
func (l *listSchedule) hasLinks() bool {
	return slices.ContainsFunc(l.jobs, func(j job) bool { return j.more != nil })
}
