package improve

import "slices"

// gather starts a gang at another time: behind a random job, on the same nodes or on
// others, in whose lists it comes before all jobs that start later.
func (w *walk) gather(i int32) {
	l := w.l
	k := int32(w.rng.IntN(len(l.jobs))) //nolint:gosec // few tasks
	class, ok := w.classFor(i)
	if !ok || l.jobs[k].node < 0 {
		return
	}
	starts := l.starts()
	at := starts[k]
	nodes := w.nodesFor(i, class)
	j := &l.jobs[i]
	w.begin(j.node)
	for _, n := range append(slices.Clone(j.more), nodes...) {
		w.touch(n)
	}
	for _, n := range append([]int32{j.node}, j.more...) {
		l.nodes[n].jobs = slices.DeleteFunc(l.nodes[n].jobs, func(other int32) bool { return other == i })
	}
	for _, n := range nodes {
		jobs := l.nodes[n].jobs
		place := slices.IndexFunc(jobs, func(other int32) bool { return starts[other] > at })
		if place < 0 {
			place = len(jobs)
		}
		l.nodes[n].jobs = slices.Insert(jobs, place, i)
	}
	w.set(i, nodes[0], slices.Clone(nodes[1:]), j.level)
	if w.rng.IntN(2) == 0 {
		w.pace(i, w.another(i))
	}
	w.end()
}

// classFor is a class that a gang can run on, mostly the one that it is on.
func (w *walk) classFor(i int32) (class int, ok bool) {
	l := w.l
	here := l.nodes[l.jobs[i].node].class
	if w.rng.IntN(3) > 0 {
		return here, true
	}
	class = w.rng.IntN(len(l.classes))
	return class, l.menu(i, class).nodes > 1 || class == here
}

// nodesFor are nodes of a class for a gang: those that it has, or random ones.
func (w *walk) nodesFor(i int32, class int) []int32 {
	l, j := w.l, &w.l.jobs[i]
	if l.nodes[j.node].class == class && w.rng.IntN(2) == 0 {
		return append([]int32{j.node}, j.more...)
	}
	var nodes []int32
	seen, want := 0, l.menu(i, class).nodes
	for n := range l.nodes {
		if l.nodes[n].class != class {
			continue
		}
		seen++
		switch k := w.rng.IntN(seen); {
		case len(nodes) < want:
			nodes = append(nodes, int32(n)) //nolint:gosec // few nodes
		case k < want:
			nodes[k] = int32(n) //nolint:gosec // few nodes
		}
	}
	return nodes
}
