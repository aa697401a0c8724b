package dvfsmodel_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
)

func TestOptimaAtManyPricesOfTimeCostWhatEachDoesByItself(t *testing.T) {
	apart := 0
	rapid.Check(t, func(t *rapid.T) {
		params, table := drawParams(t), drawTable(t)
		r := dvfsmodel.NewFrontier(params, table, table.Nearest(1000, 1000))
		prices := rapid.SliceOfN(rapid.Float64Range(-200, 4000), 8, 20).Draw(t, "prices of time")
		slices.Sort(prices)
		if rapid.Bool().Draw(t, "falling") {
			slices.Reverse(prices)
		}
		goals := make([]dvfsmodel.Objective, len(prices))
		for i, price := range prices {
			goals[i] = dvfsmodel.Objective{EnergyWeight: 1, TimeWeight: price}
		}
		limit := math.Inf(1)
		if rapid.Bool().Draw(t, "limited") {
			limit = r.MinTime() * rapid.Float64Range(0.9, 2).Draw(t, "limit")
		}
		all := dvfsmodel.AppendOptima(nil, r, goals, limit)
		for i, goal := range goals {
			want, err := r.Optimum(goal, limit)
			if err != nil {
				if len(all) > 0 {
					t.Fatalf("%v, though %v", all, err)
				}
				return
			}
			if got := goal.Cost(all[i]); math.Abs(got-goal.Cost(want)) > 1e-9*math.Abs(got) {
				t.Fatalf("at price %v %+v costs %v, the optimum %+v %v", prices[i], all[i], got, want,
					goal.Cost(want))
			}
			if want.Time > r.MinTime() {
				apart++
			}
		}
	})
	if apart < 30 {
		t.Errorf("%d optima are slower than the fastest clocks: too few to tell", apart)
	}
}
