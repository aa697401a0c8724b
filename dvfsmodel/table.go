package dvfsmodel

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
)

// Table is the discrete set of settings that a GPU model supports. It is
// immutable and safe for concurrent use.
type Table struct {
	base Setting
	rows []tableRow // one per memory clock, ascending
}

// tableRow is one memory clock with its core clocks, ascending.
type tableRow struct {
	mem  MHz
	fm   float64
	core []coreStep
	// convex tells that V²·fc, V² and 1/fc are convex in fc over this row, so that
	// the energy at a fixed memory clock has no local minimum but the global one.
	convex bool
}

// NewTable builds a table from supported clock pairs. Voltage gives the
// normalised core voltage for a normalised core clock and must not fall as the
// clock rises; nil means the paper's curve, [VoltageFor].
func NewTable(base Setting, pairs []Setting, voltage func(fc float64) Volt) (*Table, error) {
	if !(base.Core > 0) || !(base.Mem > 0) {
		return nil, fmt.Errorf("base clocks %v/%v MHz, want positive numbers", base.Core, base.Mem)
	}
	if len(pairs) == 0 {
		return nil, errors.New("no supported clocks")
	}
	if voltage == nil {
		voltage = VoltageFor
	}
	sorted := slices.Clone(pairs)
	slices.SortFunc(sorted, func(a, b Setting) int {
		return cmp.Or(cmp.Compare(a.Mem, b.Mem), cmp.Compare(a.Core, b.Core))
	})
	sorted = slices.Compact(sorted)
	t := &Table{base: base}
	for _, pair := range sorted {
		if err := t.add(pair, voltage); err != nil {
			return nil, err
		}
	}
	for i := range t.rows {
		t.rows[i].convex = isConvex(t.rows[i].core)
	}
	return t, nil
}

// add appends a clock pair; they come by rising memory and then core clock.
func (t *Table) add(pair Setting, voltage func(float64) Volt) error {
	for _, clock := range []MHz{pair.Core, pair.Mem} {
		if !(clock > 0) || math.IsInf(float64(clock), 0) {
			return fmt.Errorf("clock %v MHz, want a positive number", float64(clock))
		}
	}
	fc := float64(pair.Core / t.base.Core)
	v := voltage(fc)
	if !(v > 0) || math.IsInf(float64(v), 0) {
		return fmt.Errorf("voltage %v at %v MHz, want a positive number", float64(v), float64(pair.Core))
	}
	if len(t.rows) == 0 || t.rows[len(t.rows)-1].mem != pair.Mem {
		t.rows = append(t.rows, tableRow{mem: pair.Mem, fm: float64(pair.Mem / t.base.Mem)})
	}
	row := &t.rows[len(t.rows)-1]
	if n := len(row.core); n > 0 && row.core[n-1].v > v {
		return fmt.Errorf("voltage falls from %v to %v at %v MHz, want it not to fall as the clock rises",
			float64(row.core[n-1].v), float64(v), float64(pair.Core))
	}
	row.core = append(row.core, coreStep{
		w: float64(v) * float64(v) * fc, inv: 1 / fc, mhz: pair.Core, fc: fc, v: v,
	})
	return nil
}

// isConvex checks divided differences of two of the three terms that the energy at a
// fixed memory clock is a non-negative combination of: V²·fc and V². The third,
// 1/fc, is convex anyway.
func isConvex(steps []coreStep) bool {
	terms := [...]func(coreStep) float64{
		func(s coreStep) float64 { return s.w },
		func(s coreStep) float64 { return float64(s.v) * float64(s.v) },
	}
	for _, term := range terms {
		last := math.Inf(-1)
		for i := 1; i < len(steps); i++ {
			slope := (term(steps[i]) - term(steps[i-1])) / (steps[i].fc - steps[i-1].fc)
			if slope < last {
				return false
			}
			last = slope
		}
	}
	return true
}

// within returns the table with some of its pairs.
func (t *Table) within(keeps func(Setting) bool) *Table {
	narrowed := &Table{base: t.base}
	for i := range t.rows {
		row := t.rows[i]
		row.core = slices.DeleteFunc(slices.Clone(row.core), func(c coreStep) bool {
			return !keeps(Setting{Core: c.mhz, Mem: row.mem})
		})
		if len(row.core) > 0 {
			row.convex = isConvex(row.core)
			narrowed.rows = append(narrowed.rows, row)
		}
	}
	return narrowed
}

// Base returns the clocks that count as (1, 1).
func (t *Table) Base() Setting { return t.base }

// Len returns the number of supported settings.
func (t *Table) Len() int {
	n := 0
	for i := range t.rows {
		n += len(t.rows[i].core)
	}
	return n
}

// Points lists every supported setting, without times and powers, by memory clock and
// then core clock, ascending.
func (t *Table) Points() []Point {
	all := make([]Point, 0, t.Len())
	for i := range t.rows {
		for j := range t.rows[i].core {
			all = append(all, t.rows[i].at(j))
		}
	}
	return all
}

// at returns the row's j-th core clock.
func (row *tableRow) at(j int) Point {
	c := &row.core[j]
	return Point{Scaling: Scaling{V: c.v, Fc: c.fc, Fm: row.fm}, Core: c.mhz, Mem: row.mem}
}

// Clocks converts a normalised setting to MHz.
func (t *Table) Clocks(s Scaling) (core, mem MHz) {
	return t.base.Core * MHz(s.Fc), t.base.Mem * MHz(s.Fm)
}

// Contains reports whether the clock pair is supported, and at which normalised
// setting.
func (t *Table) Contains(core, mem MHz) (Scaling, bool) {
	i, ok := slices.BinarySearchFunc(t.rows, mem, func(r tableRow, m MHz) int {
		return cmp.Compare(r.mem, m)
	})
	if !ok {
		return Scaling{}, false
	}
	row := &t.rows[i]
	j, ok := slices.BinarySearchFunc(row.core, core, func(c coreStep, m MHz) int {
		return cmp.Compare(c.mhz, m)
	})
	if !ok {
		return Scaling{}, false
	}
	return row.at(j).Scaling, true
}

// Nearest returns the supported setting closest to the given clocks: the nearest
// memory clock first, then the nearest core clock there.
func (t *Table) Nearest(core, mem MHz) Point {
	row := &t.rows[nearest(len(t.rows), func(i int) float64 { return float64(t.rows[i].mem - mem) })]
	j := nearest(len(row.core), func(j int) float64 { return float64(row.core[j].mhz - core) })
	return row.at(j)
}

// nearest returns the first of n indexes with the least difference in size.
func nearest(n int, diff func(int) float64) int {
	best := 0
	for i := range n {
		if math.Abs(diff(i)) < math.Abs(diff(best)) {
			best = i
		}
	}
	return best
}

// MinTime returns the shortest run time over the table, seconds.
func (t *Table) MinTime(p Params) float64 {
	best := math.Inf(1)
	for i := range t.rows {
		row := &t.rows[i]
		top := row.core[len(row.core)-1]
		best = min(best, p.Time(top.fc, row.fm))
	}
	return best
}

// Optimum returns the supported setting that costs least under the objective with a
// run time of at most limit seconds (+Inf: no limit); among equal costs the
// one with the lower clocks. It equals an exhaustive search. It returns an
// [InfeasibleError] when the limit is below [Table.MinTime].
func (t *Table) Optimum(p Params, o Objective, limit float64) (Point, error) {
	price := o.timePrice()
	if o.DelayPower != 0 || math.IsInf(price, 1) {
		return t.OptimumOf(p, o, limit)
	}
	allowed := limit * (1 + limitSlack)
	best, bestRow, bestCore := math.Inf(1), -1, 0
	for i := range t.rows {
		row := &t.rows[i]
		line := p.line(row.fm, price)
		if j, cost := row.cheapest(&line, allowed); cost < best {
			best, bestRow, bestCore = cost, i, j
		}
	}
	if bestRow < 0 {
		return Point{}, &InfeasibleError{Limit: limit, MinTime: t.MinTime(p)}
	}
	at := t.rows[bestRow].at(bestCore)
	at.Time, at.Power = p.Time(at.Scaling.Fc, at.Scaling.Fm), p.Power(at.Scaling)
	at.Energy = at.Power.Over(at.Time)
	return at, nil
}

// cheapest returns the cheapest core clock of the row within the allowed time, and
// its cost; +Inf when there is none.
func (row *tableRow) cheapest(l *energyLine, allowed float64) (int, float64) {
	core := row.core
	first := 0
	if l.time+l.core*core[0].inv > allowed {
		first = sort.Search(len(core), func(j int) bool { return l.time+l.core*core[j].inv <= allowed })
		if first == len(core) {
			return 0, math.Inf(1)
		}
	}
	if !row.convex {
		return row.cheapestByScan(l, first)
	}
	// The first step that isn't worth taking upwards ends the descent.
	lo, hi := first, len(core)-1
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if l.cost(&core[mid+1]) < l.cost(&core[mid]) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, l.cost(&core[lo])
}

// cheapestByScan is cheapest by looking at every step from the first allowed one on.
func (row *tableRow) cheapestByScan(l *energyLine, first int) (int, float64) {
	best, cost := first, l.cost(&row.core[first])
	for j := first + 1; j < len(row.core); j++ {
		if c := l.cost(&row.core[j]); c < cost {
			best, cost = j, c
		}
	}
	return best, cost
}

// OptimumOf is [Table.Optimum] for any model, by exhaustive search.
func (t *Table) OptimumOf(m Model, o Objective, limit float64) (Point, error) {
	best, minTime := math.Inf(1), math.Inf(1)
	var at Point
	for i := range t.rows {
		for j := range t.rows[i].core {
			pt := t.pointAt(m, i, j)
			minTime = min(minTime, pt.Time)
			if cost := o.Cost(pt); MeetsLimit(pt.Time, limit) && cost < best {
				best, at = cost, pt
			}
		}
	}
	if math.IsInf(best, 1) {
		return Point{}, &InfeasibleError{Limit: limit, MinTime: minTime}
	}
	return at, nil
}

// pointAt evaluates a model at the j-th core clock of the i-th row.
func (t *Table) pointAt(m Model, i, j int) Point { return evaluate(m, t.rows[i].at(j)) }
