package dvfsmodel_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
)

func TestSupportedSettingsAreThoseThatAResponseAllows(t *testing.T) {
	wide := dvfsmodel.WideRange()
	params := dvfsmodel.Params{P0: 100, Gamma: 50, C: 150, D: 25, Delta: 0.5, T0: 5}
	pairs := []dvfsmodel.Setting{{Core: 1000, Mem: 800}, {Core: 800, Mem: 800}, {Core: 1000, Mem: 400}}
	table, err := dvfsmodel.NewTable(dvfsmodel.Setting{Core: 1000, Mem: 800}, pairs, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := table.Nearest(1000, 800)
	for name, c := range map[string]struct {
		response dvfsmodel.Response
		want     int
	}{
		"table":    {&dvfsmodel.Discrete{Params: params, Table: table, At: at}, 3},
		"frontier": {dvfsmodel.NewFrontier(params, table, at), 3},
		"range":    {&dvfsmodel.Continuous{Params: params, Range: &wide}, 256},
		"no model": {&dvfsmodel.Fixed{At: params.At(dvfsmodel.DefaultScaling())}, 0},
	} {
		for what, r := range map[string]dvfsmodel.Response{
			"":        c.response,
			", twice": dvfsmodel.Repeat(c.response, 2),
		} {
			all := dvfsmodel.SupportedPoints(r)
			if len(all) != c.want {
				t.Errorf("%s%s: %d settings, want %d", name, what, len(all), c.want)
			}
			for _, s := range all {
				pt, ok := dvfsmodel.PointAt(r, s)
				model := r.Model()
				if !ok || pt.Core != s.Core || pt.Mem != s.Mem ||
					pt.Time != model.Time(s.Scaling.Fc, s.Scaling.Fm) ||
					pt.Energy != model.Power(s.Scaling).Over(pt.Time) {
					t.Errorf("%s%s: %+v at %+v, %v", name, what, pt, s, ok)
				}
			}
		}
		beyond := dvfsmodel.Point{Scaling: dvfsmodel.Scaling{V: 3, Fc: 3, Fm: 3}}
		if pt, ok := dvfsmodel.PointAt(c.response, beyond); ok {
			t.Errorf("%s: %+v at clocks that can't be set", name, pt)
		}
	}
	clocks := make([]dvfsmodel.Setting, 0, len(pairs))
	for _, s := range dvfsmodel.SupportedPoints(&dvfsmodel.Discrete{Params: params, Table: table, At: at}) {
		clocks = append(clocks, dvfsmodel.Setting{Core: s.Core, Mem: s.Mem})
	}
	if want := []dvfsmodel.Setting{pairs[2], pairs[1], pairs[0]}; !slices.Equal(clocks, want) {
		t.Errorf("%v, want %v", clocks, want)
	}
}

// What no other setting beats is found by comparing each with each, and the least energy within any time is
// the last of it that is no slower.
func TestUndominatedSettingsAreThoseThatNoneBeats(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 80))
	for range 200 {
		caps := make([]dvfsmodel.Watt, rng.IntN(5))
		for i := range caps {
			caps[i] = dvfsmodel.Watt(100 + rng.IntN(200))
		}
		f, _ := cappedFrontier(t, caps...)
		settings := dvfsmodel.SupportedPoints(f)
		all := make([]dvfsmodel.Point, 0, len(settings))
		for _, at := range settings {
			pt, ok := dvfsmodel.PointAt(f, at)
			if !ok {
				t.Fatalf("%v can't be set", at)
			}
			all = append(all, pt)
		}
		got := dvfsmodel.Undominated(f)
		for _, pt := range all {
			beaten := slices.ContainsFunc(all, func(o dvfsmodel.Point) bool {
				return o.Time <= pt.Time && o.Energy <= pt.Energy && (o.Time < pt.Time || o.Energy < pt.Energy)
			})
			there := slices.ContainsFunc(got, func(o dvfsmodel.Point) bool {
				return o.Time == pt.Time && o.Energy == pt.Energy
			})
			if beaten == there {
				t.Fatalf("%v: beaten %v, shown %v, under %v", pt, beaten, there, caps)
			}
		}
		limit := got[0].Time * (1 + rng.Float64())
		best, err := f.Optimum(dvfsmodel.MinEnergy(), limit)
		last := slices.IndexFunc(got, func(o dvfsmodel.Point) bool { return o.Time > limit })
		if last < 0 {
			last = len(got)
		}
		if err != nil || got[last-1] != best {
			t.Fatalf("%v, %v, want %v", best, err, got[last-1])
		}
	}
}
