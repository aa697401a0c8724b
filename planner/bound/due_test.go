package bound_test

import (
	"math"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
)

// Tasks without due times and limits have all the time that they want: each costs its
// own minimum.
func TestWithoutDueTimesTheBoundIsWhatTasksCostByThemselves(t *testing.T) {
	wide := dvfsmodel.WideRange()
	p := &planner.Problem{Cluster: planner.Cluster{Classes: []planner.NodeClass{
		{Name: "few", Model: "A", GPUs: 4, Count: 1, IdleW: 30, HostW: 20},
		{Name: "many", Model: "B", GPUs: 2, IdleW: 30, HostW: 20},
	}}}
	for _, seconds := range []float64{60, 600, 6000} {
		r := &dvfsmodel.Continuous{
			Params: dvfsmodel.Params{
				P0: 50, Gamma: 30, C: 110, D: 0.9 * seconds, Delta: 0.6, T0: 0.1 * seconds,
			}, Range: &wide,
		}
		p.Tasks = append(p.Tasks, planner.NewTask("a", planner.Option{Model: "A", GPUs: 1, Response: r}),
			planner.NewTask("b", planner.Option{Model: "B", GPUs: 1, Response: r}))
	}
	for i := range p.Tasks {
		p.Tasks[i].ID += string(rune('0' + i))
	}
	run := float64(bound.Lower(p).Run)
	if got := bound.NewDueDual(p, 1, 0).Value; !(math.Abs(got/run-1) < 1e-6) {
		t.Errorf("%v J, want what the tasks cost by themselves, %v J", got, run)
	}
}
