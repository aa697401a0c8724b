package dvfsmodel_test

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
)

// drawParams draws a workload, edge cases (γ, c, δ, t0 at 0, δ at 1) included.
func drawParams(t *rapid.T) dvfsmodel.Params {
	orEdge := func(name string, hi float64, edges ...float64) float64 {
		if rapid.IntRange(0, 5).Draw(t, name+" is an edge case") == 0 {
			return rapid.SampledFrom(edges).Draw(t, name)
		}
		return rapid.Float64Range(0.001, hi).Draw(t, name)
	}
	return dvfsmodel.Params{
		P0:    dvfsmodel.Watt(rapid.Float64Range(1, 150).Draw(t, "P0")),
		Gamma: dvfsmodel.Watt(orEdge("gamma", 100, 0)),
		C:     dvfsmodel.Watt(orEdge("c", 300, 0)),
		D:     rapid.Float64Range(0.001, 1000).Draw(t, "D"),
		Delta: orEdge("delta", 1, 0, 1),
		T0:    orEdge("t0", 100, 0),
	}
}

// drawTable draws a profile: a grid of clocks, sometimes with holes, and the
// paper's voltage curve or a staircase that is not convex.
func drawTable(t *rapid.T) *dvfsmodel.Table {
	base := dvfsmodel.Setting{Core: 1400, Mem: 5000}
	core := rapid.SliceOfNDistinct(rapid.IntRange(200, 2100), 1, 40, rapid.ID[int]).Draw(t, "core clocks")
	mem := rapid.SliceOfNDistinct(rapid.IntRange(400, 7000), 1, 5, rapid.ID[int]).Draw(t, "memory clocks")
	holes := rapid.Bool().Draw(t, "holes")
	var pairs []dvfsmodel.Setting
	for _, m := range mem {
		for i, c := range core {
			if holes && (c+m)%3 == 0 && i > 0 {
				continue
			}
			pairs = append(pairs, dvfsmodel.Setting{Core: dvfsmodel.MHz(c), Mem: dvfsmodel.MHz(m)})
		}
	}
	var voltage func(float64) dvfsmodel.Volt
	if rapid.Bool().Draw(t, "staircase") {
		voltage = func(fc float64) dvfsmodel.Volt { return dvfsmodel.Volt(0.6 + 0.1*math.Floor(fc*7)) }
	}
	table, err := dvfsmodel.NewTable(base, pairs, voltage)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestTableOptimumEqualsExhaustiveSearch(t *testing.T) {
	checked := 0
	rapid.Check(t, func(t *rapid.T) {
		table, price := drawTable(t), rapid.SampledFrom([]float64{0, 0, 5, 80}).Draw(t, "price")
		for range 100 { // 100 models × 100 tables
			p := drawParams(t)
			limit := math.Inf(1)
			if rapid.Bool().Draw(t, "limited") {
				limit = table.MinTime(p) * rapid.Float64Range(0.9, 3).Draw(t, "limit over minimum")
			}
			o := dvfsmodel.PricedTime(dvfsmodel.Watt(price))
			o.DelayPower = rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "delay power")
			checkAgainstSearch(t, table, p, o, limit)
			checked++
		}
	})
	if checked < 10_000 && !testing.Short() {
		t.Errorf("%d combinations checked, want 10,000 or more", checked)
	}
}

func checkAgainstSearch(
	t *rapid.T, table *dvfsmodel.Table, p dvfsmodel.Params, o dvfsmodel.Objective, limit float64,
) {
	best := math.Inf(1)
	for _, at := range table.Points() {
		if pt := p.At(at.Scaling); pt.Time <= limit*(1+1e-12) {
			best = min(best, o.Cost(pt))
		}
	}
	pt, err := table.Optimum(p, o, limit)
	if math.IsInf(best, 1) {
		if !errors.Is(err, dvfsmodel.ErrInfeasible) {
			t.Fatalf("got %v, %v; want infeasible", pt, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := o.Cost(pt); got > best*(1+1e-12) {
		t.Fatalf("cost %v at %+v, exhaustive search finds %v", got, pt.Scaling, best)
	}
	if _, ok := table.Contains(pt.Core, pt.Mem); !ok {
		t.Fatalf("%v/%v MHz isn't in the table", pt.Core, pt.Mem)
	}
	if !dvfsmodel.MeetsLimit(pt.Time, limit) {
		t.Fatalf("run time %v exceeds the limit %v", pt.Time, limit)
	}
}

func TestRangeOptimumIsNotBeatenByAFineGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := dvfsmodel.Range{
			VMin: dvfsmodel.Volt(rapid.Float64Range(0.3, 0.9).Draw(t, "VMin")), VMax: 1.2,
			FcMin: rapid.Float64Range(0.3, 1).Draw(t, "FcMin"),
			FmMin: rapid.Float64Range(0.3, 0.9).Draw(t, "FmMin"),
			FmMax: rapid.Float64Range(0.9, 1.3).Draw(t, "FmMax"),
		}
		p := drawParams(t)
		o := dvfsmodel.PricedTime(dvfsmodel.Watt(rapid.SampledFrom([]float64{0, 30}).Draw(t, "price")))
		o.DelayPower = rapid.IntRange(0, 2).Draw(t, "delay power")
		limit := math.Inf(1)
		if rapid.Bool().Draw(t, "limited") {
			limit = r.MinTime(p) * rapid.Float64Range(1, 3).Draw(t, "limit over minimum")
		}
		pt, err := r.Optimum(p, o, limit)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Contains(pt.Scaling, 1e-9) {
			t.Fatalf("%+v lies outside %+v", pt.Scaling, r)
		}
		if again := p.At(pt.Scaling); math.Abs(again.Time-pt.Time) > 1e-9*pt.Time ||
			math.Abs(float64(again.Energy-pt.Energy)) > 1e-9*float64(pt.Energy) {
			t.Fatalf("reported %+v, the model says %+v", pt, again)
		}
		const n = 60
		for i := range n + 1 {
			fc := r.FcMin + (r.FcMax()-r.FcMin)*float64(i)/n
			for j := range n + 1 {
				grid := p.At(dvfsmodel.Scaling{
					V: r.Voltage(fc), Fc: fc, Fm: r.FmMin + (r.FmMax-r.FmMin)*float64(j)/n,
				})
				if grid.Time <= limit && o.Cost(grid) < o.Cost(pt)*(1-1e-9) {
					t.Fatalf("grid finds %v at %+v, the optimum costs %v at %+v", o.Cost(grid), grid.Scaling,
						o.Cost(pt), pt.Scaling)
				}
			}
		}
	})
}
