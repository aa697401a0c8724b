package planner_test

import (
	"math"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

func TestAProblemThatMakesNoSenseIsRefused(t *testing.T) {
	wide, zero := dvfsmodel.WideRange(), dvfsmodel.Range{}
	nan := scalable(50)
	nan.D = math.NaN()
	for _, c := range []struct {
		name  string
		spoil func(*planner.Problem)
		said  string
	}{
		{"mode", func(p *planner.Problem) { p.Mode = 9 }, "mode 9"},
		{"start rule", func(p *planner.Problem) { p.Start = -1 }, "start rule -1"},
		{"more nodes than numbers", func(p *planner.Problem) {
			p.Cluster.Classes[0].Count = 1 << 40
		}, "1099511627776 nodes"},
		{"due after the deadline", func(p *planner.Problem) {
			p.Tasks[0].Deadline, p.Tasks[0].Due = 100, 200
		}, "due 200 s"},
		{"range left out", func(p *planner.Problem) {
			p.Tasks[0].Options[0].Response = &dvfsmodel.Continuous{Params: scalable(50)}
		}, "no range"},
		{"empty range", func(p *planner.Problem) {
			p.Tasks[0].Options[0].Response = &dvfsmodel.Continuous{Params: scalable(50), Range: &zero}
		}, "range"},
		{"table left out", func(p *planner.Problem) {
			p.Tasks[0].Options[0].Response = &dvfsmodel.Discrete{Params: scalable(50)}
		}, "no table"},
		{"model not a number", func(p *planner.Problem) {
			p.Tasks[0].Options[0].Response = &dvfsmodel.Continuous{Params: nan, Range: &wide}
		}, "NaN"},
		{"run time not a number", func(p *planner.Problem) {
			p.Tasks[0].Options[0].Response = &dvfsmodel.Fixed{At: dvfsmodel.Point{
				Scaling: dvfsmodel.DefaultScaling(), Time: math.NaN(),
			}}
		}, "run time NaN s"},
		{"energy below 0", func(p *planner.Problem) {
			p.Tasks[0].Options[0].Response = &dvfsmodel.Fixed{At: dvfsmodel.Point{
				Scaling: dvfsmodel.DefaultScaling(), Time: 1, Energy: -1,
			}}
		}, "-1 J"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pair(planner.Offline)
			c.spoil(p)
			if err := p.Validate(); err == nil || !strings.Contains(err.Error(), c.said) {
				t.Errorf("error is %v, want one with %q", err, c.said)
			}
		})
	}
}

func TestATaskThatIsNewNeedsOnlyItsOptions(t *testing.T) {
	p := pair(planner.Offline)
	p.Tasks = []planner.Task{planner.NewTask("a", planner.Option{Model: "A", GPUs: 1, Response: fixed(50)})}
	plan := solveWith(t, p, plain())
	if plan.Status != planner.Complete || plan.Assignments[0].End != 50 {
		t.Errorf("status %v, end %v, want the task placed at once", plan.Status, plan.Assignments[0].End)
	}
}

func TestDueTimesAreNotStretchedByWhatIsNoNumber(t *testing.T) {
	for _, stretch := range []float64{math.NaN(), math.Inf(1)} {
		if err := policy.ImplyDue(t.Context(), pair(planner.Offline), stretch); err == nil {
			t.Errorf("a stretch of %v: no error", stretch)
		}
	}
}
