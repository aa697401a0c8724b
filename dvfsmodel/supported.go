package dvfsmodel

import (
	"cmp"
	"math"
	"slices"
)

// SupportedPoints lists the settings among which a response chooses, without times and
// powers: those of its table, or an even grid over its range. A workload without a
// model has none, and neither has a response of a kind that this package doesn't know.
func SupportedPoints(r Response) []Point {
	switch r := r.(type) {
	case *Continuous:
		return r.Range.grid()
	case *Discrete:
		return r.Table.Points()
	case *Frontier:
		all := r.table.Points()
		for _, limit := range r.caps {
			for _, pt := range r.table.Points() {
				pt.Cap = limit
				all = append(all, pt)
			}
		}
		return all
	case *rescaled:
		return SupportedPoints(r.original)
	}
	return nil
}

// Undominated returns the settings of a response than which none is both faster and takes less energy, from
// the fastest to the one of the least energy. A workload without a model has none.
func Undominated(r Response) []Point {
	all := SupportedPoints(r)
	for i := range all {
		if pt, ok := PointAt(r, all[i]); ok {
			all[i] = pt
		}
	}
	slices.SortStableFunc(all, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Energy, b.Energy))
	})
	var best []Point
	for _, pt := range all {
		if n := len(best); pt.Energy > 0 && (n == 0 || pt.Energy < best[n-1].Energy) {
			best = append(best, pt)
		}
	}
	return best
}

// HasModel reports whether a response says anything of clocks other than the default ones.
func HasModel(r Response) bool {
	_, fixed := r.(*Fixed)
	return !fixed
}

// MaxTime returns the longest run time, seconds, of a response that can take exactly as long as
// one likes, from its shortest time on ([ForTime]); false for all others.
func MaxTime(r Response) (seconds float64, ok bool) {
	c, ok := r.(*Continuous)
	if !ok {
		return 0, false
	}
	return c.Range.MaxTime(c.Params), true
}

// ForTime returns the cheapest point of a response that takes exactly so many seconds, however
// time is priced; false where there is none.
func ForTime(r Response, seconds float64) (Point, bool) {
	c, ok := r.(*Continuous)
	if !ok {
		return Point{}, false
	}
	return c.Range.ForTime(c.Params, seconds)
}

// MaxDiscount returns the most that can be taken off the power with the optimum still known to be
// the true one, watts: what no clock changes, by the paper's model. Without a
// model there is nothing to choose, and +Inf will do; a [Frontier] has only the points
// that are cheapest at some price of time.
func MaxDiscount(r Response) Watt {
	switch r := r.(type) {
	case *Continuous:
		return r.Params.staticPower()
	case *Discrete:
		return r.Params.staticPower()
	case *Fixed:
		return Watt(math.Inf(1))
	}
	return 0
}

// LeastCosts sets, for each objective, a lower bound of the cost of all points of a response within the
// limit, seconds. The objectives are sums of energy and time whose price of a second may be negative. A
// longer run may then cost less, so points count that others beat in both time and energy. LeastCosts
// returns false for a kind of response that this package doesn't know.
func LeastCosts(costs []float64, r Response, goals []Objective, limit float64) bool {
	for n := range costs {
		costs[n] = math.Inf(1)
	}
	consider := func(pt Point) {
		if MeetsLimit(pt.Time, limit) {
			for n, o := range goals {
				costs[n] = min(costs[n], o.Cost(pt))
			}
		}
	}
	consider(r.Default())
	if c, ok := r.(*Continuous); ok {
		longest := min(limit, c.Range.MaxTime(c.Params))
		for n, o := range goals {
			known := o
			known.TimeWeight = max(o.TimeWeight, -o.EnergyWeight*float64(c.Params.staticPower()))
			if pt, err := c.Optimum(known, limit); err == nil {
				costs[n] = min(costs[n], known.Cost(pt)-(known.TimeWeight-o.TimeWeight)*longest)
			}
		}
		return true
	}
	all := SupportedPoints(r)
	for _, pt := range all {
		if at, ok := PointAt(r, pt); ok {
			consider(at)
		}
	}
	return len(all) > 0 || !HasModel(r)
}

// PointAtScaling returns a response's model at a normalised setting, be it allowed or not.
func PointAtScaling(r Response, s Scaling) Point {
	if c, ok := r.(*Continuous); ok {
		return c.Params.At(s) // asked often
	}
	return evaluate(r.Model(), Point{Scaling: s})
}

// PointAt returns a response at a setting, whose times and powers don't matter: at its
// clocks where there is a table of them, at its normalised setting elsewhere, and under its cap. It
// is false where that can't be set, or nobody knows what it would do.
func PointAt(r Response, at Point) (Point, bool) {
	limit := at.Cap
	if at = settingOf(r, at); at.Scaling == (Scaling{}) || limit != 0 && !slices.Contains(Caps(r), limit) {
		return Point{}, false
	}
	at.Cap = limit
	model, ok := modelUnder(r.Model(), limit)
	return evaluate(model, at), ok
}

// Caps returns the power caps below the default limit among which a response chooses; none where it
// chooses clocks only.
func Caps(r Response) []Watt {
	switch r := r.(type) {
	case *Frontier:
		return r.caps
	case *rescaled:
		return Caps(r.original)
	}
	return nil
}

// ModelAt returns what predicts time and power at a setting's cap: [Response.Model] where that is 0.
// It is false where the response knows nothing of caps.
func ModelAt(r Response, at *Point) (Model, bool) { return modelUnder(r.Model(), at.Cap) }

// settingOf returns a setting as a response has it; zero: it doesn't have it.
func settingOf(r Response, at Point) Point {
	switch r := r.(type) {
	case *Fixed:
		return Point{}
	case *Discrete:
		return r.Table.settingOf(at, r.At)
	case *Frontier:
		return r.table.settingOf(at, r.at)
	case *rescaled:
		return settingOf(r.original, at)
	}
	if !r.Allows(at.Scaling) {
		return Point{}
	}
	return Point{Scaling: at.Scaling}
}

// settingOf returns the setting at clocks of the table, or at those of normal; zero: the
// table hasn't got it.
func (t *Table) settingOf(at, normal Point) Point {
	if at.Core == normal.Core && at.Mem == normal.Mem {
		return Point{Scaling: normal.Scaling, Core: at.Core, Mem: at.Mem}
	}
	s, _ := t.Contains(at.Core, at.Mem)
	return Point{Scaling: s, Core: at.Core, Mem: at.Mem}
}

// The clocks of a grid over a range.
const (
	gridCore = 32
	gridMem  = 8
)

// grid is settings of a range, each at its cheapest voltage, by memory clock and then
// core clock, ascending.
func (r *Range) grid() []Point {
	along := func(low, high float64, i, steps int) float64 {
		return low + (high-low)*float64(i)/float64(steps-1)
	}
	all := make([]Point, 0, gridCore*gridMem)
	for i := range gridMem {
		for j := range gridCore {
			fc := along(r.FcMin, r.FcMax(), j, gridCore)
			all = append(all,
				Point{Scaling: Scaling{V: r.Voltage(fc), Fc: fc, Fm: along(r.FmMin, r.FmMax, i, gridMem)}})
		}
	}
	return all
}
