package place_test

import (
	"context"
	"math"
	"strconv"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/tune"
)

// replanned plans tasks online by Replan.
func replanned(t *testing.T, p *planner.Problem) *planner.Plan {
	t.Helper()
	const stretch = 1.5
	policy := &planner.Policy{
		Name: "test", Tune: tune.Optimum(1), Place: place.Replan{Stretch: stretch}.New, Pick: pick.ByPlacer,
		Park: park.DRS{Rho: 2},
	}
	plan, err := planner.Solve(context.Background(), p, policy, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := check.Plan(p, plan); err != nil {
		t.Fatal(err)
	}
	return plan
}

// onModels returns a task that takes so many seconds at default clocks, and so many watts, on
// GPU models A, B, …; half of the time follows the clock.
func onModels(number int, arrival float64, gpus int, seconds, watts []float64) planner.Task {
	wide := dvfsmodel.WideRange()
	task := planner.NewTask("job" + strconv.Itoa(number))
	task.Arrival = arrival
	for i := range seconds {
		w := dvfsmodel.Watt(watts[i])
		task.Options = append(task.Options, planner.Option{
			Model: string(rune('A' + i)), GPUs: gpus, Response: &dvfsmodel.Continuous{
				Range: &wide, Params: dvfsmodel.Params{
					P0: 0.2 * w, Gamma: 0.1 * w, C: 0.7 * w, D: 0.9 * seconds[i], Delta: 0.5,
					T0: 0.1 * seconds[i],
				},
			},
		})
	}
	return task
}

// pools are nodes of 2 GPUs of each of some models.
func pools(models, nodes int) planner.Cluster {
	c := planner.Cluster{}
	for i := range models {
		model := string(rune('A' + i))
		c.Classes = append(c.Classes, planner.NodeClass{
			Name: model, Model: model, Count: nodes, GPUs: 2, IdleW: 20, HostW: 30, TurnOn: 500,
			TurnOnDelay: 30,
		})
	}
	return c
}

// stretched returns the mean run time of tasks, as a multiple of that at default clocks.
func stretched(p *planner.Problem, plan *planner.Plan) (sum float64) {
	for i := range plan.Assignments {
		a := &plan.Assignments[i]
		sum += (a.End - a.Start) / p.Tasks[i].Options[a.Option].Response.Default().Time
	}
	return sum / float64(len(plan.Assignments))
}

// TestClocksAreSlowWhereTimeIsWon: B takes as much energy as A and is four times as
// fast, but default clocks fill A first. With B alone there is nothing to win.
func TestClocksAreSlowWhereTimeIsWon(t *testing.T) {
	lone := func(models int) (*planner.Problem, *planner.Plan) {
		p := &planner.Problem{Mode: planner.Online, Cluster: pools(2, 4)}
		p.Cluster.Classes = p.Cluster.Classes[2-models:]
		for i := range 40 {
			task := onModels(i, float64(i)*1000, 1, []float64{4000, 1000}, []float64{50, 200})
			task.Options = task.Options[2-models:]
			p.Tasks = append(p.Tasks, task)
		}
		return p, replanned(t, p)
	}
	both, withA := lone(2)
	alone, withoutA := lone(1)
	slow, fast := stretched(both, withA), stretched(alone, withoutA)
	if slow < fast+0.05 {
		t.Errorf("runs take %.2f times as long as at default clocks where the other model is slow, %.2f "+
			"times where there is none; want more", slow, fast)
	}
	if fast > 1.1 {
		t.Errorf("runs take %.2f times as long as at default clocks where nobody ever waits, want "+
			"1.1 at most", fast)
	}
}

// TestATaskWaitsForTheModelThatTakesLessIfItComesFreeSoon, and doesn't if it doesn't.
func TestATaskWaitsForTheModelThatTakesLessIfItComesFreeSoon(t *testing.T) {
	for _, c := range []struct {
		name  string
		busy  float64 // seconds that the frugal model's GPUs are taken
		model int32
	}{{"soon", 200, 0}, {"late", 40_000, 1}} {
		t.Run(c.name, func(t *testing.T) {
			p := &planner.Problem{Mode: planner.Online, Cluster: pools(2, 1)}
			p.Tasks = []planner.Task{
				onModels(0, 0, 2, []float64{c.busy}, []float64{100}),
				onModels(1, 10, 2, []float64{2000, 2000}, []float64{100, 300}),
			}
			plan := replanned(t, p)
			if got := plan.Assignments[1].Option; got != c.model {
				t.Errorf("runs on model %c from %v s on, want %c", 'A'+got,
					plan.Assignments[1].Start, 'A'+c.model)
			}
		})
	}
}

// TestATaskPassesOneThatWaitsForAWholeNode only if it is gone by then.
func TestATaskPassesOneThatWaitsForAWholeNode(t *testing.T) {
	for _, c := range []struct {
		name    string
		seconds float64
		passes  bool
	}{{"short", 500, true}, {"long", 5000, false}} {
		t.Run(c.name, func(t *testing.T) {
			p := &planner.Problem{Mode: planner.Online, Cluster: pools(1, 1)}
			p.Tasks = []planner.Task{
				onModels(0, 0, 1, []float64{1000}, []float64{100}),
				onModels(1, 1, 2, []float64{100}, []float64{100}), // takes least, and so comes first
				onModels(2, 2, 1, []float64{c.seconds}, []float64{100}),
			}
			plan := replanned(t, p)
			wide, other := &plan.Assignments[1], &plan.Assignments[2]
			if passes := other.Start < wide.Start; passes != c.passes ||
				math.Abs(wide.Start-plan.Assignments[0].End) > 1e-6 {
				t.Errorf("runs from %v s on, the wide one from %v s, want that from %v s and passed: %v",
					other.Start, wide.Start, plan.Assignments[0].End, c.passes)
			}
		})
	}
}

// TestWhatMustStartGoesFirst: by work it would be the last one.
func TestWhatMustStartGoesFirst(t *testing.T) {
	p := &planner.Problem{Mode: planner.Online, Cluster: pools(1, 1)}
	p.Tasks = append(p.Tasks, onModels(0, 0, 2, []float64{1000}, []float64{100}))
	for i := 1; i < 10; i++ {
		p.Tasks = append(p.Tasks, onModels(i, 10, 2, []float64{800}, []float64{100}))
	}
	urgent := onModels(10, 20, 2, []float64{2000}, []float64{100})
	urgent.Deadline, urgent.Due = 4500, 4500
	p.Tasks = append(p.Tasks, urgent)
	plan := replanned(t, p)
	if len(plan.Misses) > 0 {
		t.Errorf("the task with a deadline ends at %v s, want it by 4500 s", plan.Assignments[10].End)
	}
}
