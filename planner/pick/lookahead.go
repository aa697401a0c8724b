package pick

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// Lookahead weighs what can start now against waiting, by what follows. For each
// decision it draws futures: how long the running and the waiting tasks really
// take, and what else arrives. In each it plays every choice, a task on a class
// or nothing at all, and goes on by a plan that is drafted anew at each end and
// arrival. The choice that costs least on average is made: seconds of waiting,
// and energy at a price in such seconds.
//
// It looks at predictions and at what has happened only. Futures are drawn from
// a seed, so that a run can be repeated.
type Lookahead struct {
	// Weight is what the energy of Simple is worth, as a multiple of the waiting
	// there, so far as both are known; it counts by which part of the energy
	// depends on the class at all.
	Weight  float64
	PerKWh  float64 // seconds of waiting that a kWh is worth; 0: by Weight
	Futures int     // the most futures that are drawn for a decision; 0: the draft decides
	Ageing  float64 // seconds of waiting after which another one counts twice; 0: never
	Seed    uint64
	Fairness
}

// New returns the Pick stage of one run.
func (o Lookahead) New(v *planner.View, _ planner.Placer) planner.Picker {
	age, line := newResidualTimes(o.spread()), newChooser(v, o.Fairness)
	l := &lookahead{
		chooser: line, plan: newTentativePlan(line.total, age),
		rollout: newRollout(o, line.total, age),
		opts:    o, window: mostWaiting, free: make([]float64, len(line.total)),
	}
	l.plan.rounds, l.plan.behindDelayCost = mostRounds, crowdingCost
	l.rollout.view = v
	l.rollout.closed = v.Problem.Mode == planner.Offline
	return l
}

// The bounds of what is looked at: tasks that wait in a draft, those of them that
// are tried on other classes, and how often all are tried before others.
const (
	mostWaiting = 64
	mostFlips   = 4
	mostRounds  = 3
)

// crowdingCost is what each task that waits behind another one loses by what that keeps
// busy, seconds a second of a whole class.
const crowdingCost = 0.1

type lookahead struct {
	chooser
	opts      Lookahead
	plan      tentativePlan
	rollout   rollout
	window    int       // waiting tasks that are looked at
	free      []float64 // by class
	planned   []pair    // what the draft starts, in order; only without futures
	isPlanned bool
}

func (q *lookahead) Arrive(tasks []int) {
	q.enqueue(tasks)
	q.unbar()
	q.isPlanned = false
	for _, task := range tasks {
		q.rollout.learn(q.v.Problem.Tasks[task].Arrival, q.pairsOf[task])
	}
}

func (q *lookahead) Next() (int, bool) {
	q.wake = math.Inf(1)
	if task, ok := q.giveUp(); ok {
		return task, true
	}
	best, ok := q.choose()
	if !ok {
		if len(q.waiting) > 0 && len(q.running) > 0 {
			q.wake = q.v.Now + wakeAfter*q.rollout.meanRunTime()
		}
		q.isPlanned = false
		return q.nextOverdue(q.wake)
	}
	return q.propose(q.placeOf(best.task), best)
}

// choose returns the pair to start now; ok is false when waiting is better.
func (q *lookahead) choose() (best pair, ok bool) {
	for class := range q.free {
		q.free[class] = q.total[class] - q.busy[class]
	}
	var choices []pair
	for _, task := range q.waiting[:min(len(q.waiting), q.window)] {
		choices = q.startable(choices, task)
	}
	if len(choices) == 0 {
		return pair{}, false
	}
	if q.opts.Futures == 0 || len(q.waiting) > q.window {
		return q.nextPlanned()
	}
	q.fillPlan()
	return q.rollout.bestChoice(&q.plan, q.v.Now, q.free, len(q.running), q.waiting, choices)
}

// startable appends the pairs of a task that could start now and are like none
// that is there already.
func (q *lookahead) startable(all []pair, task int) []pair {
	for _, p := range q.pairsOf[task] {
		same := func(c pair) bool { return c.class == p.class && c.Prediction == p.Prediction }
		if q.mayStart(&p) && !q.isBarred(&p) && !slices.ContainsFunc(all, same) {
			all = append(all, p)
		}
	}
	return all
}

func (q *lookahead) nextPlanned() (best pair, ok bool) {
	if !q.isPlanned {
		q.fillPlan()
		q.rollout.setDelayPrices(&q.plan, q.v.Now)
		q.plan.build(q.v.Now, q.free)
		q.v.Evaluations += q.plan.placed
		q.plan.placed = 0
		q.planned, q.isPlanned = q.planned[:0], true
		for i, item := range q.plan.line {
			task := q.waiting[int(item)-len(q.running)]
			for _, p := range q.pairsOf[task] {
				if q.plan.now[i] && p.class == int(q.plan.chosen[i]) {
					q.planned = append(q.planned, p)
				}
			}
		}
	}
	for len(q.planned) > 0 {
		best, q.planned = q.planned[0], q.planned[1:]
		if q.pairsOf[best.task] != nil && q.mayStart(&best) && !q.isBarred(&best) {
			return best, true
		}
	}
	return pair{}, false
}

// fillPlan makes the draft know what runs and what waits, the first of it if
// there is too much.
func (q *lookahead) fillPlan() {
	d := &q.plan
	d.items.truncate(d.classes, 0)
	d.line, d.running = d.line[:0], d.running[:0]
	for i := range q.running {
		r := &q.running[i]
		d.items.add(d.classes, q.v.Problem.Tasks[r.pair.task].Arrival, []pair{r.pair}, q.rollout.secondsPerKWh())
		d.running = append(d.running, plannedRunning{
			item: int32(i), class: int32(r.pair.class), start: r.start,
		})
	}
	for _, task := range q.waiting[:min(len(q.waiting), q.window)] {
		d.items.add(d.classes, q.v.Problem.Tasks[task].Arrival, q.pairsOf[task], q.rollout.secondsPerKWh())
		d.enqueue(int32(len(d.items.arrival) - 1))
	}
}
