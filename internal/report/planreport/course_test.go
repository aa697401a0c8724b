package planreport

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

// drawnPlan returns a plan of drawn jobs on a drawn cluster by a drawn policy.
func drawnPlan(t *rapid.T) (*planner.Problem, *planner.Plan) {
	scaling, err := dvfsmodel.RangeByName("wide")
	if err != nil {
		t.Fatal(err)
	}
	watt := func(name string, most float64) float64 { return rapid.Float64Range(0, most).Draw(t, name) }
	p := &planner.Problem{
		Mode: rapid.SampledFrom([]planner.Mode{planner.Offline, planner.Online}).Draw(t, "mode"),
	}
	for i := range rapid.IntRange(1, 2).Draw(t, "classes") {
		p.Cluster.Classes = append(p.Cluster.Classes, planner.NodeClass{
			Name: strconv.Itoa(i), Model: "x", GPUs: rapid.IntRange(1, 4).Draw(t, "gpus"),
			Count: rapid.IntRange(1, 3).Draw(t, "nodes"),
			IdleW: dvfsmodel.Watt(watt("idle", 50)), HostW: dvfsmodel.Watt(watt("host", 80)),
			SleepW: dvfsmodel.Watt(watt("sleep", 20)),
			TurnOn: dvfsmodel.Joule(watt("turn on", 3000)),
		})
	}
	p.Cluster.Slot, p.Cluster.OfflineTurnOn = 1, rapid.Bool().Draw(t, "offline turn-on")
	for i := range rapid.IntRange(1, 12).Draw(t, "jobs") {
		seconds := rapid.Float64Range(1, 900).Draw(t, "seconds")
		task := planner.Task{
			ID: strconv.Itoa(i), Deadline: math.Inf(1), Due: math.Inf(1), Limit: math.Inf(1), Share: 1,
			Options: []planner.Option{
				{
					Model: "x", GPUs: 1, Response: &dvfsmodel.Continuous{
						Range: &scaling, Params: dvfsmodel.Params{
							P0: 40, Gamma: 20, C: 90, D: .9 * seconds,
							Delta: rapid.Float64Range(0, 1).Draw(t, "delta"),
							T0:    .1 * seconds,
						},
					},
				},
			},
		}
		if p.Mode == planner.Online {
			task.Arrival = rapid.Float64Range(0, 500).Draw(t, "arrival")
		}
		if rapid.Bool().Draw(t, "shares") {
			task.Share = rapid.SampledFrom([]float64{.25, .5}).Draw(t, "share")
		} else if nodes := rapid.IntRange(1, p.Cluster.Classes[0].Count).Draw(t, "nodes"); nodes > 1 {
			task.Options[0].GPUs, task.Options[0].Nodes = nodes, nodes
		}
		p.Tasks = append(p.Tasks, task)
	}
	if err := policy.ImplyDue(t.Context(), p, 1.5); err != nil {
		t.Fatal(err)
	}
	pol, err := policy.Parse(rapid.SampledFrom([]string{"edl:0.9", "baseline", "edf-bf", "marginal"}).Draw(t,
		"policy"), policy.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := planner.Solve(t.Context(), p, pol, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p, plan
}

// near reports whether two energies are the same up to rounding, on the scale of a
// plan.
func near(a, b, scale float64) bool { return math.Abs(a-b) <= 1e-9*max(scale, 1) }

func TestPowerOverTimeAddsUpToTheLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, plan := drawnPlan(t)
		l := &plan.Ledger
		full := newPowerTimeline(p, plan)
		for _, c := range []*powerTimeline{full, full.downsample(7)} {
			sums, on := c.energyUntil([]float64{c.end()})
			want := causeWatts{
				causeRun: float64(l.Run), causeIdle: float64(l.Idle), causeHost: float64(l.Host),
				causeSleep: float64(l.Sleep),
			}
			for k := range causeCount {
				if !near(sums[0][k], want[k], float64(l.Total())) {
					t.Fatalf("%s: %v J over %d steps, %v J in the ledger", causeStyles[k].name, sums[0][k],
						len(c.at), want[k])
				}
			}
			if !near(on[0], float64(l.TurnOn), float64(l.Total())) {
				t.Fatalf("turn-on: %v J, %v J in the ledger", on[0], l.TurnOn)
			}
			if !slices.IsSorted(c.at) || c.power[len(c.power)-1] != (causeWatts{}) {
				t.Fatalf("times %v, the last power is %v", c.at, c.power[len(c.power)-1])
			}
		}
	})
}

func TestEnergySoFarNeverFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, plan := drawnPlan(t)
		c := newPowerTimeline(p, plan)
		sums := c.totalEnergyUntil(evenTimes(c.end(), 50))
		for i := 1; i < len(sums); i++ {
			if sums[i] < sums[i-1]-1e-6 {
				t.Fatalf("%v J follow %v J", sums[i], sums[i-1])
			}
		}
	})
}

func TestTextOnBarsContrasts(t *testing.T) {
	for clock := slowest; clock <= fastest; clock += 0.005 {
		c := clockColor(clock)
		light := c.luminance()
		contrast := 1.05 / (light + .05)
		if c.textClass() == "d" {
			contrast = (light + .05) / .05
		}
		if contrast < 4.5 {
			t.Errorf("text on the colour of %.3f has a contrast of %.2f", clock, contrast)
		}
	}
}
