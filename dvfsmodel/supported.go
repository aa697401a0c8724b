package dvfsmodel

// Supported lists the settings among which a response chooses, without times and
// powers: those of its table, or an even grid over its range. A workload without a
// model has none, and neither has a response of a kind that this package doesn't know.
func Supported(r Response) []Point {
	switch r := r.(type) {
	case *Continuous:
		return r.Range.grid()
	case *Discrete:
		return r.Table.points()
	case *Frontier:
		return r.table.points()
	case *rescaled:
		return Supported(r.of)
	}
	return nil
}

// PointAt is a response at a setting, of which times and powers don't matter. It is
// false where the setting can't be set, or nobody knows what it would do.
func PointAt(r Response, at Point) (Point, bool) {
	if _, fixed := r.(*Fixed); fixed || !r.Allows(at.Setting) {
		return Point{}, false
	}
	return evaluate(r.Model(), at), true
}

// points lists every supported setting, by memory clock and then core clock, ascending.
func (t *Table) points() []Point {
	all := make([]Point, 0, t.Len())
	for i := range t.rows {
		row := &t.rows[i]
		for j := range row.core {
			all = append(all, Point{Setting: row.setting(j), Core: row.core[j].mhz, Mem: row.mem})
		}
	}
	return all
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
			all = append(all, Point{Setting: Setting{V: r.Voltage(fc), Fc: fc, Fm: along(r.FmMin, r.FmMax, i, gridMem)}})
		}
	}
	return all
}
