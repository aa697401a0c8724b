package place_test

import (
	"context"
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/tune"
)

// drawSimple draws a problem of tasks that take one GPU each.
func drawSimple(t *rapid.T, online bool) *planner.Problem {
	wide := dvfsmodel.WideRange()
	p := &planner.Problem{
		Start: planner.StartRule(rapid.IntRange(0, 1).Draw(t, "start rule")),
		Cluster: planner.Cluster{Slot: 1, Classes: []planner.NodeClass{{
			Name: "n", Model: "m", IdleW: 37, TurnOn: 90,
			GPUs:        rapid.IntRange(1, 4).Draw(t, "l"),
			Count:       rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "nodes"),
			TurnOnDelay: rapid.SampledFrom([]float64{0, 0, 2.5}).Draw(t, "delay"),
		}}},
	}
	for i := range rapid.IntRange(1, 25).Draw(t, "tasks") {
		params := dvfsmodel.Params{
			P0: 50, Gamma: 25, C: 100, D: rapid.Float64Range(1, 60).Draw(t, "D"),
			Delta: rapid.Float64Range(0, 1).Draw(t, "delta"), T0: rapid.Float64Range(0, 5).Draw(t, "t0"),
		}
		arrival := 0.0
		if online {
			arrival = math.Floor(rapid.Float64Range(0, 80).Draw(t, "arrival"))
		}
		deadline := arrival + params.Time(1, 1)*rapid.Float64Range(0.8, 6).Draw(t, "slack")
		p.Tasks = append(p.Tasks, planner.Task{
			ID: strconv.Itoa(i), Arrival: arrival, Deadline: deadline, Due: deadline,
			Limit: math.Inf(1), Share: 1,
			Options: []planner.Option{{
				Model: "m", GPUs: 1, Response: &dvfsmodel.Continuous{Params: params, Range: &wide},
			}},
		})
	}
	p.Mode = planner.ModeOf(p.Tasks)
	return p
}

func planWith(t *rapid.T, p *planner.Problem, placer func(*planner.View) planner.Placer) *planner.Plan {
	plan, err := planner.Solve(context.Background(), p, &planner.Policy{
		Name: "test", Tune: tune.Optimum(0.8), Place: placer, Pick: pick.DeadlineFirst,
		Park: park.DRS{Rho: 2}, Map: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := check.Plan(p, plan); err != nil {
		t.Fatal(err)
	}
	return plan
}

// twoClasses doubles the class under a GPU model that no task can use, which
// turns the indexes off.
func twoClasses(p *planner.Problem) *planner.Problem {
	q := *p
	q.Cluster.Classes = append([]planner.NodeClass{}, p.Cluster.Classes...)
	q.Cluster.Classes = append(q.Cluster.Classes, planner.NodeClass{Name: "other", Model: "other", GPUs: 1})
	return &q
}

func TestLightestPlacesLikeTheScanItStandsFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawSimple(t, rapid.Bool().Draw(t, "online"))
		fast, slow := planWith(t, p, place.Lightest), planWith(t, p, place.ByRule(place.LightestRule))
		for i := range fast.Assignments {
			a, b := &fast.Assignments[i], &slow.Assignments[i]
			if a.Node != b.Node || a.GPUs != b.GPUs || a.Start != b.Start || a.Point != b.Point {
				t.Fatalf("task %d: index %+v, scan %+v", i, a, b)
			}
		}
	})
}

// Offline only: among GPUs that are free already, the two may choose
// differently, which tells when tasks arrive later.
func TestSoonestByIndexStartsLikeSoonestBySearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawSimple(t, false)
		fast, slow := planWith(t, p, place.Soonest), planWith(t, twoClasses(p), place.Soonest)
		for i := range fast.Assignments {
			if a, b := &fast.Assignments[i], &slow.Assignments[i]; a.Start != b.Start || a.Point != b.Point {
				t.Fatalf("task %d: index %+v, search %+v", i, a, b)
			}
		}
	})
}
