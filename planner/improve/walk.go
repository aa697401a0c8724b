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
	l     *listSchedule
	rng   *rand.Rand
	trial trial
	pool  []int32 // buffer of drawNodes

	// What is told of the search.
	from  *planner.Plan // that it began with
	moves int           // of the whole search
	begun float64       // part of the search that is over
	share float64       // part of it that comes next
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
		w.trial.limit = temperature * w.rng.ExpFloat64()
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

// finishMove times the nodes, and undoes the move unless it is taken.
func (w *listAnnealing) finishMove() {
	if !w.trial.tryTake() {
		w.trial.undo()
	}
}

func (w *listAnnealing) retime(i int32) {
	w.trial.begin(w.l.jobs[i].node)
	w.trial.setLevel(i, w.nearbyLevel(i))
	w.finishMove()
}

// nodeOf returns one of the nodes of a job.
func (w *listAnnealing) nodeOf(i int32) int32 {
	j := &w.l.jobs[i]
	if j.more == nil {
		return j.node
	}
	return j.nodeAt(w.rng.IntN(j.nodeCount()))
}

// nearbyLevel returns a level near a job's whose time differs.
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

// randomStep returns a number of levels up or down, but 0.
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
	w.trial.begin(node)
	w.shiftLevels(node, w.randomStep(2))
	w.finishMove()
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
		w.trial.setLevel(i, w.l.jobs[i].level+step)
	}
}

// finishMoveWithLevels is end; before, every fourth time one of the nodes goes slower and the
// other one faster.
func (w *listAnnealing) finishMoveWithLevels() {
	if w.rng.IntN(4) == 0 {
		step := w.randomStep(2)
		a, b := w.trial.changed[0].node, w.trial.changed[1].node
		w.shiftLevels(a, step)
		w.shiftLevels(b, -step)
	}
	w.finishMove()
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
	w.trial.begin(node)
	n.jobs = slices.Insert(slices.Delete(n.jobs, from, from+1), to, i)
	w.finishMove()
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

func (w *listAnnealing) move(i int32) {
	from, to, turn, place := w.drawTarget(i)
	a, b := &w.l.nodes[from], &w.l.nodes[to]
	if from == to || !w.canMove(a.jobs[turn:turn+1], a, b) {
		return
	}
	w.trial.begin(from, to)
	a.jobs = slices.Delete(a.jobs, turn, turn+1)
	b.jobs = slices.Insert(b.jobs, place, i)
	if !w.trial.moveJobs(b.jobs[place:place+1], from, to) {
		w.trial.undo()
		return
	}
	if w.rng.IntN(2) == 0 {
		w.trial.setLevel(i, w.nearbyLevel(i))
	}
	w.finishMoveWithLevels()
}

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
	w.trial.begin(from, to)
	x, y := slices.Index(a.jobs, i), slices.Index(b.jobs, k)
	a.jobs[x], b.jobs[y] = k, i
	levelI, levelK := l.jobs[i].level, l.jobs[k].level
	if !w.trial.moveJobs(a.jobs[x:x+1], to, from) || !w.trial.moveJobs(b.jobs[y:y+1], from, to) {
		w.trial.undo()
		return
	}
	if a.class != b.class && w.rng.IntN(2) == 0 {
		w.trial.setLevel(i, levelK)
		w.trial.setLevel(k, levelI)
	}
	w.finishMoveWithLevels()
}

// crossover exchanges what two nodes run from some turn on.
func (w *listAnnealing) crossover(i int32) {
	from, to, turn, place := w.drawTarget(i)
	a, b := &w.l.nodes[from], &w.l.nodes[to]
	if from == to || !w.canMove(a.jobs[turn:], a, b) || !w.canMove(b.jobs[place:], b, a) {
		return
	}
	w.trial.begin(from, to)
	a.jobs = append(a.jobs[:turn], w.trial.listBefore(to)[place:]...)
	b.jobs = append(b.jobs[:place], w.trial.listBefore(from)[turn:]...)
	if !w.trial.moveJobs(a.jobs[turn:], to, from) || !w.trial.moveJobs(b.jobs[place:], from, to) {
		w.trial.undo()
		return
	}
	w.finishMoveWithLevels()
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
	seconds := j.used * j.time * (0.5 + w.rng.Float64())
	until := place
	for ; until < len(b.jobs) && seconds > 0; until++ {
		k := b.jobs[until]
		m := w.l.menu(k, a.class)
		seconds -= m.gpusUsed() * m.time[w.l.jobs[k].level]
	}
	if !w.canMove(b.jobs[place:until], b, a) {
		return
	}
	w.trial.begin(from, to)
	a.jobs = slices.Replace(a.jobs, turn, turn+1, w.trial.listBefore(to)[place:until]...)
	b.jobs = slices.Replace(b.jobs, place, until, i)
	if !w.trial.moveJobs(a.jobs[turn:turn+until-place], to, from) ||
		!w.trial.moveJobs(b.jobs[place:place+1], from, to) {
		w.trial.undo()
		return
	}
	w.finishMoveWithLevels()
}
