package policy_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/policy"
)

// waitWeights are prices of waiting, from none to one at which little else counts.
var waitWeights = []float64{0, 10, 50, 200, 1000}

// pricedWaits returns the default plans of a problem for the prices of waiting.
func pricedWaits(t *testing.T, p *planner.Problem) []*planner.Plan {
	t.Helper()
	plans := make([]*planner.Plan, len(waitWeights))
	for i, weight := range waitWeights {
		p.WaitWeight = weight
		plans[i] = bestPlan(t, p)
	}
	return plans
}

// waits is how long jobs wait by plans for the prices, over batches.
type waits struct {
	batches float64
	waited  []float64   // sums of GPU-seconds, as parts of those that jobs run where waiting is free
	worse   [][]float64 // by price, and by the price of another plan: sums of how much that costs more
}

// add notes the plans of a batch for the prices.
func (w *waits) add(p *planner.Problem, plans []*planner.Plan) {
	if w.batches++; w.waited == nil {
		w.waited, w.worse = make([]float64, len(plans)), make([][]float64, len(plans))
	}
	for i, plan := range plans {
		w.waited[i] += plan.WaitedGPUSeconds(p) / plans[0].GPUSeconds(p)
		if w.worse[i] == nil {
			w.worse[i] = make([]float64, len(plans))
		}
		p.WaitWeight = waitWeights[i]
		for k, other := range plans {
			w.worse[i][k] += p.Cost(other)/p.Cost(plan) - 1
		}
	}
}

// check wants less waiting by each higher price, and in the mean no plan that is better
// by more than a part by the price of another one.
func (w *waits) check(t *testing.T, most float64) {
	t.Helper()
	for i, weight := range waitWeights {
		t.Logf("%v: jobs wait %.4f times as long as they run", weight, w.waited[i]/w.batches)
		if i > 0 && w.waited[i] >= w.waited[i-1] {
			t.Errorf("at %v jobs wait %.4f times as long as they run, at %v %.4f times; want less",
				weight, w.waited[i]/w.batches, waitWeights[i-1], w.waited[i-1]/w.batches)
		}
		for k, sum := range w.worse[i] {
			if sum/w.batches < -most {
				t.Errorf("at %v the plan for %v is %.2f %% better, want %.2f %% at most", weight,
					waitWeights[k], -100*sum/w.batches, 100*most)
			}
		}
	}
}

func TestAHigherPriceOfWaitingLeavesJobsWaitingLess(t *testing.T) {
	t.Parallel()
	const most = 0.03 // as of the other weights
	batches, meanMost := shareddata.Rounds[uint64](2, 2, 5), 0.003
	if batches == 2 {
		meanMost = most
	}
	var w waits
	for seed := uint64(200); seed < 200+batches; seed++ {
		p := drawBatch(t, seed)
		plans := pricedWaits(t, p)
		w.add(p, plans)
		for i := range plans {
			if late, free := len(plans[i].PastDue(p)), len(plans[0].PastDue(p)); late > free {
				t.Errorf("seed %d: at %v %d jobs are past due, where waiting is free %d", seed,
					waitWeights[i], late, free)
			}
			p.WaitWeight = waitWeights[i]
			for _, other := range plans {
				if lost := p.Cost(plans[i])/p.Cost(other) - 1; lost > most {
					t.Errorf("seed %d: at %v %.2f %% above another plan", seed, waitWeights[i], 100*lost)
				}
			}
		}
	}
	w.check(t, meanMost)
}

func TestAHigherPriceOfWaitingLeavesJobsWaitingLessOnline(t *testing.T) {
	const most = 0.005
	var w waits
	against := make([]figures, len(waitWeights))
	for seed := uint64(21_000); seed < 21_000+4*onlineBatches(); seed++ {
		p := kinds[seed%2].draw(t, seed, 20, 200)
		base, _ := pastDue(t, p, policy.EasyDefault)
		plans, easy := pricedWaits(t, p), serviceOf(p, base)
		for i, plan := range plans {
			s := serviceOf(p, plan)
			against[i].add(p, &s, &easy)
		}
		w.add(p, plans)
	}
	w.check(t, most)
	for i := range against {
		f := &against[i]
		t.Logf("%v: %v", waitWeights[i], f)
		late, _ := meanOf(f.late)
		if f.misses > 0 || late > 0.01 || f.slow > 0 || f.lost > 0 {
			t.Errorf("at %v %d deadlines more are missed than by EASY, %.4f of the jobs more past due, %d "+
				"runs are too slow, %d jobs left out",
				waitWeights[i], f.misses, late, f.slow, f.lost)
		}
	}
}

// quickPlan returns the default offline plan, for a part of the usual search.
func quickPlan(t *testing.T, p *planner.Problem) *planner.Plan {
	t.Helper()
	params := policy.DefaultParams()
	params.Effort = 0.2
	pol, err := policy.Parse(policy.DefaultName(planner.Offline), params)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := policy.SolveChecked(t.Context(), p, pol, nil)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestTheDefaultPlanGivesUpToItsToleranceForShorterTurnaround and no promise, and nothing where all jobs have
// deadlines of their own.
func TestTheDefaultPlanGivesUpToItsToleranceForShorterTurnaround(t *testing.T) {
	t.Parallel()
	batches := shareddata.Rounds[uint64](3, 6, 40)
	shorter := 0.0
	for seed := uint64(600); seed < 600+batches; seed++ {
		p := drawOffline(t, seed, 20+float64(seed%7)*10)
		plan := quickPlan(t, p)
		if plan.Least == nil {
			continue
		}
		rank, most := p.RankOf(plan), p.RankOf(plan.Least)
		most.Cost *= 1 + policy.DefaultTolerance
		ours, least := serviceOf(p, plan), serviceOf(p, plan.Least)
		if rank.Compare(most) > 0 || ours.mean >= least.mean {
			t.Errorf("seed %d: plan %+v with turnaround %.0f s, least %+v with %.0f s", seed, rank, ours.mean,
				p.RankOf(plan.Least), least.mean)
		}
		shorter += (1 - ours.mean/least.mean) / float64(batches)
		for i := range p.Tasks {
			p.Tasks[i].Deadline = p.Tasks[i].Due
		}
		if quickPlan(t, p).Least != nil {
			t.Errorf("seed %d: jobs with deadlines end sooner than they are asked to", seed)
		}
	}
	t.Logf("turnaround %.1f %% shorter in the mean", 100*shorter)
	if shorter < 0.03 {
		t.Errorf("turnaround %.1f %% shorter in the mean, want 3 %% or more", 100*shorter)
	}
}

// TestAWishForTimeShortensMeanTurnaround over batches, by the weights of a configuration, even
// where all would wait for the faster GPU model.
func TestAWishForTimeShortensMeanTurnaround(t *testing.T) {
	t.Parallel()
	const most = 0.99 // of that at the weight before
	weights := []float64{0, 20, 200, 1000}
	sums := make([]float64, len(weights)) // by weight, as parts of the mean turnaround without
	batches := shareddata.Rounds(2, 4, 30)
	for seed, drawn := uint64(700), 0; drawn < batches; seed++ {
		p, without := drawOffline(t, seed, 40), 0.0
		if len(p.Cluster.Classes) == 1 {
			continue
		}
		drawn++
		for i, weight := range weights {
			text := fmt.Sprintf("[objective]\ntime_weight = %v\n", weight)
			c, err := config.Load(strings.NewReader(text), "weights", config.BuiltinProfiles())
			if err != nil {
				t.Fatal(err)
			}
			goal := c.Goal()
			goal.ApplyTo(p)
			mean := serviceOf(p, quickPlan(t, p)).mean
			if i == 0 {
				without = mean
			}
			sums[i] += mean / without / float64(batches)
		}
	}
	t.Logf("turnaround at time_weight %v: %.3f", weights, sums)
	for i := 1; i < len(sums); i++ {
		if sums[i] > most*sums[i-1] {
			t.Errorf("turnaround %.3f of that without a weight at %v, %.3f at %v", sums[i], weights[i], sums[i-1],
				weights[i-1])
		}
	}
}

// TestOnlyRatiosOfWeightsCount by every policy: money is a unit of which a joule costs little.
func TestOnlyRatiosOfWeightsCount(t *testing.T) {
	const small = 1.0 / (1 << 22)
	params := policy.DefaultParams()
	params.Queue.Look.Futures, params.Effort = 2, 0.1
	problems := []*planner.Problem{
		drawBatch(t, 204), drawOnline(t, 204, 20, 100), drawGangsOnline(t, 205, 20, 100),
	}
	for _, name := range policy.Names() {
		pol, err := policy.Parse(name, params)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			plans := make([]*planner.Plan, 2)
			for i, unit := range []float64{1, small} {
				p.Objective, p.WaitWeight = dvfsmodel.Objective{
					EnergyWeight: unit, TimeWeight: 50 * unit,
				}, 20*unit
				if plans[i], err = policy.SolveChecked(t.Context(), p, pol, nil); err != nil {
					t.Fatal(err)
				}
			}
			if !reflect.DeepEqual(plans[0].Assignments, plans[1].Assignments) {
				t.Errorf("%s, %s: another plan where all weights are %v times as much: %.0f J "+
					"instead of %.0f J",
					name, p.Mode, small, plans[1].Ledger.Total(), plans[0].Ledger.Total())
			}
		}
	}
}

// TestWhereNodesAreManyNobodyWaitsThatPaysForIt: of the EDL paper's problem.
func TestWhereNodesAreManyNobodyWaitsThatPaysForIt(t *testing.T) {
	wide := dvfsmodel.WideRange()
	p := &planner.Problem{Cluster: planner.Cluster{
		Classes:       []planner.NodeClass{{Name: "n", Model: "A", GPUs: 2, IdleW: 30, TurnOn: 3e5}},
		OfflineTurnOn: true,
	}}
	for i := range 12 {
		task := planner.NewTask(string(rune('a'+i)), planner.Option{
			Model: "A", GPUs: 1, Response: &dvfsmodel.Continuous{
				Range: &wide, Params: dvfsmodel.Params{
					P0: 40, Gamma: 20, C: 100, D: 1000, Delta: 0.5, T0: 100,
				},
			},
		})
		task.Deadline, task.Due = 20_000, 20_000
		p.Tasks = append(p.Tasks, task)
	}
	if waited := bestPlan(t, p).WaitedGPUSeconds(p); waited == 0 {
		t.Error("nobody waits where that is free")
	}
	p.WaitWeight = 1000
	if waited := bestPlan(t, p).WaitedGPUSeconds(p); waited > 0 {
		t.Errorf("%v GPU·s are waited, at a price above that of another node", waited)
	}
}
