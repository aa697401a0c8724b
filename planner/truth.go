package planner

import (
	"errors"
	"fmt"

	"github.com/epplan/epplan/dvfsmodel"
)

// truth is how tasks turn out, and what was believed of those that started.
type truth struct {
	problem  *Problem
	believed []Assignment // by task
}

func newTruth(p *Problem) *truth {
	return &truth{problem: p, believed: make([]Assignment, len(p.Tasks))}
}

// bookActual notes an assignment as it was decided and makes it what it turns out to
// be: same place, start, clocks and cap, true run time and power.
func (t *truth) bookActual(task int, a *Assignment) {
	t.believed[task] = *a
	s := a.Point.Scaling
	model, _ := dvfsmodel.ModelAt(t.problem.Tasks[task].Options[a.Option].Response, &a.Point)
	a.Point.Time, a.Point.Power = model.Time(s.Fc, s.Fm), model.Power(s)
	a.Point.Energy = a.Point.Power.Over(a.Point.Time)
	a.End = a.Start + a.Point.Time
}

// predicted returns the assignment as it was decided, on the node where it is now.
func (t *truth) predicted(task int, a *Assignment) *Assignment {
	b := &t.believed[task]
	b.Node, b.GPUs, b.More = a.Node, a.GPUs, a.More
	return b
}

// checkActual reports the first thing in which the problem differs from the predicted
// one, other than run times and powers.
func (p *Problem) checkActual(predicted *Problem) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("how the jobs turn out: %w", err)
	}
	if len(p.Tasks) != len(predicted.Tasks) || len(p.Cluster.Classes) != len(predicted.Cluster.Classes) {
		return errors.New("how the jobs turn out: another number of jobs or node classes than predicted")
	}
	for i := range p.Tasks {
		a, b := &p.Tasks[i], &predicted.Tasks[i]
		same := a.ID == b.ID && a.Arrival == b.Arrival && len(a.Options) == len(b.Options)
		for o := 0; same && o < len(a.Options); o++ {
			same = a.Options[o].Model == b.Options[o].Model && a.Options[o].GPUs == b.Options[o].GPUs &&
				a.Options[o].NodeCount() == b.Options[o].NodeCount()
		}
		if !same {
			return fmt.Errorf("how the jobs turn out: job %q isn't the one that was predicted", a.ID)
		}
	}
	return nil
}
