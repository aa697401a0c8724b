package pick

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// Value is PREDICT algorithm 2: all pairs of a waiting task and a node class are
// ranked by 1/(GPUs·seconds) − Kappa·kWh and offered from the highest down, each
// task until it has started. It never leaves free what some task fits on, but for
// one that has lost patience.
type Value struct {
	Kappa  float64
	Ageing float64 // seconds of waiting after which the first term counts twice, and so on; 0: never
	Fairness
}

// New returns the Pick stage of one run.
func (o Value) New(v *planner.View, _ planner.Placer) planner.Picker {
	return &value{waitingLine: newWaitingLine(v, o.Fairness), opts: o}
}

type value struct {
	waitingLine
	opts   Value
	ranked []pair // of the tasks that wait, the highest first, equal ones by arrival
	next   int
}

func (q *value) Arrive(tasks []int) {
	q.enqueue(tasks)
	q.next = 0
	q.ranked = slices.DeleteFunc(q.ranked, func(p pair) bool { return q.pairsOf[p.task] == nil })
	if len(tasks) == 0 && q.opts.Ageing == 0 {
		return
	}
	for _, task := range tasks {
		q.ranked = append(q.ranked, q.pairsOf[task]...)
	}
	for i := range q.ranked {
		p := &q.ranked[i]
		p.key = q.score(p)
	}
	slices.SortStableFunc(q.ranked, func(a, b pair) int { return cmp.Compare(b.key, a.key) })
}

func (q *value) score(p *pair) float64 {
	age := 1.0
	if q.opts.Ageing > 0 {
		age += (q.v.Now - q.v.Problem.Tasks[p.task].Arrival) / q.opts.Ageing
	}
	return age/p.work() - q.opts.Kappa*p.kWh()
}

func (q *value) Next() (int, bool) {
	if task, ok := q.giveUp(); ok {
		return task, true
	}
	for q.next < len(q.ranked) {
		p := &q.ranked[q.next]
		q.next++
		if q.pairsOf[p.task] != nil && q.mayStart(p) {
			return q.offer(q.placeOf(p.task), p.class)
		}
	}
	return q.nextOverdue(math.Inf(1))
}
