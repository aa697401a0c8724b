package consolidate

import (
	"context"
	"math"
)

// coefficient is a coefficient of a column.
type coefficient struct {
	row   int32
	value float32
}

func coef(row, value int) coefficient {
	return coefficient{row: int32(row), value: float32(value)}
}

// simplex is a linear program, minimised over x >= 0 with equality rows, that
// columns are added to while it is being solved: a revised simplex method with
// an explicit inverse of the basis. Right-hand sides are disturbed a little so
// that it makes progress at each step.
type simplex struct {
	rows    int
	right   []float64
	entries []coefficient // of all columns
	from    []int         // by column: its first entry; one more at the end
	cost    []float64
	basis   []int // by row: a column
	place   []int // by column: its row in the basis; -1: not in it
	inverse []float64
	value   []float64 // of the basic columns, by row
	dual    []float64 // by row
	pivots  int       // since the inverse was made

	change []float64
	skip   []bool // columns that may not enter
}

// newSimplex returns a program of rows with artificial columns, one for each row, in
// the basis, given what those cost: more than the row's dual value can be.
// Right-hand sides are not negative.
func newSimplex(right, artificial []float64) *simplex {
	m := len(right)
	l := &simplex{
		rows: m, right: right, from: []int{0},
		basis: make([]int, m), inverse: make([]float64, m*m), value: make([]float64, m),
		dual: make([]float64, m), change: make([]float64, m),
	}
	for r := range m {
		l.add([]coefficient{coef(r, 1)}, artificial[r])
		l.skip[r] = true
		l.basis[r], l.place[r] = r, r
		l.inverse[r*m+r] = 1
		l.value[r] = right[r]
		l.dual[r] = artificial[r]
	}
	return l
}

func (l *simplex) add(column []coefficient, cost float64) int {
	l.entries = append(l.entries, column...)
	l.from = append(l.from, len(l.entries))
	l.cost = append(l.cost, cost)
	l.place = append(l.place, -1)
	l.skip = append(l.skip, false)
	return len(l.cost) - 1
}

func (l *simplex) column(j int) []coefficient { return l.entries[l.from[j]:l.from[j+1]] }

// reducedCost returns what a column would save by unit, negative where it would.
func (l *simplex) reducedCost(j int) float64 {
	d := l.cost[j]
	for _, e := range l.column(j) {
		d -= l.dual[e.row] * float64(e.value)
	}
	return d
}

// solve goes to the least cost for the columns that there are; false where it
// takes more than so many pivots, or the context ends.
func (l *simplex) solve(ctx context.Context, limit int) bool {
	const enough = 1e-7
	for pivot := range limit {
		if pivot%256 == 255 && ctx.Err() != nil {
			return false
		}
		enter, least := -1, -enough
		for j := range l.cost {
			if l.skip[j] || l.place[j] >= 0 {
				continue
			}
			if d := l.reducedCost(j); d < least {
				enter, least = j, d
			}
		}
		if enter < 0 {
			return true
		}
		if !l.pivot(enter, least) {
			l.skip[enter] = true // numerically without effect
		}
	}
	return false
}

// pivot takes a column into the basis; false where none can leave for it.
func (l *simplex) pivot(enter int, reduced float64) bool {
	m := l.rows
	clear(l.change)
	for _, e := range l.column(enter) {
		for r := range m {
			l.change[r] += l.inverse[r*m+int(e.row)] * float64(e.value)
		}
	}
	leave, ratio := -1, math.Inf(1)
	for r, c := range l.change {
		if c <= 1e-9 {
			continue
		}
		q := max(0, l.value[r]) / c
		if q < ratio-1e-12 || q < ratio+1e-12 && c > l.change[leave] {
			leave, ratio = r, q
		}
	}
	if leave < 0 {
		return false
	}
	l.swap(enter, leave, reduced)
	if l.pivots++; l.pivots >= 400 {
		l.refresh()
	}
	return true
}

// swap exchanges a column of the basis.
func (l *simplex) swap(enter, leave int, reduced float64) {
	m := l.rows
	row := l.inverse[leave*m : leave*m+m]
	by := 1 / l.change[leave]
	for k := range row {
		row[k] *= by
		l.dual[k] += reduced * row[k]
	}
	l.value[leave] *= by
	for r, c := range l.change {
		if r == leave || c == 0 {
			continue
		}
		other := l.inverse[r*m : r*m+m]
		for k, x := range row {
			other[k] -= c * x
		}
		l.value[r] -= c * l.value[leave]
	}
	l.place[l.basis[leave]] = -1
	l.basis[leave], l.place[enter] = enter, leave
}

// refresh makes the inverse, the values and the duals anew (Gauss and Jordan,
// with row pivoting).
func (l *simplex) refresh() {
	m := l.rows
	l.pivots = 0
	dense := make([]float64, m*m)
	for r, j := range l.basis {
		for _, e := range l.column(j) {
			dense[int(e.row)*m+r] = float64(e.value)
		}
	}
	inverse := make([]float64, m*m)
	for r := range m {
		inverse[r*m+r] = 1
	}
	for c := range m {
		if !eliminate(dense, inverse, m, c) {
			return // keeps the one that it has
		}
	}
	l.inverse = inverse
	clear(l.dual)
	for r := range m {
		l.value[r] = 0
		cost := l.cost[l.basis[r]]
		for k, x := range inverse[r*m : r*m+m] {
			l.value[r] += x * l.right[k]
			l.dual[k] += cost * x
		}
	}
}

// eliminate clears a column of a matrix but for a one on the diagonal, and does
// the same to another one.
func eliminate(a, b []float64, m, c int) bool {
	best := c
	for r := c + 1; r < m; r++ {
		if math.Abs(a[r*m+c]) > math.Abs(a[best*m+c]) {
			best = r
		}
	}
	if math.Abs(a[best*m+c]) < 1e-11 {
		return false
	}
	if best != c {
		for k := range m {
			a[c*m+k], a[best*m+k] = a[best*m+k], a[c*m+k]
			b[c*m+k], b[best*m+k] = b[best*m+k], b[c*m+k]
		}
	}
	by := 1 / a[c*m+c]
	for k := range m {
		a[c*m+k] *= by
		b[c*m+k] *= by
	}
	for r := range m {
		f := a[r*m+c]
		if r == c || f == 0 {
			continue
		}
		for k := range m {
			a[r*m+k] -= f * a[c*m+k]
			b[r*m+k] -= f * b[c*m+k]
		}
	}
	return true
}
