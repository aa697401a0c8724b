package pick

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/planner"
)

// besideSimple is Simple with a reference run beside it that is told of all that happens.
type besideSimple struct {
	*simple
	reference *referenceRun
}

func (b *besideSimple) Arrive(tasks []int) {
	b.simple.Arrive(tasks)
	for _, task := range tasks {
		b.reference.arrive(task, b.pairsOf[task])
	}
	b.reference.play(b.v.Now)
}

func (b *besideSimple) Committed(task int, a *planner.Assignment) {
	b.simple.Committed(task, a)
	b.reference.noteStart(task, b.v.Node(int(a.Node)).Class, a.Start)
}

func (b *besideSimple) Finished(task int, a *planner.Assignment) {
	b.simple.Finished(task, a)
	b.reference.noteEnd(task, a.End-a.Start)
}

func TestTheReferenceRunOfTasksThatHaveEndedIsWhatSimpleDid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := twoPools(t)
		for i := range p.Tasks[0].Options {
			p.Tasks[0].Options[i].GPUs = 2 // so that stages aren't made anew when the first such task comes
		}
		age := newResidualTimes(rapid.SampledFrom([]float64{1e-12, 0.35}).Draw(t, "spread"))
		var b *besideSimple
		made := play(t, p, func(v *planner.View, _ planner.Placer) planner.Picker {
			b = &besideSimple{&simple{waitingLine: newWaitingLine(v, Fairness{})}, newReferenceRun(v, age)}
			return b
		})
		b.reference.stale = true
		b.reference.play(math.Inf(1))
		longest := 0.0
		for i := range made.Assignments {
			longest = max(longest, made.Assignments[i].Start-p.Tasks[i].Arrival)
		}
		if math.Abs(b.reference.longest-longest) > 1e-9*longest {
			t.Fatalf("the longest wait is %v s in the reference run, %v with Simple", b.reference.longest, longest)
		}
	})
}
