package pick

import (
	"math"

	"github.com/epplan/epplan/planner"
)

// Simple offers the head of the queue, in order of arrival, for each node class
// in the order of the cluster, which should name the most powerful one first.
// Until the head has started, nothing else does: the rule that the PREDICT paper
// compares with.
func Simple(v *planner.View, _ planner.Placer) planner.Picker {
	return &simple{waitingLine: newWaitingLine(v, Fairness{})}
}

// Backfill is Simple that goes on to the next task when one finds no room.
// Nothing is reserved for those that are passed, until they lose patience.
type Backfill struct{ Fairness }

// New returns the Pick stage of one run.
func (o Backfill) New(v *planner.View, _ planner.Placer) planner.Picker {
	return &simple{waitingLine: newWaitingLine(v, o.Fairness), backfill: true}
}

type simple struct {
	waitingLine
	backfill bool
	at, pair int // what is offered next
}

func (s *simple) Arrive(tasks []int) {
	s.enqueue(tasks)
	s.at, s.pair = 0, 0
}

func (s *simple) Next() (int, bool) {
	if offered := s.offered; s.removeStarted() {
		s.pair = 0
		if offered < s.at { // it started out of turn
			s.at--
		}
	}
	if task, ok := s.giveUp(); ok {
		return task, true
	}
	for s.at < len(s.waiting) {
		for pairs := s.pairsOf[s.waiting[s.at]]; s.pair < len(pairs); {
			s.pair++
			if p := &pairs[s.pair-1]; s.mayStart(p) {
				return s.offer(s.at, p.class)
			}
		}
		if !s.backfill {
			break
		}
		s.at, s.pair = s.at+1, 0
	}
	return s.nextOverdue(math.Inf(1))
}
