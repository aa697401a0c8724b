package budget_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/budget"
)

// sumOfSlowdowns returns the sum of slowdowns at limits, by code of its own.
func sumOfSlowdowns(gpus []budget.Demand, watts []dvfsmodel.Watt) (sum float64) {
	for i := range gpus {
		if len(gpus[i].Curve) == 0 {
			continue
		}
		times := gpus[i].Curve[0].Times
		for _, point := range gpus[i].Curve {
			if point.Watts <= watts[i]+1e-9 {
				times = min(times, point.Times)
			}
		}
		sum += times
	}
	return sum
}

// best returns the least sum of slowdowns by trying all points of all curves.
func best(gpus []budget.Demand, budgets []dvfsmodel.Watt) float64 {
	watts := make([]dvfsmodel.Watt, len(gpus))
	least := math.Inf(1)
	var try func(i int)
	try = func(i int) {
		if i == len(gpus) {
			sums := make([]dvfsmodel.Watt, len(budgets))
			for g := range gpus {
				for _, b := range gpus[g].Budgets {
					sums[b] += watts[g]
				}
			}
			for b := range budgets {
				if sums[b] > budgets[b]+1e-9 {
					return
				}
			}
			least = min(least, sumOfSlowdowns(gpus, watts))
			return
		}
		watts[i] = gpus[i].Min
		try(i + 1)
		for _, point := range gpus[i].Curve {
			if point.Watts > gpus[i].Min && point.Watts <= gpus[i].Max {
				watts[i] = point.Watts
				try(i + 1)
			}
		}
	}
	try(0)
	return least
}

// drawDemands draws GPUs under a budget or two that are enough for their least limits.
func drawDemands(rng *rand.Rand) (gpus []budget.Demand, budgets []dvfsmodel.Watt) {
	budgets = []dvfsmodel.Watt{0, 0}
	gpus = make([]budget.Demand, 2+rng.IntN(4))
	for i := range gpus {
		g := &gpus[i]
		g.Min = dvfsmodel.Watt(80 + rng.IntN(60))
		g.Max = g.Min + dvfsmodel.Watt(rng.IntN(200))
		g.Budgets = []int{0, 1}[:1+rng.IntN(2)]
		times := 1.0
		for k := 4; k >= 0; k-- { // from fast to slow
			g.Curve = append([]budget.Slowdown{{g.Min + (g.Max-g.Min)*dvfsmodel.Watt(k)/4, times}}, g.Curve...)
			times += rng.Float64() / 3
		}
		for _, b := range g.Budgets {
			budgets[b] += g.Min + dvfsmodel.Watt(rng.Float64())*(g.Max-g.Min)
		}
	}
	return gpus, budgets
}

// checkDivision checks that a division keeps all bounds.
func checkDivision(t *testing.T, gpus []budget.Demand, budgets []dvfsmodel.Watt, d *budget.Division) {
	t.Helper()
	sums := make([]dvfsmodel.Watt, len(budgets))
	for i := range gpus {
		if d.Watts[i] < gpus[i].Min-1e-6 || d.Watts[i] > gpus[i].Max+1e-6 {
			t.Errorf("GPU %d has %v of %v to %v", i, d.Watts[i], gpus[i].Min, gpus[i].Max)
		}
		for _, b := range gpus[i].Budgets {
			sums[b] += d.Watts[i]
		}
	}
	for b := range budgets {
		if sums[b] > budgets[b]+1e-6 || d.Short[b] > 0 {
			t.Errorf("budget %d: %v of %v, short by %v", b, sums[b], budgets[b], d.Short[b])
		}
	}
}

func TestADivisionIsWithinItsBudgetsAndNearTheBest(t *testing.T) {
	var ours, theirs, alike float64
	for seed := range uint64(400) {
		gpus, budgets := drawDemands(rand.New(rand.NewPCG(seed, 3)))
		d := budget.Divide(gpus, budgets)
		checkDivision(t, gpus, budgets, &d)
		bare := slices.Clone(gpus)
		for i := range bare {
			bare[i].Curve = nil
		}
		ours += sumOfSlowdowns(gpus, d.Watts)
		theirs += best(gpus, budgets)
		alike += sumOfSlowdowns(gpus, budget.Divide(bare, budgets).Watts)
	}
	t.Logf("sum of slowdowns: %.1f, best %.1f, all alike %.1f", ours, theirs, alike)
	if ours > 1.02*theirs || ours > alike {
		t.Errorf("sum of slowdowns %.1f, best %.1f, all alike %.1f", ours, theirs, alike)
	}
}

func TestWhatJobsNeedComesFirst(t *testing.T) {
	curve := []budget.Slowdown{{100, 1.5}, {300, 1}}
	gpus := []budget.Demand{
		{Min: 100, Max: 300, Curve: []budget.Slowdown{{100, 9}, {300, 1}}, Budgets: []int{0}},
		{Min: 100, Max: 300, Curve: curve, Need: 250, Budgets: []int{0}},
		{Min: 100, Max: 300, Curve: curve, Need: 290, Budgets: []int{0}},
	}
	d := budget.Divide(gpus, []dvfsmodel.Watt{470})
	if d.Watts[1] < 250 || d.Unmet != 1 {
		t.Errorf("GPUs get %v, %d unmet", d.Watts, d.Unmet)
	}
	d = budget.Divide(gpus, []dvfsmodel.Watt{250})
	if d.Short[0] != 50 || d.Watts[0] != 100 {
		t.Errorf("GPUs get %v, short by %v", d.Watts, d.Short)
	}
}

func TestAScheduleIsTheLeastOfItsPartsAtAnyTime(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	s := budget.Schedule{
		Steps: []budget.Step{{at(0), 300}, {at(100), 200}, {at(200), 400}},
		Events: []budget.Event{
			{Watts: 100, From: at(50), Until: at(60), Ramp: 20 * time.Second},
			{Watts: 250, From: at(150), Until: at(230)},
		},
	}
	for _, c := range []struct{ at, want float64 }{
		{-10, 300},
		{29, 300},
		{40, 200},
		{50, 100},
		{59, 100},
		{60, 100},
		{70, 200},
		{90, 300},
		{100, 200},
		{160, 200},
		{210, 250},
		{229, 250},
		{230, 400},
		{1e6, 400},
	} {
		if got := s.At(at(c.at)); math.Abs(float64(got)-c.want) > 1e-6 {
			t.Errorf("at %v: %v W, want %v", c.at, got, c.want)
		}
	}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 4))
		from := rng.Float64()*300 - 20
		until := from + rng.Float64()*100
		least := math.Inf(1)
		for x := from; x <= until; x += 0.01 {
			least = min(least, float64(s.At(at(x))))
		}
		if got := float64(s.Least(at(from), at(until))); got > least+1e-6 || got < least-0.2 {
			t.Errorf("least from %v until %v: %v, want %v", from, until, got, least)
		}
	}
	if got := s.LeastEver(at(95)); got != 200 {
		t.Errorf("from 95 on: %v, want 200", got)
	}
	if got := (&budget.Schedule{}).Least(at(0), at(9)); !math.IsInf(float64(got), 1) {
		t.Errorf("without a budget: %v", got)
	}
}
