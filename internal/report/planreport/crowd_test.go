package planreport

import (
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/sharing"
)

// sharedPlan returns a plan of drawn jobs on GPUs that they share by profile.
func sharedPlan(t *rapid.T) (*planner.Problem, *planner.Plan) {
	physics := sharing.PaperPhysics()
	p := &planner.Problem{Mode: planner.Online, Cluster: planner.Cluster{
		Sharing: &planner.Sharing{Physics: physics},
		Classes: []planner.NodeClass{{
			Name: "v100", Model: "x", Count: 2, GPUs: 2, HostW: 20, IdleW: 10, TurnOn: 90, SleepW: 3,
			SharedGB: []float64{16, 32},
		}},
	}}
	for i := range rapid.IntRange(2, 10).Draw(t, "jobs") {
		watt := dvfsmodel.Watt(physics.PowerAt(physics.Max()))
		seconds := rapid.Float64Range(60, 600).Draw(t, "seconds")
		arrival := rapid.Float64Range(0, 200).Draw(t, "arrival")
		p.Tasks = append(p.Tasks, planner.Task{
			ID: strconv.Itoa(i), Arrival: arrival, Deadline: math.Inf(1), Due: math.Inf(1),
			Limit: math.Inf(1), Share: 1,
			Options: []planner.Option{{
				Model: "x", GPUs: 1, Response: &dvfsmodel.Fixed{
					At: dvfsmodel.Params{P0: watt, T0: seconds}.At(dvfsmodel.DefaultScaling()),
				},
			}},
			Profile: &planner.UsageProfile{
				UtilPct: []float64{rapid.Float64Range(5, 60).Draw(t, "load"), 20}, SlotS: 60,
				MemGB: rapid.Float64Range(1, 8).Draw(t, "memory"), Kappa: 1.5,
			},
		})
	}
	if err := policy.ImplyDue(t.Context(), p, 1.5); err != nil {
		t.Fatal(err)
	}
	pol, err := policy.Parse(rapid.SampledFrom([]string{"cats", "cats-safe", "hotcloud"}).Draw(t, "policy"),
		policy.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := planner.Solve(t.Context(), p, pol, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p, plan
}

func TestPowerOfSharedGPUsAddsUpToTheLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, plan := sharedPlan(t)
		c, l := newPowerTimeline(p, plan), &plan.Ledger
		sums, on := c.energyUntil([]float64{c.end()})
		want := causeWatts{
			causeRun: float64(l.Run), causeIdle: float64(l.Idle), causeHost: float64(l.Host),
			causeSleep: float64(l.Sleep),
		}
		for k := range causeCount {
			if !near(sums[0][k], want[k], float64(l.Total())) {
				t.Fatalf("%s: %v J, %v J in the ledger", causeStyles[k].name, sums[0][k], want[k])
			}
		}
		if !near(on[0], float64(l.TurnOn), float64(l.Total())) {
			t.Fatalf("turn-on: %v J, %v J in the ledger", on[0], l.TurnOn)
		}
	})
}

func TestJobsThatShareAGPUByProfileHideNoOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, plan := sharedPlan(t)
		picture := newGanttChart(report.NewCanvas(""), &Result{Problem: p, Plan: plan}, &SVGOptions{})
		bars := picture.collectBars()
		if len(bars) != len(plan.Assignments) {
			t.Fatalf("%d bars of %d jobs", len(bars), len(plan.Assignments))
		}
		sortBars(bars)
		stackShares(bars)
		for i, a := range bars {
			for _, b := range bars[i+1:] {
				sameLane := a.group == b.group && a.gpu == b.gpu
				if sameLane && a.start < b.end && b.start < a.end && a.offset < b.offset+b.share-1e-9 &&
					b.offset < a.offset+a.share-1e-9 {
					t.Fatalf("bars lie over each other: %+v and %+v", a, b)
				}
			}
		}
	})
}
