package bound_test

import (
	"math"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/plannertest"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
)

// boundProblem joins a task set of the reference with the paper's cluster.
func boundProblem(tb testing.TB, set, interval string, l int) *planner.Problem {
	tb.Helper()
	r, err := dvfsmodel.RangeByName(interval)
	if err != nil {
		tb.Fatal(err)
	}
	p := &planner.Problem{Cluster: planner.Cluster{Slot: 1, Classes: []planner.NodeClass{
		{Name: "pair", Model: "paper", GPUs: l, IdleW: 37, TurnOn: 90},
	}}}
	for _, row := range shareddata.Rows(tb, shareddata.Path(tb, "edl/tasksets/"+set+".csv")) {
		watt := func(column string) dvfsmodel.Watt {
			return dvfsmodel.Watt(shareddata.Number(tb, row[column]))
		}
		p.Tasks = append(p.Tasks, planner.Task{
			ID: row["id"], Arrival: shareddata.Number(tb, row["arrival"]),
			Deadline: shareddata.Number(tb, row["deadline"]),
			Due:      shareddata.Number(tb, row["deadline"]), Limit: math.Inf(1), Share: 1,
			Options: []planner.Option{
				{Model: "paper", GPUs: 1, Response: &dvfsmodel.Continuous{Range: &r, Params: dvfsmodel.Params{
					P0: watt("P0"), Gamma: watt("gamma"), C: watt("c"),
					D: shareddata.Number(tb, row["D"]), Delta: shareddata.Number(tb, row["delta"]),
					T0: shareddata.Number(tb, row["t0"]),
				}}},
			},
		})
	}
	p.Mode = planner.ModeOf(p.Tasks)
	return p
}

func TestRunBoundEqualsTheReference(t *testing.T) {
	for _, row := range shareddata.Rows(t, shareddata.Path(t, "edl/bounds.csv")) {
		want := shareddata.Number(t, row["lower_bound"])
		for _, l := range []int{1, 16} {
			b := bound.Lower(boundProblem(t, row["set"], row["interval"], l))
			if off := math.Abs(float64(b.Run)/want - 1); off > 1e-9 {
				t.Errorf("%s %s l=%d: %.12g J, want %.12g J (off by %.2g)", row["set"], row["interval"], l,
					float64(b.Run), want, off)
			}
			sum := b.Run
			for _, term := range b.Terms {
				sum += term.Value
			}
			if sum != b.Value || sum != b.Run+b.Extra {
				t.Errorf("%s %s l=%d: the terms %v don't add up to %v J", row["set"], row["interval"], l,
					b.Terms, b.Value)
			}
		}
	}
}

func TestBoundOfOneTaskIsItsOptimumWithIdleNeighbours(t *testing.T) {
	wide := dvfsmodel.WideRange()
	for _, l := range []int{1, 2, 8} {
		p := &planner.Problem{
			Cluster: planner.Cluster{
				Classes: []planner.NodeClass{{Name: "node", Model: "A", GPUs: l, IdleW: 37, HostW: 5}},
			},
		}
		params := plannertest.Scalable(100)
		one := plannertest.Job("one", &dvfsmodel.Continuous{Params: params, Range: &wide})
		p.Tasks = []planner.Task{plannertest.At(one, 0, 300)}
		// Its own host power, and idle and host power of l−1 other GPUs.
		price := dvfsmodel.Watt(5 + 42*(l-1))
		pt, err := wide.Optimum(params, dvfsmodel.PricedTime(price), 300)
		if err != nil {
			t.Fatal(err)
		}
		want := float64(pt.Energy + price.Over(pt.Time))
		b := bound.Lower(p)
		if got := float64(b.Value); got > want || got < want*(1-1e-4) {
			t.Errorf("l=%d: %.9g J (%v), want %.9g J", l, got, b.Terms, want)
		}
	}
}

func TestIdleBoundEqualsExhaustiveSearchOverRunTimes(t *testing.T) {
	p := boundProblem(t, "off_tiny", "wide", 16)
	b := bound.Lower(p)
	if len(b.Terms) != 1 || b.Terms[0].Name != bound.TermIdle {
		t.Fatalf("terms %v, want idle alone", b.Terms)
	}
	// The same dual on a grid of prices and of longest run times.
	best := 0.0
	for beta := 0.0; beta <= 37; beta += 0.5 {
		least := math.Inf(1)
		for m := 150.0; m < 600; m += 0.5 {
			sum := beta * 16 * m
			for i := range p.Tasks {
				task := &p.Tasks[i]
				o := dvfsmodel.PricedTime(-dvfsmodel.Watt(beta))
				pt, err := task.Options[0].Response.Optimum(o, min(m, task.Deadline))
				if err != nil {
					sum = math.Inf(1)
					break
				}
				sum += o.Cost(pt)
			}
			least = min(least, sum)
		}
		best = max(best, least)
	}
	if got := float64(b.Value); math.Abs(got/best-1) > 1e-4 {
		t.Errorf("%.9g J, a grid of prices and times says %.9g J", got, best)
	}
}

func TestTasksThatMustOverlapNeedNodesThatAreSwitchedOn(t *testing.T) {
	p := &planner.Problem{Mode: planner.Online, Cluster: planner.Cluster{Classes: []planner.NodeClass{
		{Name: "node", Model: "A", GPUs: 2, IdleW: 30, HostW: 10, TurnOn: 90, TurnOnDelay: 3},
	}}}
	// Each must run in the middle of its 15 s, and so must three of them at 9 s.
	for i, arrival := range []float64{0, 1, 2, 40} {
		task := plannertest.Job(string(rune('a'+i)), plannertest.Fixed(10))
		p.Tasks = append(p.Tasks, plannertest.At(task, arrival, arrival+15))
	}
	b := bound.Lower(p)
	const want = 2 * 2 * (90 + (30+10)*3) // two nodes of two GPUs: Δ, and idle until they are ready
	if len(b.Terms) != 1 || b.Terms[0].Name != bound.TermTurnOn || b.Terms[0].Value != want {
		t.Errorf("terms %v, want %v J for turning on", b.Terms, want)
	}
	p.Tasks = p.Tasks[3:]
	if b := bound.Lower(p); len(b.Terms) != 2 || b.Terms[1].Value != want/2 {
		t.Errorf("terms %v, want %v J for turning one node on", b.Terms, want/2)
	}
}

func TestTasksThatCannotBeDoneInTimeAddNothingToTheBound(t *testing.T) {
	p := plannertest.PaperLike()
	want := bound.Lower(p).Run
	p.Tasks = append(p.Tasks, plannertest.At(plannertest.Job("late", plannertest.Fixed(10)), 0, 5))
	if got := bound.Lower(p).Run; got != want {
		t.Errorf("%v J with a job that is too late, %v J without", got, want)
	}
}

func BenchmarkLowerBound(b *testing.B) {
	p := boundProblem(b, "off_u1.0", "wide", 16)
	for b.Loop() {
		_ = bound.Lower(p)
	}
}

// What a plan leaves out is no part of what it can be held against.
func TestTheBoundOfAPlanIsOfTheTasksThatItPlaces(t *testing.T) {
	p := plannertest.Mixed(t)
	for left := range p.Tasks {
		without := *p
		without.Tasks = slices.Delete(slices.Clone(p.Tasks), left, left+1)
		some := plannertest.Solve(t, &without, "edl")
		plan := *some
		plan.Assignments = slices.Insert(slices.Clone(some.Assignments), left, planner.Assignment{Node: -1})
		plan.Unplaced = []planner.Unplaced{{Task: left}}
		for _, u := range some.Unplaced {
			if u.Task >= left {
				u.Task++
			}
			plan.Unplaced = append(plan.Unplaced, u)
		}
		got, want := bound.Of(p, &plan), bound.Of(&without, some)
		if got.Cost != want.Cost || got.Value != want.Value {
			t.Errorf("without task %d: %v J, want %v J", left, got.Value, want.Value)
		}
	}
}
