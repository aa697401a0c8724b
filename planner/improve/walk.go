package improve

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/planner"
)

// walk is simulated annealing over lists. Each move changes the lists of one or two
// nodes, and is undone unless it is taken.
type walk struct {
	l     *lists
	rng   *rand.Rand
	limit float64 // most that the move under test may add
	nodes [2]int32
	lists [2][]int32    // the nodes' jobs before the move
	sums  [2][2]float64 // and their net and busy
	was   []changedJob  // jobs whose clocks or node the move changed, in that order

	// What is told of the search.
	from  *planner.Plan // that it began with
	moves int           // of the whole search
	begun float64       // part of the search that is over
	share float64       // part of it that comes next
}

// changedJob is a job before a change.
type changedJob struct {
	index int32
	job   job
}

// anneal tries so many moves, or as many as the work allows, while the temperature
// falls from hot to cold, both of the objective. The lists are those of the best
// schedule found in the end.
func (w *walk) anneal(ctx context.Context, moves, most int, hot, cold float64) {
	const (
		lookEvery  = 1 << 10 // moves between two looks at the best and at the context's monitor
		foundEvery = 1 << 16 // moves between two plans that somebody is told of
	)
	best := w.l.clone()
	temperature := hot
	until := w.l.steps + most
	monitor, news := planner.MonitorOf(ctx), true
	for m := 0; m < moves && ctx.Err() == nil && w.l.steps < until; m++ {
		if m%lookEvery == 0 {
			if w.l.better(best) {
				best.become(w.l)
				news = true
			}
			done := max(float64(m)/float64(moves), 1-float64(until-w.l.steps)/float64(most))
			monitor.Count(min(lookEvery, moves-m))
			if news && m%foundEvery == 0 && monitor.Listens() {
				monitor.Found(w.l.p, best.plan(w.from))
				news = false
			}
			monitor.At(planner.Searching, int((w.begun+w.share*done)*float64(w.moves)), w.moves)
			temperature = hot * math.Pow(cold/hot, done)
		}
		w.limit = temperature * w.rng.ExpFloat64()
		w.try()
	}
	w.begun += w.share
	if best.better(w.l) {
		w.l.become(best)
	}
}

// try tests a random move.
func (w *walk) try() {
	i := int32(w.rng.IntN(len(w.l.jobs))) //nolint:gosec // few tasks
	if w.l.jobs[i].node < 0 {
		return
	}
	switch w.rng.IntN(20) {
	case 0, 1:
		w.retime(i)
	case 2, 3:
		w.bend(i)
	case 4, 5, 6:
		w.shift(i)
	case 7, 8, 9:
		w.move(i)
	case 10, 11:
		w.cross(i)
	case 12, 13:
		w.exchange(i)
	default:
		w.swap(i)
	}
}

// begin remembers two nodes, or one twice.
func (w *walk) begin(a, b int32) {
	w.nodes, w.was = [2]int32{a, b}, w.was[:0]
	for k, node := range w.nodes {
		n := &w.l.nodes[node]
		w.lists[k] = append(w.lists[k][:0], n.jobs...)
		w.sums[k] = [2]float64{n.net, n.busy}
	}
}

// set gives a job a node and a level, and remembers what it had.
func (w *walk) set(i, node, level int32) {
	w.was = append(w.was, changedJob{i, w.l.jobs[i]})
	w.l.set(i, node, min(max(level, 0), priceCount-1))
}

// put makes some jobs be on a node, at the levels that they have.
func (w *walk) put(jobs []int32, node int32) {
	for _, i := range jobs {
		w.set(i, node, w.l.jobs[i].level)
	}
}

// end times the nodes, and undoes the move unless it is taken.
func (w *walk) end() {
	l := w.l
	a, b := &l.nodes[w.nodes[0]], &l.nodes[w.nodes[1]]
	most := a.cost + w.limit
	if a != b {
		most += b.cost
	}
	cost, late := l.timing(a, most)
	if cost <= most {
		if a == b {
			a.cost, a.late = cost, late
			return
		}
		if other, late2 := l.timing(b, most-cost); cost+other <= most {
			a.cost, a.late, b.cost, b.late = cost, late, other, late2
			return
		}
	}
	for k, node := range w.nodes {
		n := &l.nodes[node]
		n.jobs = append(n.jobs[:0], w.lists[k]...)
		n.net, n.busy = w.sums[k][0], w.sums[k][1]
	}
	for _, was := range slices.Backward(w.was) {
		l.jobs[was.index] = was.job
	}
}

// retime gives a job another level.
func (w *walk) retime(i int32) {
	j := &w.l.jobs[i]
	w.begin(j.node, j.node)
	w.set(i, j.node, w.another(i))
	w.end()
}

// another is a level near a job's whose time differs.
func (w *walk) another(i int32) int32 {
	j := &w.l.jobs[i]
	m := w.l.menu(i, w.l.nodes[j.node].class)
	step := w.step(3)
	to := j.level
	for k := j.level + step; k >= 0 && k < priceCount; k += step {
		if to = k; m.time[k] != j.time {
			break
		}
	}
	return to
}

// step is a number of levels up or down, but 0.
func (w *walk) step(most int32) int32 {
	step := 1 + w.rng.Int32N(most)
	if w.rng.IntN(2) == 0 {
		return -step
	}
	return step
}

// bend changes the levels of some jobs of a node that follow each other.
func (w *walk) bend(i int32) {
	node := w.l.jobs[i].node
	w.begin(node, node)
	w.lean(node, w.step(2))
	w.end()
}

// lean changes the levels of a node's first jobs, or of some that follow each other.
func (w *walk) lean(node, step int32) {
	n := &w.l.nodes[node]
	if len(n.jobs) == 0 {
		return
	}
	from, to := 0, 1+w.rng.IntN(len(n.jobs))
	if w.rng.IntN(3) == 0 {
		from = w.rng.IntN(to)
	}
	for _, i := range n.jobs[from:to] {
		w.set(i, node, w.l.jobs[i].level+step)
	}
}

// endLeaning is end; before, every fourth time one of the nodes goes slower and the
// other one faster.
func (w *walk) endLeaning() {
	if w.rng.IntN(4) == 0 {
		step := w.step(2)
		w.lean(w.nodes[0], step)
		w.lean(w.nodes[1], -step)
	}
	w.end()
}

// shift moves a job to another turn of its node.
func (w *walk) shift(i int32) {
	node := w.l.jobs[i].node
	n := &w.l.nodes[node]
	from := slices.Index(n.jobs, i)
	to := w.rng.IntN(len(n.jobs))
	if w.rng.IntN(2) == 0 {
		to = min(max(from+1-2*w.rng.IntN(2), 0), len(n.jobs)-1)
	}
	if from == to {
		return
	}
	w.begin(node, node)
	n.jobs = slices.Insert(slices.Delete(n.jobs, from, from+1), to, i)
	w.end()
}

// pair draws another node for a job, and a turn there: as far on as the job is, or
// any.
func (w *walk) pair(i int32) (a, b int32, turn, place int) {
	a, b = w.l.jobs[i].node, int32(w.rng.IntN(len(w.l.nodes))) //nolint:gosec // few nodes
	here, there := w.l.nodes[a].jobs, w.l.nodes[b].jobs
	turn, place = slices.Index(here, i), w.rng.IntN(len(there)+1)
	if w.rng.IntN(2) == 0 {
		place = turn * len(there) / len(here)
	}
	return a, b, turn, place
}

// move puts a job on another node.
func (w *walk) move(i int32) {
	from, to, turn, place := w.pair(i)
	a, b := &w.l.nodes[from], &w.l.nodes[to]
	if from == to || w.l.menu(i, b.class).gpus == 0 {
		return
	}
	w.begin(from, to)
	a.jobs = slices.Delete(a.jobs, turn, turn+1)
	b.jobs = slices.Insert(b.jobs, place, i)
	w.put(b.jobs[place:place+1], to)
	if w.rng.IntN(2) == 0 {
		w.set(i, to, w.another(i))
	}
	w.endLeaning()
}

// swap exchanges two jobs of different nodes.
func (w *walk) swap(i int32) {
	l := w.l
	k := int32(w.rng.IntN(len(l.jobs))) //nolint:gosec // few tasks
	from, to := l.jobs[i].node, l.jobs[k].node
	if to < 0 || from == to {
		return
	}
	a, b := &l.nodes[from], &l.nodes[to]
	if l.menu(i, b.class).gpus == 0 || l.menu(k, a.class).gpus == 0 {
		return
	}
	w.begin(from, to)
	x, y := slices.Index(a.jobs, i), slices.Index(b.jobs, k)
	a.jobs[x], b.jobs[y] = k, i
	levelI, levelK := l.jobs[i].level, l.jobs[k].level
	w.put(a.jobs[x:x+1], from)
	w.put(b.jobs[y:y+1], to)
	if a.class != b.class && w.rng.IntN(2) == 0 {
		w.set(i, to, levelK)
		w.set(k, from, levelI)
	}
	w.endLeaning()
}

// cross exchanges what two nodes run from some turn on.
func (w *walk) cross(i int32) {
	from, to, turn, place := w.pair(i)
	a, b := &w.l.nodes[from], &w.l.nodes[to]
	if from == to || !w.l.fits(a.jobs[turn:], b.class) || !w.l.fits(b.jobs[place:], a.class) {
		return
	}
	w.begin(from, to)
	a.jobs = append(a.jobs[:turn], w.lists[1][place:]...)
	b.jobs = append(b.jobs[:place], w.lists[0][turn:]...)
	w.put(a.jobs[turn:], from)
	w.put(b.jobs[place:], to)
	w.endLeaning()
}

// exchange puts a job in place of several of another node that take about as long,
// which come in its place.
func (w *walk) exchange(i int32) {
	from, to, turn, place := w.pair(i)
	a, b := &w.l.nodes[from], &w.l.nodes[to]
	if from == to || w.l.menu(i, b.class).gpus == 0 {
		return
	}
	j := &w.l.jobs[i]
	seconds := float64(j.gpus) * j.time * (0.5 + w.rng.Float64())
	until := place
	for ; until < len(b.jobs) && seconds > 0; until++ {
		k := b.jobs[until]
		m := w.l.menu(k, a.class)
		if m.gpus == 0 {
			return
		}
		seconds -= float64(m.gpus) * m.time[w.l.jobs[k].level]
	}
	w.begin(from, to)
	a.jobs = slices.Replace(a.jobs, turn, turn+1, w.lists[1][place:until]...)
	b.jobs = slices.Replace(b.jobs, place, until, i)
	w.put(a.jobs[turn:turn+until-place], from)
	w.put(b.jobs[place:place+1], to)
	w.endLeaning()
}
