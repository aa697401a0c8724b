package park_test

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

// spaced returns a plan of short tasks that come so many seconds after another, on
// one node that breaks even at 10 s.
func spaced(t *testing.T, parker planner.Parker, gap float64) *planner.Plan {
	t.Helper()
	p := &planner.Problem{Mode: planner.Online, Cluster: planner.Cluster{Classes: []planner.NodeClass{
		{Name: "one", Model: "A", Count: 1, GPUs: 1, IdleW: 10, TurnOn: 100},
	}}}
	for i := range 30 {
		p.Tasks = append(p.Tasks, planner.Task{
			ID: strconv.Itoa(i), Arrival: float64(i) * (1 + gap), Deadline: math.Inf(1), Due: math.Inf(1),
			Limit: math.Inf(1), Share: 1,
			Options: []planner.Option{{
				Model: "A", GPUs: 1, Response: &dvfsmodel.Fixed{
					At: dvfsmodel.Params{P0: 100, T0: 1}.At(dvfsmodel.DefaultScaling()),
				},
			}},
		})
	}
	policy := planner.Policy{
		Name: "test", Tune: tune.None, Place: place.AtOnce, Pick: pick.FCFS, Park: parker,
	}
	plan, err := planner.Solve(context.Background(), p, &policy, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := check.Plan(p, plan); err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestANodeSleepsAtTheEndOfThePeriod(t *testing.T) {
	for last, want := range map[float64]float64{0: 0.1, 0.05: 0.1, 10.01: 10.1} {
		if got := (park.Periodic{Tau: park.PaperTau}).OffAt(nil, last); math.Abs(got-want) > 1e-9 {
			t.Errorf("last end %v s: off at %v, want %v", last, got, want)
		}
	}
}

func TestBreakEvenStaysOnThroughGapsThatCostLessThanWaking(t *testing.T) {
	if plan := spaced(t, park.AdaptiveTimeout{}, 8); len(plan.Nodes[0].On) != 1 {
		t.Errorf("on %d times, want once: %v", len(plan.Nodes[0].On), plan.Nodes[0].On)
	}
}

func TestBreakEvenLearnsToSleepSoonerInLongGaps(t *testing.T) {
	plan := spaced(t, park.AdaptiveTimeout{}, 100)
	idle := float64(plan.Ledger.Idle) / 10
	// Until ten gaps were seen it idles for ten seconds in each, then for a third
	// of that.
	if on := len(plan.Nodes[0].On); on != 30 || idle < 150 || idle > 180 {
		t.Errorf("on %d times, idle for %v s, want 30 times and 150 to 180 s", on, idle)
	}
}

func TestBreakEvenCostsLittleMoreThanTheFutureKnownWould(t *testing.T) {
	for _, gap := range []float64{0.5, 5, 9, 11, 15, 40, 1000} {
		l := spaced(t, park.AdaptiveTimeout{}, gap).Ledger
		// 30 tasks, 29 gaps, and one waking to begin with; the node may idle on once
		// more after the last task.
		best := 100 + 29*math.Min(10*gap, 100)
		if got := float64(l.Idle + l.TurnOn); got > 2*best+100 {
			t.Errorf("gaps of %v s cost %v J, want at most twice %v", gap, got, best)
		}
	}
}
