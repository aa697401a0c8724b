package powerbudget_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/plannertest"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/powerbudget"
)

// draw draws jobs that are all there, some with deadlines, parts of a GPU or on two nodes.
func draw(seed uint64) *planner.Problem {
	rng := rand.New(rand.NewPCG(seed, 1))
	p := &planner.Problem{Mode: planner.Offline, Start: planner.StartContinuous, MaxTurnaround: 2}
	for i := range 1 + rng.IntN(2) {
		p.Cluster.Classes = append(p.Cluster.Classes, planner.NodeClass{
			Name: fmt.Sprint("c", i), Model: "A", GPUs: 1 + rng.IntN(4), Count: 2 + rng.IntN(2),
			IdleW: dvfsmodel.Watt(rng.IntN(40)), HostW: dvfsmodel.Watt(rng.IntN(40)),
			SleepW: dvfsmodel.Watt(rng.IntN(10)), TurnOn: 100, TurnOnDelay: float64(rng.IntN(2) * 30), CPUs: 16,
		})
	}
	p.Cluster.OfflineTurnOn = true
	for i := range 5 + rng.IntN(30) {
		t := plannertest.Job(fmt.Sprint("j", i), plannertest.Continuous(60+rng.Float64()*600))
		switch rng.IntN(8) {
		case 0:
			t.Options[0].GPUs, t.Options[0].Nodes = 2, 2
		case 1:
			t.Share = 0.5
		case 2:
			t.Deadline = 600 + rng.Float64()*6000
			t.Due = t.Deadline
		}
		t.CPUs = float64(rng.IntN(10))
		p.Tasks = append(p.Tasks, t)
	}
	return p
}

// peak returns the least constant budget that a plan is within, to a thousandth.
func peak(p *planner.Problem, plan *planner.Plan) float64 {
	low, high := 0.0, 1e6
	for high-low > high/1000 {
		middle := (low + high) / 2
		if check.Budget(p, plan, []float64{0}, []float64{middle}) == nil {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

func TestAPlanIsWithinItsBudgetAtEveryMoment(t *testing.T) {
	var energy, end [3]float64
	var late [3]int
	plans, left := 0, 0
	cut, stop := context.WithCancelCause(t.Context())
	stop(planner.ErrCut)
	for seed := range uint64(7) {
		p := draw(seed)
		plan := plannertest.Solve(t, p, "edl")
		if len(plan.Unplaced) > 0 {
			continue
		}
		plans++
		most := dvfsmodel.Watt(peak(p, plan))
		for i, part := range []dvfsmodel.Watt{0.9, 0.8, 0.7} {
			stopped := keep(cut, t, p, plan, powerbudget.Budget{{0, most}, {300, part * most}, {900, most * 1.1}})
			told := 0
			m := planner.Monitor{OnProgress: func(now planner.Progress) {
				if told++; !now.Planned || now.Done >= now.Total {
					t.Errorf("seed %d: %+v", seed, now)
				}
			}}
			ctx, release := m.Begin(t.Context())
			kept := keep(ctx, t, p, plan, powerbudget.Budget{{0, part * most}})
			if release(); !stopped.Cut || kept.Cut || told < 100 {
				t.Errorf("seed %d: cut: %v, not cut: %v, told %d times", seed, stopped.Cut, kept.Cut, told)
			}
			energy[i] += float64(kept.Ledger.Total() / plan.Ledger.Total())
			end[i] += lastEnd(kept) / lastEnd(plan)
			late[i] += len(kept.PastDue(p))
			left += len(kept.Unplaced)
		}
	}
	for i := range energy {
		t.Logf("%d %% of the peak: energy %.3f, end %.3f of those without one, %d late, mean of %d plans", 90-10*i,
			energy[i]/float64(plans), end[i]/float64(plans), late[i], plans)
	}
	if plans < 6 || left > 5*plans {
		t.Errorf("%d plans, %d jobs left out", plans, left)
	}
}

// keep brings a plan within a budget, and checks that it is.
func keep(
	ctx context.Context, t *testing.T, p *planner.Problem, plan *planner.Plan, b powerbudget.Budget,
) *planner.Plan {
	t.Helper()
	kept, err := powerbudget.Keep(ctx, p, plan, b)
	if err != nil {
		t.Fatal(err)
	}
	times, watts := make([]float64, len(b)), make([]float64, len(b))
	for i, step := range b {
		times[i], watts[i] = step.From, float64(step.Watts)
	}
	if err := errors.Join(check.Plan(p, kept), check.Budget(p, kept, times, watts)); err != nil {
		t.Errorf("%v: %v", b, err)
	}
	for i := range kept.Assignments {
		a, was := &kept.Assignments[i], &plan.Assignments[i]
		clocks, moved := a.Point != was.Point, a.Start != was.Start || a.Node != was.Node
		if why := a.Reason; a.Node >= 0 && (clocks != (why.Clocks == planner.ClocksBudget) ||
			moved != (why.Place == planner.PlaceBudget)) {
			t.Errorf("task %d has other clocks: %t, another start or node: %t: %v", i, clocks, moved, why)
		}
	}
	return kept
}

func lastEnd(plan *planner.Plan) (last float64) {
	for i := range plan.Assignments {
		last = max(last, plan.Assignments[i].End)
	}
	return last
}

func TestAJobThatNeverFitsIsLeftOutWithWhatItTakes(t *testing.T) {
	p := draw(3)
	plan := plannertest.Solve(t, p, "edl")
	kept, err := powerbudget.Keep(t.Context(), p, plan, powerbudget.Budget{{Watts: 60}})
	if err == nil {
		if len(kept.Unplaced) == 0 || !strings.Contains(kept.Unplaced[0].Why, "the power budget of 60 W") ||
			!math.IsInf(kept.Unplaced[0].Earliest, 1) {
			t.Errorf("%+v", kept.Unplaced)
		}
		if err := check.Plan(p, kept); err != nil {
			t.Error(err)
		}
	}
	if _, err := powerbudget.Keep(t.Context(), p, plan, powerbudget.Budget{{Watts: 1}}); err == nil ||
		!strings.Contains(err.Error(), "while they sleep") {
		t.Errorf("nodes that sleep take more: %v", err)
	}
	p.Mode = planner.Online
	if _, err := powerbudget.Keep(t.Context(), p, plan, powerbudget.Budget{{Watts: 1e6}}); err == nil {
		t.Error("an online plan knows what comes")
	}
}

func TestTheLastStepOfABudgetHoldsForGood(t *testing.T) {
	b := powerbudget.Budget{{From: 10, Watts: 3}, {From: 20, Watts: 1}, {From: 30, Watts: 2}}
	for at, want := range map[float64]dvfsmodel.Watt{0: 3, 10: 3, 19.9: 3, 20: 1, 29: 1, 30: 2, 1e9: 2} {
		if got := b.At(at); got != want {
			t.Errorf("at %v: %v, want %v", at, got, want)
		}
	}
	if b.Least() != 1 {
		t.Errorf("least %v", b.Least())
	}
}
