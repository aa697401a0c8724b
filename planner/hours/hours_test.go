package hours_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/check"
	"github.com/epplan/epplan/planner/hours"
	"github.com/epplan/epplan/planner/policy"
	"github.com/epplan/epplan/planner/steps"
)

const hour = 3600.0

// drawPrices returns prices by the hour for some days, from before time 0 on.
func drawPrices(rng *rand.Rand) hours.Prices {
	pr := hours.Prices{}
	for h := -5.0; h < 60; h++ {
		pr.Function = append(pr.Function, steps.Step[float64]{From: h * hour, Value: 0.1 + rng.Float64()})
	}
	return pr
}

// drawProblem returns jobs on a small cluster, a part of them with deadlines.
func drawProblem(rng *rand.Rand) *planner.Problem {
	p := &planner.Problem{
		Cluster: planner.Cluster{Classes: []planner.NodeClass{
			{
				Name: "n", Model: "V100", Count: 1 + rng.IntN(3), GPUs: 4, IdleW: 20, HostW: 30, SleepW: 5,
				TurnOn: 1000,
			},
		}},
		Mode: planner.Online, Objective: dvfsmodel.MinEnergy(),
	}
	for i := range 1 + rng.IntN(30) {
		time := hour * (0.2 + 5*rng.Float64())
		power := dvfsmodel.Watt(50 + 200*rng.Float64())
		fixed := &dvfsmodel.Fixed{At: dvfsmodel.Point{
			Scaling: dvfsmodel.DefaultScaling(), Time: time, Power: power, Energy: power.Over(time),
		}}
		t := planner.NewTask(fmt.Sprint("t", i), planner.Option{
			Model: "V100", GPUs: 1 + rng.IntN(4), Response: fixed,
		})
		t.Arrival = math.Round(10 * hour * rng.Float64())
		if rng.IntN(4) == 0 {
			t.Deadline = t.Arrival + time*(1+3*rng.Float64())
			t.Due = t.Deadline
		}
		p.Tasks = append(p.Tasks, t)
	}
	return p
}

// TestAConstantPriceCostsTheEnergy: at the same price at all times a plan costs its ledger's energy.
func TestAConstantPriceCostsTheEnergy(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := drawProblem(rng)
		p.Mode = []planner.Mode{planner.Online, planner.Clairvoyant}[rng.IntN(2)]
		plan := solve(t, p)
		price := rng.Float64()
		flat := hours.Prices{Function: steps.Function[float64]{
			{From: 1000, Value: price}, {From: 5000, Value: price},
		}}
		cost, err := flat.Cost(p, plan)
		if want := price * float64(plan.Ledger.Total()); err != nil || math.Abs(cost-want) > 1e-9*want {
			t.Errorf("seed %d: costs %v, want %v: %v", seed, cost, want, err)
		}
	}
}

// TestAPriceIsSummedOverTime compares with sums by the second.
func TestAPriceIsSummedOverTime(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		pr := drawPrices(rng)
		from := math.Round(-8*hour + 66*hour*rng.Float64())
		to := from + math.Round(5*hour*rng.Float64())
		want := 0.0
		for at := from; at < to; at++ {
			price := pr.Function[0].Value
			for _, step := range pr.Function {
				if step.From <= at {
					price = step.Value
				}
			}
			want += price
		}
		if got := pr.Integral(planner.Interval{From: from, To: to}); math.Abs(got-want) > 1e-6*(1+want) {
			t.Errorf("from %v to %v: %v, want %v", from, to, got, want)
		}
	}
}

// TestAJobAloneBeginsWhenItCostsLeast compares with every minute.
func TestAJobAloneBeginsWhenItCostsLeast(t *testing.T) {
	t.Parallel()
	later := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		p, pr := drawProblem(rng), drawPrices(rng)
		p.Tasks = p.Tasks[:1]
		task := &p.Tasks[0]
		task.Deadline, task.Due = math.Inf(1), math.Inf(1)
		slack := math.Round(12 * hour * rng.Float64())
		begin := hours.BeginTimes(p, pr, func(int) float64 { return slack })[0]
		run := task.Options[0].Response.Default().Time
		cost := func(at float64) float64 { return pr.Integral(planner.Interval{From: at, To: at + run}) }
		least := cost(task.Arrival)
		for at := task.Arrival; at <= task.Arrival+slack; at += 60 {
			least = min(least, cost(at))
		}
		if begin < task.Arrival || begin > task.Arrival+slack {
			t.Fatalf("seed %d: begins at %v, arrives at %v, can wait %v", seed, begin, task.Arrival, slack)
		}
		// A job on all the GPUs that there are can't count on them later.
		whole := float64(task.Options[0].GPUs) > 0.9*float64(4*p.Cluster.Classes[0].Count)
		if whole && begin != task.Arrival {
			t.Errorf("seed %d: a job on all GPUs begins %v s later", seed, begin-task.Arrival)
		}
		if !whole && cost(begin) > least/0.99+1e-9 {
			t.Errorf("seed %d: costs %v from %v on, %v at best", seed, cost(begin), begin, least)
		}
		if begin > task.Arrival {
			later++
		}
	}
	if later < 80 {
		t.Errorf("%d of 200 jobs begin later", later)
	}
}

// TestNothingIsKnownBeforeItArrives: without the jobs that come later those before begin as they did; jobs
// with deadlines, and such as can't wait, begin at once.
func TestNothingIsKnownBeforeItArrives(t *testing.T) {
	t.Parallel()
	later := 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 4))
		p, pr := drawProblem(rng), drawPrices(rng)
		slacks := make([]float64, len(p.Tasks))
		for i := range slacks {
			slacks[i] = 8 * hour * float64(rng.IntN(3)) / 2
		}
		slices.SortStableFunc(p.Tasks, func(a, b planner.Task) int { return int(a.Arrival - b.Arrival) })
		wait := func(i int) float64 { return slacks[i] }
		begins := hours.BeginTimes(p, pr, wait)
		first := *p
		first.Tasks = p.Tasks[:1+rng.IntN(len(p.Tasks))]
		for i, begin := range hours.BeginTimes(&first, pr, wait) {
			task := &p.Tasks[i]
			switch {
			case begin != begins[i]:
				t.Errorf("seed %d: task %d begins at %v, at %v where others come later", seed, i, begin, begins[i])
			case begin < task.Arrival || begin > task.Arrival+slacks[i],
				begin > task.Arrival && !math.IsInf(task.Deadline, 1):
				t.Errorf("seed %d: task %d arrives at %v and begins at %v, deadline %v", seed, i, task.Arrival, begin,
					task.Deadline)
			case begin > task.Arrival:
				later++
			}
		}
	}
	if later < 100 {
		t.Errorf("%d tasks begin later", later)
	}
}

// TestAPlanOfJobsThatBeginLaterIsAPlanOfTheJobs draws batches in all modes, also beside what runs.
func TestAPlanOfJobsThatBeginLaterIsAPlanOfTheJobs(t *testing.T) {
	t.Parallel()
	later := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 5))
		p, pr := drawProblem(rng), drawPrices(rng)
		if p.Mode = planner.Mode(rng.IntN(3)); p.Mode == planner.Offline {
			for i := range p.Tasks {
				p.Tasks[i].Arrival = 0
			}
			if rng.IntN(2) == 0 {
				p.Tasks[0].Deadline, p.Tasks[0].Due = math.Inf(1), math.Inf(1)
				run := p.Tasks[0].Options[0].Response.Default().Time
				p.Snapshot = &planner.Snapshot{Running: []planner.RunningTask{{End: run}}}
			}
		}
		if err := policy.ImplyDue(t.Context(), p, 1.5); err != nil {
			t.Fatal(err)
		}
		wait := func(int) float64 { return 6 * hour }
		begins := hours.BeginTimes(p, pr, wait)
		shifted := hours.Shifted(p, begins, wait)
		if shifted == nil {
			continue
		}
		later++
		plan := solve(t, shifted)
		plan.Recount(p)
		if err := check.Plan(hours.DueLater(p, wait), plan); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		for i := range plan.Assignments {
			if a := &plan.Assignments[i]; a.Node >= 0 && a.Start < begins[i] {
				t.Errorf("seed %d: task %d starts at %v, before it begins at %v", seed, i, a.Start, begins[i])
			}
		}
	}
	if later < 30 {
		t.Errorf("%d of 60 batches have jobs that begin later", later)
	}
}

func solve(t *testing.T, p *planner.Problem) *planner.Plan {
	t.Helper()
	name := "replan,pace=1"
	if p.Mode != planner.Online {
		name = "edl"
	}
	pol, err := policy.Parse(name, policy.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := policy.SolveChecked(t.Context(), p, pol, nil)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}
