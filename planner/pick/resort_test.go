package pick

import (
	"context"
	"math"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/tune"
)

// witness notes what the plan of last resort promises to each task when it
// arrives.
type witness struct {
	planner.TaskObserver
	line   *waitingLine
	latest map[int]float64 // starts
	bound  float64         // the longest
}

func (w *witness) Arrive(tasks []int) {
	all := slices.Clone(tasks)
	w.TaskObserver.Arrive(tasks)
	w.line.fair.updatePlan(w.line)
	w.bound = max(w.bound, w.line.fair.bound)
	for _, b := range w.line.fair.lastResort.starts {
		if slices.Contains(all, b.task) {
			w.latest[b.task] = b.latest
		}
	}
}

// witnessed returns a Pick stage and what is noted of its run.
func witnessed(
	stage func(*planner.View, planner.Placer) planner.Picker,
) (func(*planner.View, planner.Placer) planner.Picker, *witness) {
	w := &witness{latest: map[int]float64{}}
	return func(v *planner.View, p planner.Placer) planner.Picker {
		switch made := stage(v, p).(type) {
		case *simple:
			w.TaskObserver, w.line = made, &made.waitingLine
		case *greedy:
			w.TaskObserver, w.line = made, &made.waitingLine
		case *value:
			w.TaskObserver, w.line = made, &made.waitingLine
		case *posted:
			w.TaskObserver, w.line = made, &made.waitingLine
		case *lookahead:
			w.TaskObserver, w.line = made, &made.waitingLine
		}
		return w
	}, w
}

// twoPools returns a random queue for two pools of GPUs, all of it predicted.
func twoPools(t *rapid.T) (p *planner.Problem) {
	whole := func(label string, least, most int) float64 {
		return float64(rapid.IntRange(least, most).Draw(t, label))
	}
	p = &planner.Problem{Mode: planner.Online, Cluster: planner.Cluster{Classes: []planner.NodeClass{
		{Name: "A", Model: "A", Count: 1, GPUs: 4}, {Name: "B", Model: "B", Count: 1, GPUs: 5},
	}}}
	at := 0.0
	for i := range rapid.IntRange(1, 25).Draw(t, "jobs") {
		at += whole("gap", 0, 20)
		task := planner.Task{
			ID: strconv.Itoa(i), Arrival: at, Deadline: math.Inf(1), Due: math.Inf(1),
			Limit: math.Inf(1), Share: 1,
		}
		gpus := rapid.IntRange(1, 4).Draw(t, "GPUs")
		for _, model := range []string{"A", "B"} {
			x := dvfsmodel.Point{Scaling: dvfsmodel.DefaultScaling(), Time: whole("seconds", 1, 90)}
			x.Power = dvfsmodel.Watt(whole("W", 1, 500))
			x.Energy = x.Power.Over(x.Time)
			task.Options = append(task.Options, planner.Option{
				Model: model, GPUs: gpus, Response: &dvfsmodel.Fixed{At: x},
			})
		}
		p.Tasks = append(p.Tasks, task)
	}
	return p
}

// AtOnce is place.AtOnce: package place imports this one, so that only tests from
// outside can name it.
var AtOnce func(*planner.View) planner.Placer

// play runs a Pick stage on a problem.
func play(
	t *rapid.T, p *planner.Problem, stage func(*planner.View, planner.Placer) planner.Picker,
) *planner.Plan {
	made, err := planner.Solve(context.Background(), p,
		&planner.Policy{Name: "test", Tune: tune.None, Pick: stage, Place: AtOnce, Park: park.Never{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := check.Plan(p, made); err != nil {
		t.Fatal(err)
	}
	return made
}

func TestWhereRunTimesAreAsPredictedNobodyWaitsLongerThanPromised(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := twoPools(t)
		limit := Fairness{Patience: float64(rapid.IntRange(1, 4).Draw(t, "patience")), Spread: 1e-12}
		for name, stage := range map[string]func(*planner.View, planner.Placer) planner.Picker{
			"backfill":  Backfill{limit}.New,
			"greedy":    Greedy{Alpha: 1, Gamma: 1e7, Fairness: limit}.New,
			"value":     Value{Kappa: 1e3, Fairness: limit}.New,
			"posted":    PostedPrice{Base: 3, PerDay: 1, Price: 0.3, Steepness: 4, Fairness: limit}.New,
			"draft":     Lookahead{PerKWh: 1e5, Fairness: limit}.New,
			"lookahead": Lookahead{PerKWh: 1e5, Futures: 2, Fairness: limit}.New,
		} {
			watched, w := witnessed(stage)
			made := play(t, p, watched)
			for i := range made.Assignments {
				start, latest := made.Assignments[i].Start, max(w.latest[i], p.Tasks[i].Arrival+w.bound)
				if late := start - latest; late > 1e-3 {
					t.Fatalf("%s: task %d starts at %v, %v s after the latest time promised", name,
						i, start, late)
				}
			}
		}
	})
}

// TestWhatFitsExactlyBetweenTwoRunsStillFitsWhenTheirEndsAreReckonedAgain: an end
// that was reckoned earlier differs by rounding, in either direction.
func TestWhatFitsExactlyBetweenTwoRunsStillFitsWhenTheirEndsAreReckonedAgain(t *testing.T) {
	for _, rounding := range []float64{-5e-11, 0, 5e-11} {
		c := capacityProfile{at: []float64{10}, free: []float64{0}, instant: promiseSlack}
		c.addFreed(20+rounding, 2)
		c.addFreed(20, 2) // another run's end at that time
		c.sumUp()
		if len(c.at) != 2 || c.free[1] != 4 || c.at[1] != max(20, 20+rounding) {
			t.Fatalf("%v: two ends at one time are %+v, want one step", rounding, c)
		}
		c.book(c.split(23), 4, 7) // the next task has the class from 23 to 30
		if start := c.firstFree(20, 4, 3); math.Abs(start-20) > promiseSlack {
			t.Errorf("%v: what takes the 3 s between starts at %v, want 20", rounding, start)
		}
		step := c.earliest(4, 3)
		if step != 1 {
			t.Fatalf("%v: what takes the 3 s between starts at step %d of %+v, want 1", rounding, step, c)
		}
		c.book(step, 4, 3)
		if len(c.at) != 4 || c.free[1] != 0 || c.free[2] != 0 || c.free[3] != 4 {
			t.Errorf("%v: both booked leave %+v, want nothing until 30", rounding, c)
		}
	}
}
