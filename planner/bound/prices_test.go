package bound_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/planner/hours"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/steps"
)

// pricedHours returns prices by the hour for two days.
func pricedHours(rng *rand.Rand) (prices hours.Prices) {
	for h := range 48 {
		price := 0.6 + 0.8*rng.Float64()
		prices.Function = append(prices.Function, steps.Step[float64]{From: 3600 * float64(h), Value: price})
	}
	return prices
}

// pricedTask draws a task with clocks of its own that may wait.
func pricedTask(rng *rand.Rand, gpus int) planner.Task {
	full, err := dvfsmodel.RangeByName("wide")
	if err != nil {
		panic(err)
	}
	params := dvfsmodel.Params{
		P0: 60, Gamma: 40, C: 100 + dvfsmodel.Watt(100*rng.Float64()), D: 600 + 8000*rng.Float64(),
		Delta: rng.Float64(), T0: 600 * rng.Float64(),
	}
	t := planner.NewTask("t", planner.Option{
		Model: "V100", GPUs: 1 + rng.IntN(gpus), Response: &dvfsmodel.Continuous{Params: params, Range: &full},
	})
	t.Due = params.D*4 + 40000*rng.Float64()
	if rng.IntN(3) == 0 {
		t.Deadline = t.Due
	}
	return t
}

// TestOneTaskCostsLittleMoreThanTheBound: an oracle tries a task's run times and starts.
func TestOneTaskCostsLittleMoreThanTheBound(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		prices := pricedHours(rng)
		p := &planner.Problem{Objective: dvfsmodel.MinEnergy(), Cluster: planner.Cluster{
			Classes: []planner.NodeClass{{Name: "n", Model: "V100", Count: 1, GPUs: 1, HostW: 30, IdleW: 20}},
		}}
		p.Tasks = []planner.Task{pricedTask(rng, 1)}
		task := &p.Tasks[0]
		response := task.Options[0].Response
		least := math.Inf(1)
		for weight := 0.0; weight < 1e4; weight = 1.2*weight + 1 {
			pt, err := response.Optimum(dvfsmodel.Objective{EnergyWeight: 1, TimeWeight: weight}, task.Due)
			if err != nil {
				t.Fatal(err)
			}
			for start := 0.0; start+pt.Time <= task.Due; start += 60 {
				run := planner.Interval{From: start, To: start + pt.Time}
				least = min(least, (float64(pt.Power)+30)*prices.Integral(run))
			}
		}
		plan := solved(t, p)
		if got := bound.OfPrices(p, plan, prices.Function); got > least || got < 0.95*least {
			t.Errorf("seed %d: at least %v, a plan costs %v", seed, got, least)
		}
	}
}

// TestNoPlanCostsLessThanTheBound draws batches, and plans in which jobs wait for cheap hours.
func TestNoPlanCostsLessThanTheBound(t *testing.T) {
	sum, count := 0.0, 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 2))
		prices := pricedHours(rng)
		p := &planner.Problem{
			Objective: dvfsmodel.MinEnergy(), Mode: planner.Offline, Cluster: planner.Cluster{
				OfflineTurnOn: rng.IntN(2) == 0,
				Classes: []planner.NodeClass{
					{Name: "n", Model: "V100", Count: 2 + rng.IntN(8), GPUs: 4, HostW: 20, IdleW: 30, SleepW: 3, TurnOn: 90},
				},
			},
		}
		for range 1 + rng.IntN(20) {
			p.Tasks = append(p.Tasks, pricedTask(rng, 4))
		}
		wait := func(int) float64 { return 8 * 3600 }
		later := hours.DueLater(p, wait)
		plans := []*planner.Plan{solved(t, p)}
		if shifted := hours.Shifted(p, hours.BeginTimes(p, prices, wait), wait); shifted != nil {
			plan := solved(t, shifted)
			plan.Recount(later)
			plans = append(plans, plan)
		}
		for _, plan := range plans {
			cost, err := prices.Cost(later, plan)
			if err != nil {
				t.Fatal(err)
			}
			least := bound.OfPrices(later, plan, prices.Function)
			if least <= 0 || least > cost {
				t.Errorf("seed %d: a plan costs %v, less than %v", seed, cost, least)
			}
			sum, count = sum+cost/least, count+1
		}
	}
	if t.Logf("%d plans cost %.3f of the bound in the mean", count, sum/float64(count)); count < 80 {
		t.Errorf("%d plans", count)
	}
}

// TestNothingIsProvedWhereEnergyIsWorthNothing of prices below 0, and without any.
func TestNothingIsProvedWhereEnergyIsWorthNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	p := &planner.Problem{Cluster: planner.Cluster{
		Classes: []planner.NodeClass{{Name: "n", Model: "V100", Count: 1, GPUs: 1}},
	}, Objective: dvfsmodel.MinEnergy(), Tasks: []planner.Task{pricedTask(rng, 1)}}
	plan, prices := solved(t, p), pricedHours(rng)
	prices.Function[7].Value = -0.1
	for _, of := range []hours.Prices{{}, prices} {
		if got := bound.OfPrices(p, plan, of.Function); got != 0 {
			t.Errorf("%v", got)
		}
	}
}

func solved(t *testing.T, p *planner.Problem) *planner.Plan {
	t.Helper()
	pol, err := policy.Parse("edl", policy.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := policy.SolveChecked(t.Context(), p, pol, nil)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}
