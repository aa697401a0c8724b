package report

import (
	"math"
	"slices"

	"github.com/epplan/epplan/internal/report/page"
)

// ChartFigure returns a chart as a part of a page, with some of its numbers in a
// table. The id has to be unique on its page.
func ChartFigure(id, caption string, c *Chart) *page.Figure {
	return &page.Figure{
		ID: "figure-" + id, Caption: caption, SVG: InlineCharts(id, c.Title, []Chart{*c}), Numbers: c.table(),
	}
}

// maxChartRows is how many points of a chart its table has about.
const maxChartRows = 20

// table has the lines at some of the first one's X.
func (c *Chart) table() *page.Table {
	columns := make([]Column, 1+len(c.Lines))
	columns[0].Head = c.X
	for i := range c.Lines {
		columns[1+i].Head = c.Lines[i].Name
	}
	var xs []float64
	if len(c.Lines) > 0 {
		xs = c.Lines[0].X
	}
	every := max(1, len(xs)/maxChartRows)
	t := NewTable(columns, len(xs)/every, func(i int) []Value {
		x := xs[(i+1)*every-1]
		row := append(make([]Value, 0, len(columns)), roundSignificant(x))
		for k := range c.Lines {
			row = append(row, c.Lines[k].valueNear(x))
		}
		return row
	})
	return t.Page(c.Title+": "+c.Y, "", -1)
}

// valueNear returns the line's value at the X that is next to one.
func (s *Series) valueNear(x float64) Value {
	best, apart := -1, math.Inf(1)
	for i := range s.X {
		if d := math.Abs(s.X[i] - x); d < apart {
			best, apart = i, d
		}
	}
	if best < 0 {
		return Value{}
	}
	return roundSignificant(s.Y[best])
}

// roundSignificant returns a number rounded to five digits.
func roundSignificant(x float64) Value {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return Number(x)
	}
	const digits = 5
	unit := math.Pow(10, digits-1-math.Floor(math.Log10(math.Abs(x))))
	return Number(math.Round(x*unit) / unit)
}

// Estimate is a value with its bounds.
type Estimate struct {
	Name             string
	Note             string // below the name
	Value, Low, High float64
	Believed         bool // nothing measured stands behind it: drawn hollow, without bounds
}

// EstimateFigure returns a dot for each value on a line from its lower to its upper
// bound, as a part of a page. The values are in the unit; the id has to be unique
// on the page.
func EstimateFigure(id, caption, what string, unit Unit, all []Estimate) *page.Figure {
	const desc = "A dot for each value, on a line from its lower to its upper bound."
	svg := drawEstimates(id, desc, what, unit, all)
	t := NewTable([]Column{
		{Head: "of", Left: true},
		{Head: what, Unit: unit, Group: 1},
		{Head: "lower bound", Unit: unit, Group: 1},
		{Head: "upper bound", Unit: unit, Group: 1},
		{Head: "from", Left: true},
	}, len(all), func(i int) []Value {
		e := &all[i]
		row := []Value{Text(e.Name), Number(e.Value), Number(e.Low), Number(e.High), Text(e.Note)}
		if e.Believed {
			row[2], row[3] = Value{}, Value{}
		}
		return row
	})
	return &page.Figure{ID: "figure-" + id, Caption: caption, SVG: svg, Numbers: t.Page(what, "", -1)}
}

// estimateAxis covers estimates with their bounds, and 0.
func estimateAxis(what string, unit Unit, all []Estimate, ticks int) Axis {
	values := []float64{0}
	for i := range all {
		values = append(values, all[i].Value)
		if !all[i].Believed {
			values = append(values, all[i].Low, all[i].High)
		}
	}
	return TightAxis(what, unit, values, ticks)
}

// TradeOffPoint is one of several choices with two costs: less of both is better.
type TradeOffPoint struct {
	Name string
	X, Y float64
	Late bool // it breaks a promise: drawn hollow, and never among the best
}

// TradeOffFigure is choices by two costs, with a line through those that no
// other one beats in both, as a part of a page; nil where there are none. Y is energy, joules.
func TradeOffFigure(id, caption, what string, unit Unit, spots []TradeOffPoint) *page.Figure {
	spots = slices.DeleteFunc(slices.Clone(spots), func(s TradeOffPoint) bool {
		return math.IsNaN(s.X + s.Y)
	})
	if len(spots) == 0 {
		return nil
	}
	t := &tradeOff{"Energy by " + what, what, unit, spots}
	front := t.paretoFront()
	numbers := NewTable([]Column{
		{Head: "choice", Left: true},
		{Head: what, Unit: unit},
		{Head: "energy", Unit: Joules, Digits: 5},
		{Head: "beaten", Left: true},
	}, len(spots), func(i int) []Value {
		beaten := "in both"
		switch {
		case spots[i].Late:
			beaten = "misses deadlines or jobs"
		case slices.Contains(front, i):
			beaten = "by none in both"
		}
		return []Value{Text(spots[i].Name), Number(spots[i].X), Number(spots[i].Y), Text(beaten)}
	})
	return &page.Figure{
		ID: "figure-" + id, Caption: caption, SVG: t.draw(id), Numbers: numbers.Page("Energy by "+what, "", -1),
	}
}
