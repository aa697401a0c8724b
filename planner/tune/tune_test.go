package tune_test

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/tune"
)

// The task, the option and the class that the tests ask about.
const task, option, class = 0, 0, 0

// problem returns one task on one class of nodes whose host draws so many watts by GPU.
func problem(r dvfsmodel.Response, host dvfsmodel.Watt) *planner.Problem {
	return &planner.Problem{
		Cluster: planner.Cluster{
			Classes: []planner.NodeClass{{Name: "node", Model: "A", GPUs: 1, HostW: host}},
		},
		Tasks: []planner.Task{{
			ID: "a", Deadline: math.Inf(1), Due: math.Inf(1), Limit: math.Inf(1), Share: 1,
			Options: []planner.Option{{Model: "A", GPUs: 1, Response: r}},
		}},
	}
}

// drawn returns a response of the paper's model in its wide range.
func drawn(t *rapid.T) *dvfsmodel.Continuous {
	wide := dvfsmodel.WideRange()
	return &dvfsmodel.Continuous{Range: &wide, Params: dvfsmodel.Params{
		P0:    dvfsmodel.Watt(rapid.Float64Range(1, 100).Draw(t, "P0")),
		Gamma: dvfsmodel.Watt(rapid.Float64Range(1, 50).Draw(t, "gamma")),
		C:     dvfsmodel.Watt(rapid.Float64Range(1, 200).Draw(t, "c")),
		D:     rapid.Float64Range(1, 1000).Draw(t, "D"),
		Delta: rapid.Float64Range(0, 1).Draw(t, "delta"), T0: rapid.Float64Range(0, 100).Draw(t, "t0"),
	}}
}

// near reports whether two numbers are equal but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

func TestATaskWantsItsOptimumWithinTheRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, host := drawn(t), dvfsmodel.Watt(rapid.Float64Range(0, 100).Draw(t, "host"))
		tuner := tune.Optimum(1)(problem(r, host))
		price := dvfsmodel.PricedTime(host)
		room := rapid.Float64Range(0.5, 4).Draw(t, "room") * r.MinTime()
		want, err := r.Optimum(price, room)
		for range 2 { // the second answer is from what was remembered of the first
			got, ok := tuner.Want(task, option, class, room)
			if ok != !errors.Is(err, dvfsmodel.ErrInfeasible) {
				t.Fatalf("%v s of room: ok is %v, the optimum says %v", room, ok, err)
			}
			if ok && (!near(price.Cost(got.Point), price.Cost(want)) || got.Point.Time > room*(1+1e-9)) {
				t.Fatalf("%v s of room: takes %v s at cost %v, want %v s at %v", room, got.Point.Time,
					price.Cost(got.Point), want.Time, price.Cost(want))
			}
		}
	})
}

func TestTheReasonTellsABoundFromAFreeOptimum(t *testing.T) {
	wide := dvfsmodel.WideRange()
	r := &dvfsmodel.Continuous{
		Range: &wide, Params: dvfsmodel.Params{P0: 50, Gamma: 20, C: 80, D: 100, Delta: 0.5, T0: 5},
	}
	tuner := tune.Optimum(1)(problem(r, 0))
	free, ok := tuner.Want(task, option, class, math.Inf(1))
	if !ok || free.Clocks != planner.ClocksFree {
		t.Fatalf("without a limit: %+v, %v, want the free optimum", free, ok)
	}
	bound, ok := tuner.Want(task, option, class, 0.9*free.Point.Time)
	if !ok || bound.Clocks != planner.ClocksDeadline || !near(bound.Want, free.Point.Time) {
		t.Errorf("with less room: %+v, %v, want a bound that names what the optimum takes", bound, ok)
	}
}

func TestATaskIsShortenedToThetaTimesWhatItWantsAndNoFurther(t *testing.T) {
	const theta = 0.8
	wide := dvfsmodel.WideRange()
	p := problem(&dvfsmodel.Continuous{
		Range: &wide, Params: dvfsmodel.Params{P0: 50, Gamma: 20, C: 80, D: 100, Delta: 0.5, T0: 5},
	}, 0)
	readjusting, never := tune.Optimum(theta)(p), tune.Optimum(1)(p)
	want, _ := readjusting.Want(task, option, class, math.Inf(1))
	for _, part := range []float64{1, 0.9, theta} {
		got, ok := readjusting.Fit(task, option, class, want, part*want.Point.Time)
		if !ok || !near(got.Point.Time, part*want.Point.Time) {
			t.Errorf("%v of what it wants: takes %v s, %v, want %v s", part, got.Point.Time, ok,
				part*want.Point.Time)
		}
		if part < 1 && got.Clocks != planner.ClocksReadjust {
			t.Errorf("%v of what it wants: reason %v, want that it was readjusted", part, got.Clocks)
		}
	}
	if _, ok := readjusting.Fit(task, option, class, want, 0.99*theta*want.Point.Time); ok {
		t.Error("is shortened below theta times what it wants")
	}
	if _, ok := never.Fit(task, option, class, want, 0.99*want.Point.Time); ok {
		t.Error("is shortened with theta 1")
	}
}

func TestALateTaskRunsAsFastAsItCan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawn(t)
		got := tune.Optimum(1)(problem(r, 0)).Fastest(task, option, class)
		if !near(got.Point.Time, r.MinTime()) || got.Clocks != planner.ClocksLate {
			t.Fatalf("takes %v s for reason %v, want %v s and that it is late", got.Point.Time,
				got.Clocks, r.MinTime())
		}
	})
}

func TestNoRunIsStretchedBeyondTheMultipleOfItsDefaultTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, stretch := drawn(t), rapid.Float64Range(1, 1.5).Draw(t, "stretch")
		got, ok := tune.Stretched(1, stretch)(problem(r, 0)).Want(task, option, class, math.Inf(1))
		longest := stretch * r.Default().Time
		if !ok || got.Point.Time > longest*(1+1e-9) {
			t.Fatalf("takes %v s, %v, want at most %v s", got.Point.Time, ok, longest)
		}
		if got.Clocks != planner.ClocksFree {
			t.Fatalf("reason %v: nothing but the policy bounds it", got.Clocks)
		}
	})
}

func TestClocksAreLeftAloneWhereNobodyMaySetThem(t *testing.T) {
	wide := dvfsmodel.WideRange()
	r := &dvfsmodel.Continuous{
		Range: &wide, Params: dvfsmodel.Params{P0: 50, Gamma: 20, C: 80, D: 100, Delta: 0.5, T0: 5},
	}
	share := problem(r, 0)
	share.Tasks[task].Share = 0.5
	for _, c := range []struct {
		name   string
		tuner  planner.Tuner
		reason planner.ClockReason
	}{
		{"no DVFS", tune.None(problem(r, 0)), planner.ClocksDefault},
		{"part of a GPU", tune.Optimum(1)(share), planner.ClocksShared},
		{"no model", tune.Optimum(1)(problem(&dvfsmodel.Fixed{At: r.Default()}, 0)), planner.ClocksNoModel},
	} {
		got, ok := c.tuner.Want(task, option, class, math.Inf(1))
		if !ok || got.Point != r.Default() || got.Clocks != c.reason {
			t.Errorf("%s: %+v, %v, want the default point for reason %v", c.name, got, ok, c.reason)
		}
	}
}

func TestTasksDoNotGetEachOthersOptima(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problem(drawn(t), 0)
		same := p.Tasks[task].Options[option].Response
		for range 5 { // alike but for one number, or repeated
			other := *same.(*dvfsmodel.Continuous) //nolint:errcheck // as drawn
			scale := rapid.Float64Range(0.2, 0.8).Draw(t, "scale")
			switch rapid.IntRange(0, 3).Draw(t, "which") {
			case 0:
				other.Params.C *= dvfsmodel.Watt(scale)
			case 1:
				other.Params.Delta *= scale
			case 2:
				other.Params.T0 *= scale
			default:
				other.Params = other.Params.Scale(scale)
			}
			next := p.Tasks[task]
			next.Options = []planner.Option{{Model: "A", GPUs: 1, Response: &other}}
			p.Tasks = append(p.Tasks, next)
		}
		tuner := tune.Optimum(1)(p)
		for range 2 {
			for i := range p.Tasks {
				want, err := p.Tasks[i].Options[option].Response.Optimum(dvfsmodel.MinEnergy(), math.Inf(1))
				if err != nil {
					t.Fatal(err)
				}
				got, ok := tuner.Want(i, option, class, math.Inf(1))
				if !ok || !near(float64(got.Point.Energy), float64(want.Energy)) {
					t.Fatalf("task %d takes %v J, %v, want its own least, %v J", i, got.Point.Energy,
						ok, want.Energy)
				}
			}
		}
	})
}

func TestConstantClocksAreTheSameHoweverLateATaskIs(t *testing.T) {
	wide := dvfsmodel.WideRange()
	r := &dvfsmodel.Continuous{
		Range: &wide, Params: dvfsmodel.Params{P0: 50, Gamma: 20, C: 80, D: 100, Delta: 0.5, T0: 5},
	}
	slow := dvfsmodel.Scaling{V: wide.Voltage(0.7), Fc: 0.7, Fm: 0.9}
	p := problem(r, 0)
	tuner := tune.Constant(map[string]dvfsmodel.Point{"A": {Scaling: slow}})(p)
	want := r.Params.At(slow)
	for _, room := range []float64{math.Inf(1), want.Time, 0.5 * want.Time} {
		if q, ok := tuner.Want(task, option, class, room); ok != (room >= want.Time) || q.Point != want ||
			q.Clocks != planner.ClocksConstant {
			t.Errorf("%v s of room: %+v, %v, want %+v", room, q, ok, want)
		}
	}
	if q := tuner.Fastest(task, option, class); q.Point != want {
		t.Errorf("late: %+v, want %+v", q.Point, want)
	}
	if q, ok := tuner.Fit(task, option, class, tuner.Fastest(task, option, class), 0.9*want.Time); ok {
		t.Errorf("shortened to %+v", q)
	}
	for name, change := range map[string]func(){
		"part of a GPU":     func() { p.Tasks[0].Share = 0.5 },
		"another GPU model": func() { p.Tasks[0].Share, p.Tasks[0].Options[0].Model = 1, "B" },
	} {
		change()
		if q := tuner.Fastest(task, option, class); q.Point != r.Default() {
			t.Errorf("%s: %+v, want default clocks", name, q)
		}
	}
}
