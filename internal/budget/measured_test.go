package budget_test

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/budget"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// measuredCurves returns, of workloads that were measured under power limits, how much longer they take under
// each than under the highest one.
func measuredCurves(t *testing.T, file string) [][]budget.Slowdown {
	t.Helper()
	byName := make(map[string][]budget.Slowdown)
	for _, row := range shareddata.Rows(t, shareddata.Path(t, file)) {
		byName[row["workload"]] = append(byName[row["workload"]], budget.Slowdown{
			Watts: dvfsmodel.Watt(shareddata.Number(t, row["cap_w"])), Times: shareddata.Number(t, row["epoch_s"]),
		})
	}
	all := make([][]budget.Slowdown, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		curve := byName[name]
		slices.SortFunc(curve, func(a, b budget.Slowdown) int { return cmp.Compare(a.Watts, b.Watts) })
		for i := 1; i < len(curve); i++ { // a higher limit slows nobody: what looks like it is noise
			curve[i].Times = min(curve[i].Times, curve[i-1].Times)
		}
		full := curve[len(curve)-1].Times
		for i := range curve {
			curve[i].Times /= full
		}
		all = append(all, curve)
	}
	return all
}

// throughput returns how much of its work a job does under a limit, between measured ones by interpolation.
func throughput(curve []budget.Slowdown, limit dvfsmodel.Watt) float64 {
	for i := 1; i < len(curve); i++ {
		if a, b := curve[i-1], curve[i]; limit <= b.Watts {
			part := float64((max(limit, a.Watts) - a.Watts) / (b.Watts - a.Watts))
			return 1 / (a.Times + part*(b.Times-a.Times))
		}
	}
	return 1
}

// TestADividedBudgetKeepsMoreThroughputThanAUniformLimit draws 100 mixes of six workloads, measured by
// others under power limits, on 256 GPUs that are to take 10 to 40 % less than their highest limits: a
// published event was 25 % for three hours.
func TestADividedBudgetKeepsMoreThroughputThanAUniformLimit(t *testing.T) {
	for _, file := range []string{"powercap/zeus_v100.csv", "powercap/zeus_a40.csv"} {
		curves := measuredCurves(t, file)
		for _, part := range []dvfsmodel.Watt{0.9, 0.75, 0.6} {
			ours, alike, worst := 0.0, 0.0, 1.0
			for seed := range uint64(100) {
				rng := rand.New(rand.NewPCG(seed, 61))
				var mix [6][]budget.Slowdown
				for i := range mix {
					mix[i] = curves[rng.IntN(len(curves))]
				}
				gpus, most := make([]budget.Demand, 256), dvfsmodel.Watt(0)
				for i := range gpus {
					curve := mix[rng.IntN(1+rng.IntN(len(mix)))]
					gpus[i] = budget.Demand{
						Min: curve[0].Watts, Max: curve[len(curve)-1].Watts, Curve: curve, Budgets: []int{0},
					}
					most += gpus[i].Max
				}
				budgets := []dvfsmodel.Watt{part * most}
				d := budget.Divide(gpus, budgets)
				checkDivision(t, gpus, budgets, &d)
				kept, uniform := 0.0, 0.0
				for i := range gpus {
					kept += throughput(gpus[i].Curve, d.Watts[i]) / float64(len(gpus))
					uniform += throughput(gpus[i].Curve, budgets[0]/dvfsmodel.Watt(len(gpus))) / float64(len(gpus))
				}
				if kept < uniform-1e-9 {
					t.Errorf("%s, %v of the watts, seed %d: throughput %.4f, by a uniform limit %.4f", file, part,
						seed, kept, uniform)
				}
				ours, alike, worst = ours+kept/100, alike+uniform/100, min(worst, kept-uniform)
			}
			t.Logf("%s, %v of the watts: throughput %.4f, by a uniform limit %.4f, at least %+.4f", file, part, ours,
				alike, worst)
		}
	}
}
