package improve

import "slices"

// tryGang tests a random move of a whole gang.
func (w *listAnnealing) tryGang(i int32) {
	switch w.rng.IntN(4) {
	case 0:
		w.joinStart(i)
	case 1, 2:
		w.swapGangWithJobs(i)
	default:
		w.swapGangs(i)
	}
}

func (j *job) nodes() []int32 { return append([]int32{j.node}, j.more...) }

// joinStart starts a gang when some other job does, on the same nodes or on others, in
// whose lists it comes before all jobs that start later.
func (w *listAnnealing) joinStart(i int32) {
	l, j := w.l, &w.l.jobs[i]
	class, at, ok := w.randomStart()
	if !ok {
		return
	}
	var nodes []int32
	if here := l.nodes[j.node].class; here == class || w.rng.IntN(2) == 0 {
		class, nodes = here, j.nodes()
	}
	m := l.menu(i, class)
	if nodes == nil || w.rng.IntN(2) == 0 {
		if nodes = w.drawNodes(class, m.nodes, nil); m.nodes < 2 || nodes == nil {
			return
		}
	}
	places := w.turnsAt(nodes, at)
	for p, n := range nodes {
		if turn := slices.Index(l.nodes[n].jobs, i); turn >= 0 && turn < places[p] {
			places[p]-- // it leaves its turn before
		}
	}
	w.trial.begin(j.nodes()...)
	for _, n := range nodes {
		w.trial.touch(n)
	}
	for _, n := range j.nodes() {
		l.nodes[n].jobs = slices.DeleteFunc(l.nodes[n].jobs, func(other int32) bool { return other == i })
	}
	for p, n := range nodes {
		l.nodes[n].jobs = slices.Insert(l.nodes[n].jobs, places[p], i)
	}
	w.moveGang(i, nodes)
}

func (w *listAnnealing) moveGang(i int32, nodes []int32) {
	w.trial.set(i, nodes[0], slices.Clone(nodes[1:]), w.l.jobs[i].level)
	if w.rng.IntN(2) == 0 {
		w.trial.setLevel(i, w.nearbyLevel(i))
	}
	w.finishMove()
}

// randomStart returns when a random job starts, and on nodes of which class.
func (w *listAnnealing) randomStart() (class int, at float64, ok bool) {
	l := w.l
	k := int32(w.rng.IntN(len(l.jobs)))
	node := l.jobs[k].node
	if node < 0 {
		return 0, 0, false
	}
	return l.nodes[node].class, l.startsOf(node)[slices.Index(l.nodes[node].jobs, k)], true
}

// turnsAt are by node the turn of the first job that starts at a moment or later.
func (w *listAnnealing) turnsAt(nodes []int32, at float64) []int {
	places := make([]int, len(nodes))
	for p, n := range nodes {
		begins := w.l.startsOf(n)
		if places[p] = slices.IndexFunc(begins,
			func(begin float64) bool { return begin >= at }); places[p] < 0 {
			places[p] = len(begins)
		}
	}
	return places
}

// drawNodes are so many random nodes of a class, none of them of some; nil where there are
// too few.
func (w *listAnnealing) drawNodes(class, count int, but []int32) []int32 {
	nodes := w.pool[:0]
	for n := range w.l.nodes {
		if k := int32(n); w.l.nodes[n].class == class && !slices.Contains(but, k) {
			nodes = append(nodes, k)
		}
	}
	w.pool = nodes
	if len(nodes) < count {
		return nil
	}
	for p := range count {
		o := p + w.rng.IntN(len(nodes)-p)
		nodes[p], nodes[o] = nodes[o], nodes[p]
	}
	return nodes[:count]
}

func (w *listAnnealing) swapGangs(i int32) {
	l := w.l
	k := int32(w.rng.IntN(len(l.jobs)))
	for tries := 0; tries < 8 && (l.jobs[k].more == nil || k == i); tries++ {
		k = int32(w.rng.IntN(len(l.jobs)))
	}
	a, b := l.jobs[i], l.jobs[k]
	if b.more == nil || k == i {
		return
	}
	classA, classB := l.nodes[a.node].class, l.nodes[b.node].class
	if l.menu(i, classB).nodes != len(b.more)+1 || l.menu(k, classA).nodes != len(a.more)+1 {
		return
	}
	w.trial.begin(a.nodes()...)
	for _, n := range b.nodes() {
		w.trial.touch(n)
	}
	for c := range w.trial.count {
		jobs := l.nodes[w.trial.changed[c].node].jobs
		for turn, job := range jobs {
			switch job {
			case i:
				jobs[turn] = k
			case k:
				jobs[turn] = i
			}
		}
	}
	if classA != classB && w.rng.IntN(2) == 0 {
		a.level, b.level = b.level, a.level
	}
	w.trial.set(i, b.node, b.more, a.level)
	w.trial.set(k, a.node, a.more, b.level)
	w.finishMove()
}

// swapGangWithJobs puts a gang in place of what other nodes run from some time on for about as
// long, which comes in its place.
func (w *listAnnealing) swapGangWithJobs(i int32) {
	l := w.l
	class, at, ok := w.randomStart()
	here := l.jobs[i].nodes()
	m := l.menu(i, class)
	if !ok || m.nodes != len(here) {
		return
	}
	there := w.drawNodes(class, m.nodes, here)
	if there == nil {
		return
	}
	places := w.turnsAt(there, at)
	w.trial.begin(here...)
	for p, n := range there {
		w.trial.touch(n)
		if !w.replaceJobs(i, here[p], n, places[p]) {
			w.trial.undo()
			return
		}
	}
	w.moveGang(i, there)
}

// replaceJobs puts a gang in place of jobs of a node that take about as long there from
// some turn on; these come to one of the gang's present nodes. ok is false where one
// can't.
func (w *listAnnealing) replaceJobs(i, from, to int32, place int) (ok bool) {
	l := w.l
	a, b := &l.nodes[from], &l.nodes[to]
	m := l.menu(i, b.class)
	seconds := float64(m.gpus) * m.time[l.jobs[i].level] * (0.5 + w.rng.Float64())
	until := place
	for ; until < len(b.jobs) && seconds > 0 && l.jobs[b.jobs[until]].more == nil; until++ {
		other := &l.jobs[b.jobs[until]]
		seconds -= float64(other.gpus) * other.time
	}
	if !w.canMove(b.jobs[place:until], b, a) {
		return false
	}
	turn := slices.Index(a.jobs, i)
	a.jobs = slices.Replace(a.jobs, turn, turn+1, w.trial.listBefore(to)[place:until]...)
	b.jobs = slices.Replace(b.jobs, place, until, i)
	return w.trial.moveJobs(a.jobs[turn:turn+until-place], to, from)
}
