package improve

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/planner"
)

// listAnnealing is simulated annealing over lists. Each move changes the lists of one or two
// nodes, or all those of a gang, and is undone unless it is taken.
type listAnnealing struct {
	l          *listSchedule
	rng        *rand.Rand
	limit      float64       // most that the move under test may add
	changed    []changedNode // by the move
	count      int           // how many of these there are
	formerJobs []changedJob  // jobs that the move changed, in that order
	nodes      []int32       // buffer of takenTogether
	pool       []int32       // buffer of draw

	// What is told of the search.
	from  *planner.Plan // that it began with
	moves int           // of the whole search
	begun float64       // part of the search that is over
	share float64       // part of it that comes next
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

// anneal tries so many moves, or as many as the work allows, while the temperature
// falls from hot to cold, both of the objective. The lists are those of the best
// schedule found in the end.
func (w *listAnnealing) anneal(ctx context.Context, moves, most int, hot, cold float64) {
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
			if w.l.isBetter(best) {
				best.copyFrom(w.l)
				news = true
			}
			done := max(float64(m)/float64(moves), 1-float64(until-w.l.steps)/float64(most))
			monitor.Count(min(lookEvery, moves-m))
			if news && m%foundEvery == 0 && monitor.HasListener() {
				monitor.Found(w.l.p, best.toPlan(w.from))
				news = false
			}
			monitor.SetPhase(planner.Searching, int((w.begun+w.share*done)*float64(w.moves)), w.moves)
			temperature = hot * math.Pow(cold/hot, done)
		}
		w.limit = temperature * w.rng.ExpFloat64()
		w.tryMove()
	}
	w.begun += w.share
	if best.isBetter(w.l) {
		w.l.copyFrom(best)
	}
}

// tryMove tests a random move.
func (w *listAnnealing) tryMove() {
	i := int32(w.rng.IntN(len(w.l.jobs)))
	if w.l.jobs[i].node < 0 {
		return
	}
	if w.l.jobs[i].more != nil && w.rng.IntN(2) == 0 {
		w.tryGang(i)
		return
	}
	switch w.rng.IntN(20) {
	case 0, 1:
		w.retime(i)
	case 2, 3:
		w.shiftLevelsAround(i)
	case 4, 5, 6:
		w.shift(i)
	case 7, 8, 9:
		w.move(i)
	case 10, 11:
		w.crossover(i)
	case 12, 13:
		w.exchange(i)
	default:
		w.swap(i)
	}
}

// begin remembers the nodes that a move is about to change.
func (w *listAnnealing) begin(nodes ...int32) {
	w.count, w.formerJobs = 0, w.formerJobs[:0]
	for _, n := range nodes {
		w.touch(n)
	}
}

// touch remembers one more node.
func (w *listAnnealing) touch(node int32) {
	for k := range w.count {
		if w.changed[k].node == node {
			return
		}
	}
	if w.count == len(w.changed) {
		w.changed = append(w.changed, changedNode{})
	}
	c, n := &w.changed[w.count], &w.l.nodes[node]
	c.node, c.jobs, c.gangs, c.net, c.busy = node, append(c.jobs[:0], n.jobs...), n.gangs, n.net, n.busy
	w.count++
}

// before is the list of a node before the move.
func (w *listAnnealing) before(node int32) []int32 {
	for k := range w.count {
		if w.changed[k].node == node {
			return w.changed[k].jobs
		}
	}
	return nil
}

// set gives a job nodes and a level, and remembers what it had.
func (w *listAnnealing) set(i, node int32, more []int32, level int32) {
	if j := &w.l.jobs[i]; j.more != nil {
		w.touch(j.node)
		for _, n := range j.more {
			w.touch(n)
		}
	}
	w.formerJobs = append(w.formerJobs, changedJob{i, w.l.jobs[i]})
	w.l.set(i, node, more, min(max(level, 0), priceCount-1))
}

// setLevel gives a job another level.
func (w *listAnnealing) setLevel(i, level int32) {
	j := &w.l.jobs[i]
	w.set(i, j.node, j.more, level)
}

// put makes some jobs that were on a node be on another one, at the levels that they
// have. ok is false where a gang is there already.
func (w *listAnnealing) put(jobs []int32, from, to int32) (ok bool) {
	for _, i := range jobs {
		j := &w.l.jobs[i]
		if j.more == nil {
			w.set(i, to, nil, j.level)
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
		w.set(i, node, more, j.level)
	}
	return true
}

// canMove reports whether jobs of a node may come to another one: gangs stay on their class.
func (w *listAnnealing) canMove(jobs []int32, from, to *nodeList) bool {
	if from.class == to.class {
		return true
	}
	for _, i := range jobs {
		if w.l.jobs[i].more != nil || w.l.menu(i, to.class).nodes != 1 {
			return false
		}
	}
	return true
}

// end times the nodes, and undoes the move unless it is taken.
func (w *listAnnealing) end() {
	if !w.isTaken() {
		w.undo()
	}
}

// isTaken times the nodes, and reports whether the move is taken.
func (w *listAnnealing) isTaken() bool {
	l := w.l
	for k := range w.count {
		if l.nodes[w.changed[k].node].gangs > 0 {
			return w.isTakenWithLinks()
		}
	}
	a := &l.nodes[w.changed[0].node]
	most := a.cost + w.limit
	if w.count == 1 {
		cost, late := l.timeNode(a, most)
		if cost > most {
			return false
		}
		a.cost, a.late = cost, late
		return true
	}
	b := &l.nodes[w.changed[1].node]
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
	return true
}

// isTakenWithLinks is taken where gangs link nodes.
func (w *listAnnealing) isTakenWithLinks() bool {
	nodes := w.nodes[:0]
	for k := range w.count {
		nodes = append(nodes, w.changed[k].node)
	}
	w.nodes = nodes
	same := w.unchangedPrefix()
	if !w.l.playing.timeLists(nodes, w.limit, same) || w.l.playing.gain() < -w.limit {
		return false
	}
	w.l.playing.accept()
	w.l.playing.record(same)
	return true
}

// unchangedPrefix is how many jobs start, in the play that was recorded, before the first one
// whose start the move may change.
func (w *listAnnealing) unchangedPrefix() int {
	l, same := w.l, len(w.l.jobs)
	if !l.playing.recorded {
		return 0
	}
	for k := range w.count {
		c := &w.changed[k]
		if c.gangs == 0 {
			continue // it wasn't played
		}
		now := l.nodes[c.node].jobs
		for turn, i := range c.jobs {
			if turn == len(now) || now[turn] != i ||
				slices.ContainsFunc(w.formerJobs, func(was changedJob) bool { return was.index == i }) {
				same = min(same, l.playing.turn[i])
				break
			}
		}
	}
	return same
}

// undo takes the move back.
func (w *listAnnealing) undo() {
	l := w.l
	for k := range w.count {
		c := &w.changed[k]
		n := &l.nodes[c.node]
		n.jobs = append(n.jobs[:0], c.jobs...)
		n.gangs, n.net, n.busy = c.gangs, c.net, c.busy
	}
	for _, was := range slices.Backward(w.formerJobs) {
		l.jobs[was.index] = was.job
	}
}

// retime gives a job another level.
func (w *listAnnealing) retime(i int32) {
	w.begin(w.l.jobs[i].node)
	w.setLevel(i, w.nearbyLevel(i))
	w.end()
}

// nodeOf is one of the nodes of a job.
func (w *listAnnealing) nodeOf(i int32) int32 {
	j := &w.l.jobs[i]
	if j.more == nil {
		return j.node
	}
	if k := w.rng.IntN(1 + len(j.more)); k > 0 {
		return j.more[k-1]
	}
	return j.node
}

// nearbyLevel is a level near a job's whose time differs.
func (w *listAnnealing) nearbyLevel(i int32) int32 {
	j := &w.l.jobs[i]
	m := w.l.menu(i, w.l.nodes[j.node].class)
	step := w.randomStep(3)
	to := j.level
	for k := j.level + step; k >= 0 && k < priceCount; k += step {
		if to = k; m.time[k] != j.time {
			break
		}
	}
	return to
}

// randomStep is a number of levels up or down, but 0.
func (w *listAnnealing) randomStep(most int32) int32 {
	step := 1 + w.rng.Int32N(most)
	if w.rng.IntN(2) == 0 {
		return -step
	}
	return step
}

// shiftLevelsAround changes the levels of some jobs of a node that follow each other.
func (w *listAnnealing) shiftLevelsAround(i int32) {
	node := w.nodeOf(i)
	w.begin(node)
	w.shiftLevels(node, w.randomStep(2))
	w.end()
}

// shiftLevels changes the levels of a node's first jobs, or of some that follow each other.
func (w *listAnnealing) shiftLevels(node, step int32) {
	n := &w.l.nodes[node]
	if len(n.jobs) == 0 {
		return
	}
	from, to := 0, 1+w.rng.IntN(len(n.jobs))
	if w.rng.IntN(3) == 0 {
		from = w.rng.IntN(to)
	}
	for _, i := range n.jobs[from:to] {
		w.setLevel(i, w.l.jobs[i].level+step)
	}
}

// endWithLevels is end; before, every fourth time one of the nodes goes slower and the
// other one faster.
func (w *listAnnealing) endWithLevels() {
	if w.rng.IntN(4) == 0 {
		step := w.randomStep(2)
		a, b := w.changed[0].node, w.changed[1].node
		w.shiftLevels(a, step)
		w.shiftLevels(b, -step)
	}
	w.end()
}

// shift moves a job to another turn of its node.
func (w *listAnnealing) shift(i int32) {
	node := w.nodeOf(i)
	n := &w.l.nodes[node]
	from := slices.Index(n.jobs, i)
	to := w.rng.IntN(len(n.jobs))
	if w.rng.IntN(2) == 0 {
		to = min(max(from+1-2*w.rng.IntN(2), 0), len(n.jobs)-1)
	}
	if from == to {
		return
	}
	w.begin(node)
	n.jobs = slices.Insert(slices.Delete(n.jobs, from, from+1), to, i)
	w.end()
}

// drawTarget draws another node for a job, and a turn there: as far on as the job is, or
// any.
func (w *listAnnealing) drawTarget(i int32) (a, b int32, turn, place int) {
	a, b = w.nodeOf(i), int32(w.rng.IntN(len(w.l.nodes)))
	here, there := w.l.nodes[a].jobs, w.l.nodes[b].jobs
	turn, place = slices.Index(here, i), w.rng.IntN(len(there)+1)
	if w.rng.IntN(2) == 0 {
		place = turn * len(there) / len(here)
	}
	return a, b, turn, place
}

// move puts a job on another node.
func (w *listAnnealing) move(i int32) {
	from, to, turn, place := w.drawTarget(i)
	a, b := &w.l.nodes[from], &w.l.nodes[to]
	if from == to || !w.canMove(a.jobs[turn:turn+1], a, b) {
		return
	}
	w.begin(from, to)
	a.jobs = slices.Delete(a.jobs, turn, turn+1)
	b.jobs = slices.Insert(b.jobs, place, i)
	if !w.put(b.jobs[place:place+1], from, to) {
		w.undo()
		return
	}
	if w.rng.IntN(2) == 0 {
		w.setLevel(i, w.nearbyLevel(i))
	}
	w.endWithLevels()
}

// swap exchanges two jobs of different nodes.
func (w *listAnnealing) swap(i int32) {
	l := w.l
	k := int32(w.rng.IntN(len(l.jobs)))
	if l.jobs[k].node < 0 {
		return
	}
	from, to := w.nodeOf(i), w.nodeOf(k)
	a, b := &l.nodes[from], &l.nodes[to]
	if from == to || i == k || !w.canMove([]int32{i}, a, b) || !w.canMove([]int32{k}, b, a) {
		return
	}
	w.begin(from, to)
	x, y := slices.Index(a.jobs, i), slices.Index(b.jobs, k)
	a.jobs[x], b.jobs[y] = k, i
	levelI, levelK := l.jobs[i].level, l.jobs[k].level
	if !w.put(a.jobs[x:x+1], to, from) || !w.put(b.jobs[y:y+1], from, to) {
		w.undo()
		return
	}
	if a.class != b.class && w.rng.IntN(2) == 0 {
		w.setLevel(i, levelK)
		w.setLevel(k, levelI)
	}
	w.endWithLevels()
}

// crossover exchanges what two nodes run from some turn on.
func (w *listAnnealing) crossover(i int32) {
	from, to, turn, place := w.drawTarget(i)
	a, b := &w.l.nodes[from], &w.l.nodes[to]
	if from == to || !w.canMove(a.jobs[turn:], a, b) || !w.canMove(b.jobs[place:], b, a) {
		return
	}
	w.begin(from, to)
	a.jobs = append(a.jobs[:turn], w.before(to)[place:]...)
	b.jobs = append(b.jobs[:place], w.before(from)[turn:]...)
	if !w.put(a.jobs[turn:], to, from) || !w.put(b.jobs[place:], from, to) {
		w.undo()
		return
	}
	w.endWithLevels()
}

// exchange puts a job in place of several of another node that take about as long,
// which come in its place.
func (w *listAnnealing) exchange(i int32) {
	from, to, turn, place := w.drawTarget(i)
	a, b := &w.l.nodes[from], &w.l.nodes[to]
	if from == to || !w.canMove(a.jobs[turn:turn+1], a, b) {
		return
	}
	j := &w.l.jobs[i]
	seconds := float64(j.gpus) * j.time * (0.5 + w.rng.Float64())
	until := place
	for ; until < len(b.jobs) && seconds > 0; until++ {
		k := b.jobs[until]
		m := w.l.menu(k, a.class)
		seconds -= float64(m.gpus) * m.time[w.l.jobs[k].level]
	}
	if !w.canMove(b.jobs[place:until], b, a) {
		return
	}
	w.begin(from, to)
	a.jobs = slices.Replace(a.jobs, turn, turn+1, w.before(to)[place:until]...)
	b.jobs = slices.Replace(b.jobs, place, until, i)
	if !w.put(a.jobs[turn:turn+until-place], to, from) || !w.put(b.jobs[place:place+1], from, to) {
		w.undo()
		return
	}
	w.endWithLevels()
}
