package pick

import (
	"math"

	"github.com/epplan/epplan/planner"
)

// Greedy is PREDICT algorithm 1: the head of the queue is offered for the node
// class where Alpha·seconds + Gamma·kWh is least by prediction, whether that is
// free or not. If it isn't, everybody waits; who has lost patience starts on any.
type Greedy struct {
	Alpha, Gamma float64
	Fairness
}

// New returns the Pick stage of one run.
func (g Greedy) New(v *planner.View, _ planner.Placer) planner.Picker {
	return &greedy{waitingLine: newWaitingLine(v, g.Fairness), weights: g}
}

type greedy struct {
	waitingLine
	weights Greedy
	refused bool // the head was, since the last event
}

func (g *greedy) Arrive(tasks []int) {
	g.enqueue(tasks)
	g.refused = false
}

func (g *greedy) Next() (int, bool) {
	if task, ok := g.giveUp(); ok {
		return task, true
	}
	if g.refused || len(g.waiting) == 0 {
		return g.nextOverdue(math.Inf(1))
	}
	pairs := g.pairsOf[g.waiting[0]]
	best := &pairs[0]
	for i := range pairs {
		p := &pairs[i]
		if p.key = g.weights.Alpha*p.Time + g.weights.Gamma*p.kWh(); p.key < best.key {
			best = p
		}
	}
	if !g.mayStart(best) {
		return g.nextOverdue(math.Inf(1))
	}
	return g.offer(0, best.class)
}

// Refused blocks the queue until the next event.
func (g *greedy) Refused(task int) {
	g.waitingLine.Refused(task)
	g.refused = true
}
