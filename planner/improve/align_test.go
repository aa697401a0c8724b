package improve_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/improve"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/tune"
)

// paperProblem joins a task set of the EDL reference with the paper's cluster.
func paperProblem(tb testing.TB, set, interval string, l int) *planner.Problem {
	tb.Helper()
	r, err := dvfsmodel.RangeByName(interval)
	if err != nil {
		tb.Fatal(err)
	}
	p := &planner.Problem{Cluster: planner.Cluster{Name: "paper", Slot: 1, Classes: []planner.NodeClass{
		{Name: "pair", Model: "paper", GPUs: l, IdleW: 37, TurnOn: 90},
	}}}
	for _, row := range shareddata.Rows(tb, shareddata.Path(tb, "edl/tasksets/"+set+".csv")) {
		p.Tasks = append(p.Tasks, planner.Task{
			ID: row["id"], Arrival: shareddata.Number(tb, row["arrival"]), Deadline: shareddata.Number(tb,
				row["deadline"]), Due: shareddata.Number(tb, row["deadline"]),
			Limit: math.Inf(1), Share: 1,
			Options: []planner.Option{
				{Model: "paper", GPUs: 1, Response: &dvfsmodel.Continuous{Range: &r, Params: dvfsmodel.Params{
					P0:    dvfsmodel.Watt(shareddata.Number(tb, row["P0"])),
					Gamma: dvfsmodel.Watt(shareddata.Number(tb, row["gamma"])),
					C:     dvfsmodel.Watt(shareddata.Number(tb, row["c"])),
					D:     shareddata.Number(tb, row["D"]), Delta: shareddata.Number(tb, row["delta"]),
					T0: shareddata.Number(tb, row["t0"]),
				}}},
			},
		})
	}
	p.Mode = planner.ModeOf(p.Tasks)
	return p
}

// edl plans a problem by the EDL paper's policy.
func edl(tb testing.TB, p *planner.Problem) *planner.Plan {
	tb.Helper()
	pol := &planner.Policy{
		Tune: tune.Optimum(1), Place: place.Lightest, Pick: pick.DeadlineFirst,
		Park: park.DRS{Rho: 2}, Map: true,
	}
	plan, err := planner.Solve(context.Background(), p, pol, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return plan
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

// improved reworks a plan, and checks the result.
func improved(
	tb testing.TB, improver planner.Improver, p *planner.Problem, plan *planner.Plan,
) *planner.Plan {
	tb.Helper()
	better, err := improver.Improve(context.Background(), p, plan, seeded(1))
	if err != nil {
		tb.Fatal(err)
	}
	if err := check.Plan(p, better); err != nil {
		tb.Fatal(err)
	}
	return better
}

// goals are the largest gaps to the lower bound that are allowed, in per cent.
// 24 tasks leave little choice.
var goals = []struct {
	set  string
	most float64
}{
	{"off_tiny", 0.6},
	{"off_u0.2", 0.12},
	{"off_u0.6", 0.1},
	{"off_u1.0", 0.1},
	{"off_u1.0_fitted", 0.1},
	{"off_u1.6", 0.1},
}

func TestAlignedPlansAreWithinATenthOfAPerCentOfTheBound(t *testing.T) {
	sizes := []int{1, 2, 4, 8, 16}
	if testing.Short() {
		sizes = sizes[4:]
	}
	for _, goal := range goals {
		for _, interval := range []string{"wide", "narrow"} {
			for _, l := range sizes {
				p := paperProblem(t, goal.set, interval, l)
				plan := edl(t, p)
				lower := bound.Lower(p)
				before := 100 * lower.Gap(plan.Ledger.Total())
				after := 100 * lower.Gap(improved(t, improve.Align{}, p, plan).Ledger.Total())
				t.Logf("%s %s l=%d: %.4f %% above the bound, EDL %.4f %%", goal.set, interval, l,
					after, before)
				if !(after <= goal.most) {
					t.Errorf("%s %s l=%d: %.4f %% above the bound, want at most %g %%", goal.set, interval, l,
						after, goal.most)
				}
			}
		}
	}
}

func TestThePapersExampleIsSolvedOnOneNode(t *testing.T) {
	p := paperProblem(t, "../table3", "wide", 2)
	p.Cluster.Classes[0].IdleW = 30
	plan := edl(t, p)
	better := improved(t, improve.Align{}, p, plan)
	lower := bound.Lower(p)
	const paper = 23865.50 + 472.89 // its best mapping, θ = 0.9
	if total := float64(better.Ledger.Total()); total > paper {
		t.Errorf("%.2f J, the paper has %.2f J; the bound is %.2f J", total, paper, float64(lower.Value))
	} else {
		t.Logf("%.2f J on %d nodes, the paper has %.2f J; the bound is %.2f J", total, len(better.Nodes),
			paper, float64(lower.Value))
	}
}

func TestTheSameSeedGivesTheSamePlan(t *testing.T) {
	p := paperProblem(t, "off_u0.2", "narrow", 8)
	plan := edl(t, p)
	a := improved(t, improve.Align{Moves: 20_000}, p, plan)
	b := improved(t, improve.Align{Moves: 20_000}, p, plan)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("two plans: %v J and %v J", a.Ledger.Total(), b.Ledger.Total())
	}
}

func TestImproveLeavesItsInputAlone(t *testing.T) {
	for _, improver := range []planner.Improver{improve.Align{Moves: 20_000}, improve.Retune{Moves: 2_000}} {
		p := paperProblem(t, "off_tiny", "wide", 8)
		plan := edl(t, p)
		want := edl(t, p)
		if better := improved(t, improver, p, plan); better.Ledger.Total() >= plan.Ledger.Total() {
			t.Errorf("%T: %v J, before %v J", improver, better.Ledger.Total(), plan.Ledger.Total())
		}
		if !reflect.DeepEqual(plan, want) {
			t.Errorf("%T changed the plan that it was given", improver)
		}
	}
}

func TestImproveStopsWhenTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p := paperProblem(t, "off_u0.2", "wide", 8)
	plan := edl(t, p)
	for _, improver := range []planner.Improver{improve.Align{}, improve.Retune{}} {
		if _, err := improver.Improve(ctx, p, plan, seeded(1)); !errors.Is(err, context.Canceled) {
			t.Errorf("%T: %v, want it to say that it was cancelled", improver, err)
		}
	}
}

func BenchmarkImprove(b *testing.B) {
	for _, goal := range goals {
		for _, interval := range []string{"wide", "narrow"} {
			p := paperProblem(b, goal.set, interval, 16)
			plan := edl(b, p)
			lower := bound.Lower(p)
			b.Run(goal.set+"/"+interval, func(b *testing.B) {
				var better *planner.Plan
				for b.Loop() {
					better, _ = improve.Align{}.Improve(context.Background(), p, plan, seeded(1))
				}
				b.ReportMetric(100*lower.Gap(better.Ledger.Total()), "%gap")
			})
		}
	}
}
