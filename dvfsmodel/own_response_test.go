package dvfsmodel_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
)

// own is a response of a kind that the package doesn't know.
type own struct{ *dvfsmodel.Continuous }

func TestAResponseOfAnyKindIsRepeatedAndAnchored(t *testing.T) {
	wide := dvfsmodel.WideRange()
	known := &dvfsmodel.Continuous{
		Params: dvfsmodel.Params{P0: 50, Gamma: 30, C: 110, D: 45, Delta: 0.6, T0: 5}, Range: &wide,
	}
	for name, change := range map[string]func(dvfsmodel.Response) dvfsmodel.Response{
		"repeated": func(r dvfsmodel.Response) dvfsmodel.Response { return dvfsmodel.Repeat(r, 3) },
		"anchored": func(r dvfsmodel.Response) dvfsmodel.Response { return dvfsmodel.ScaledTo(r, 200, 95) },
	} {
		got, want := change(own{known}), change(known)
		if !alike(got.Default().Time, want.Default().Time) ||
			!alike(float64(got.Default().Power), float64(want.Default().Power)) ||
			!alike(got.MinTime(), want.MinTime()) {
			t.Errorf("%s: default %+v and shortest time %v, want %+v and %v", name, got.Default(),
				got.MinTime(), want.Default(), want.MinTime())
		}
		for _, limit := range []float64{math.Inf(1), want.Default().Time, 1.01 * want.MinTime(), 1} {
			for _, o := range []dvfsmodel.Objective{
				{},
				dvfsmodel.MinEnergy(), dvfsmodel.PricedTime(80),
				{EnergyWeight: 1, TimeWeight: 3, DelayPower: 1},
			} {
				a, errA := got.Optimum(o, limit)
				b, errB := want.Optimum(o, limit)
				if !alike(a.Time, b.Time) || !alike(float64(a.Energy), float64(b.Energy)) {
					t.Errorf("%s within %v s: %+v, want %+v", name, limit, a, b)
				}
				if infA, ok := errors.AsType[*dvfsmodel.InfeasibleError](errA); ok != (errB != nil) ||
					(ok && infA.Error() != errB.Error()) {
					t.Errorf("%s within %v s: error %v, want %v", name, limit, errA, errB)
				}
			}
		}
		s := dvfsmodel.Scaling{V: 0.8, Fc: 0.8, Fm: 0.9}
		if !alike(got.Model().Time(s.Fc, s.Fm), want.Model().Time(s.Fc, s.Fm)) ||
			!alike(float64(got.Model().Power(s)), float64(want.Model().Power(s))) ||
			got.Allows(s) != want.Allows(s) {
			t.Errorf("%s: the model at %+v differs", name, s)
		}
	}
}

// alike allows for the width of a flat optimum.
func alike(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-6*math.Abs(b) }

func TestResponsesThatWereNotMadeWholeSaySo(t *testing.T) {
	wide, params := dvfsmodel.WideRange(), dvfsmodel.Params{P0: 50, D: 45, Delta: 0.6}
	base := dvfsmodel.Setting{Core: 1000, Mem: 1000}
	table, err := dvfsmodel.NewTable(base, []dvfsmodel.Setting{{Core: 1000, Mem: 1000}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := table.Nearest(1000, 1000)
	for _, c := range []struct {
		said     string // empty: nothing is wrong
		response interface{ Validate() error }
	}{
		{"", &dvfsmodel.Continuous{Params: params, Range: &wide}},
		{"", &dvfsmodel.Discrete{Params: params, Table: table, At: at}},
		{"", dvfsmodel.NewFrontier(params, table, at)},
		{"", &dvfsmodel.Fixed{At: dvfsmodel.Point{Scaling: dvfsmodel.DefaultScaling(), Time: 1}}},
		{"no range", &dvfsmodel.Continuous{Params: params}},
		{"range bound 0", &dvfsmodel.Continuous{Params: params, Range: &dvfsmodel.Range{}}},
		{"D and t0 are both 0", &dvfsmodel.Continuous{Range: &wide}},
		{"no table", &dvfsmodel.Discrete{Params: params}},
		{"no table", &dvfsmodel.Discrete{Params: params, Table: &dvfsmodel.Table{}}},
		{"DefaultScaling", &dvfsmodel.Discrete{Params: params, Table: table}},
		{"no settings", &dvfsmodel.Frontier{}},
		{"no settings", dvfsmodel.NewFrontier(params, &dvfsmodel.Table{}, at)},
		{"run time NaN s", dvfsmodel.NewFrontier(dvfsmodel.Params{D: math.NaN()}, table, at)},
		{"DefaultScaling", &dvfsmodel.Fixed{At: dvfsmodel.Point{Time: 1}}},
		{
			"power -1 W", &dvfsmodel.Fixed{At: dvfsmodel.Point{
				Scaling: dvfsmodel.DefaultScaling(), Time: 1, Power: -1,
			}},
		},
	} {
		err := c.response.Validate()
		if (err == nil) != (c.said == "") || (err != nil && !strings.Contains(err.Error(), c.said)) {
			t.Errorf("%T: error is %v, want one with %q", c.response, err, c.said)
		}
	}
}

func TestAFocusThatCannotBeIsAnError(t *testing.T) {
	samples := []dvfsmodel.Sample{
		{Core: 700, Mem: 1000, Time: 14, Power: 90},
		{Core: 800, Mem: 1000, Time: 13, Power: 100},
		{Core: 900, Mem: 1000, Time: 12, Power: 120},
		{Core: 1000, Mem: 1000, Time: 11, Power: 150},
	}
	for _, focus := range []float64{-1, math.NaN()} {
		_, err := dvfsmodel.Fit(samples, dvfsmodel.Setting{Core: 1000, Mem: 1000},
			&dvfsmodel.FitOptions{Focus: focus})
		if err == nil || !strings.Contains(err.Error(), "focus") {
			t.Errorf("focus %v: error is %v, want one that names it", focus, err)
		}
	}
}

func TestAFrontierWithoutSettingsMeetsNoLimit(t *testing.T) {
	empty := dvfsmodel.NewFrontier(dvfsmodel.Params{D: 1, Delta: 0.5}, &dvfsmodel.Table{},
		dvfsmodel.Point{Scaling: dvfsmodel.DefaultScaling()})
	if _, err := empty.Optimum(dvfsmodel.MinEnergy(), math.Inf(1)); !errors.Is(err, dvfsmodel.ErrInfeasible) {
		t.Errorf("error is %v, want ErrInfeasible", err)
	}
}

// TestAResponseWithinSomeClocksChoosesAmongThemAlone draws which may be set: whatever is asked of the
// narrowed response, it is answered by the cheapest of these, or by the default clocks.
func TestAResponseWithinSomeClocksChoosesAmongThemAlone(t *testing.T) {
	base := dvfsmodel.Setting{Core: 1000, Mem: 900}
	var pairs []dvfsmodel.Setting
	for core := dvfsmodel.MHz(400); core <= 1200; core += 100 {
		pairs = append(pairs, dvfsmodel.Setting{Core: core, Mem: 900}, dvfsmodel.Setting{Core: core, Mem: 500})
	}
	table, err := dvfsmodel.NewTable(base, pairs, nil)
	if err != nil {
		t.Fatal(err)
	}
	params := dvfsmodel.Params{P0: 40, Gamma: 20, C: 150, D: 600, Delta: 0.6, T0: 50}
	at := table.Nearest(base.Core, base.Mem)
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOf(rapid.SampledFrom(pairs)).Draw(t, "clocks that may be set")
		price := dvfsmodel.PricedTime(dvfsmodel.Watt(rapid.Float64Range(0, 200).Draw(t, "price")))
		limit := rapid.Float64Range(300, 3000).Draw(t, "limit")
		for _, free := range []dvfsmodel.Response{
			&dvfsmodel.Discrete{Params: params, Table: table, At: at}, dvfsmodel.NewFrontier(params, table, at),
		} {
			r := dvfsmodel.RestrictedTo(free, func(s dvfsmodel.Setting) bool { return slices.Contains(some, s) })
			best, err := r.Optimum(price, limit)
			least := leastCost(free, table, append(some, base), price, limit)
			if math.IsInf(least, 1) != (err != nil) || err == nil && math.Abs(price.Cost(best)-least) > 1e-9*least {
				t.Fatalf("%T: %+v at %v, %v; want %v", free, best, price.Cost(best), err, least)
			}
			if pt := (dvfsmodel.Setting{Core: best.Core, Mem: best.Mem}); err == nil && pt != base &&
				!slices.Contains(some, pt) {
				t.Fatalf("%T: %v may not be set", free, pt)
			}
		}
	})
}

// leastCost is that of the cheapest of some settings of a table within a limit; +Inf: there is none.
func leastCost(
	r dvfsmodel.Response, table *dvfsmodel.Table, of []dvfsmodel.Setting, price dvfsmodel.Objective,
	limit float64,
) float64 {
	least := math.Inf(1)
	for _, pt := range table.Points() {
		one, ok := dvfsmodel.PointAt(r, pt)
		if ok && slices.Contains(of, dvfsmodel.Setting{Core: pt.Core, Mem: pt.Mem}) && one.Time <= limit {
			least = min(least, price.Cost(one))
		}
	}
	return least
}
