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

// LeastCosts is compared with all points of a response, and for a range with a grid of points, between which
// others cost a little less.
func TestNothingCostsLessThanTheLeastWhereASecondIsWorthSomething(t *testing.T) {
	wide := dvfsmodel.WideRange()
	worth := 0
	pointsOf := func(r dvfsmodel.Response, limit float64) (all []dvfsmodel.Point) {
		for _, s := range dvfsmodel.SupportedPoints(r) {
			pt, _ := dvfsmodel.PointAt(r, s)
			all = append(all, pt)
		}
		return slices.DeleteFunc(append(all, r.Default()), func(pt dvfsmodel.Point) bool {
			return !dvfsmodel.MeetsLimit(pt.Time, limit)
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		params, table := drawParams(t), drawTable(t)
		at := table.Nearest(1000, 1000)
		r := []dvfsmodel.Response{
			dvfsmodel.NewFrontier(params, table, at),
			&dvfsmodel.Discrete{Params: params, Table: table, At: at},
			&dvfsmodel.Fixed{At: params.At(dvfsmodel.DefaultScaling())},
			&dvfsmodel.Continuous{Params: params, Range: &wide},
		}[rapid.IntRange(0, 3).Draw(t, "kind")]
		limit := math.Inf(1)
		if rapid.Bool().Draw(t, "limited") {
			limit = r.MinTime() * rapid.Float64Range(1.01, 2).Draw(t, "limit")
		}
		goals := make([]dvfsmodel.Objective, 4)
		for i, price := range []float64{-200, -60, -5, 20} {
			goals[i] = dvfsmodel.Objective{EnergyWeight: 1, TimeWeight: price}
		}
		got := make([]float64, len(goals))
		if !dvfsmodel.LeastCosts(got, r, goals, limit) {
			t.Fatalf("%T isn't known", r)
		}
		all := pointsOf(r, limit)
		_, continuous := r.(*dvfsmodel.Continuous)
		for i, goal := range goals {
			want := math.Inf(1)
			for _, pt := range all {
				want = min(want, goal.Cost(pt))
			}
			if got[i] > want+1e-9*math.Abs(want) || !continuous && got[i] != want {
				t.Errorf("%T, price %v, limit %v: %v, want %v", r, goal.TimeWeight, limit, got[i], want)
			}
			if at, err := r.Optimum(dvfsmodel.MinEnergy(), limit); err == nil && want < goal.Cost(at) {
				worth++
			}
		}
	})
	if worth < 30 {
		t.Errorf("%d least costs are below that of the least energy: too few to tell", worth)
	}
	if dvfsmodel.LeastCosts(nil, own{&dvfsmodel.Continuous{Range: &wide}}, nil, 1) {
		t.Error("a response of a kind that only its author knows is known")
	}
}
