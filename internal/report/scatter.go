package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/epplan/epplan/queue"
)

// tradeOff is choices and what they cost.
type tradeOff struct {
	title  string
	x      string
	unit   Unit
	points []TradeOffPoint
}

// TightAxis returns an axis that covers some values and no more.
func TightAxis(what string, unit Unit, values []float64, ticks int) Axis {
	_, largest := magnitudes(values)
	scale := CommonScale(unit, SignificantDigits, largest)
	if scale.Symbol() == "h:mm:ss" {
		scale = Scale{unit: unit, symbol: "h", factor: 3600}
	}
	shown := make([]float64, len(values))
	for i, v := range values {
		shown[i] = v / scale.factor
	}
	s := newAxisRange(ticks, func(yield func([]float64)) { yield(shown) })
	return Axis{
		axisRange: axisRange{s.from * scale.factor, s.to * scale.factor, s.Step * scale.factor},
		Label:     func(v float64) string { return s.label(v / scale.factor) },
		Title:     what + ", " + scale.Symbol(),
	}
}

// paretoFront returns the choices that no other one beats in both costs, by rising x; of those
// that cost the same all.
func (t *tradeOff) paretoFront() []int {
	var order []int
	for i, s := range t.points {
		if !s.Late {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(t.points[a].X, t.points[b].X), cmp.Compare(t.points[a].Y, t.points[b].Y))
	})
	last := TradeOffPoint{X: math.Inf(1), Y: math.Inf(1)} // of the front
	return slices.DeleteFunc(order, func(i int) bool {
		s := &t.points[i]
		same := math.Abs(s.X-last.X) <= RelativeTolerance*last.X &&
			math.Abs(s.Y-last.Y) <= RelativeTolerance*last.Y
		if !same && s.Y >= last.Y*(1-RelativeTolerance) {
			return true
		}
		last = *s
		return false
	})
}

const (
	scatterWidth  = 900
	scatterHeight = 440
)

// draw draws the choices, and a line through those that none beats.
func (t *tradeOff) draw(id string) template.HTML {
	return DrawForScreens(id, t.drawOn)
}

func (t *tradeOff) drawOn(c *Canvas) template.HTML {
	xs, ys := make([]float64, len(t.points)), make([]float64, len(t.points))
	for i, s := range t.points {
		xs[i], ys[i] = s.X, s.Y
	}
	width, height := c.Either(scatterWidth, NarrowWidth), c.Either(scatterHeight, 340)
	f := Frame{
		X: TightAxis(t.x, t.unit, xs, int(c.Either(8, 3))), Y: TightAxis("energy", Joules, ys, 6),
		Left: LeftMargin, Right: width - RightMargin, Upper: 20, Lower: height - FootMargin,
	}
	front := t.paretoFront()
	c.Open(PictureClass, width, height, t.title, t.frontText(front))
	c.Axes(&f)
	path := ""
	for n, i := range front {
		if n == 0 {
			path = "M" + Px(f.Px(t.points[i].X)) + " " + Px(f.Upper) + "V" + Px(f.Py(t.points[i].Y))
			continue
		}
		path += "H" + Px(f.Px(t.points[i].X)) + "V" + Px(f.Py(t.points[i].Y))
	}
	if path != "" {
		c.Printf(`<path class="front" d="%sH%s"/>`+"\n", path, Px(f.Right))
	}
	for i := range t.points {
		s := &t.points[i]
		class := "dot a8"
		switch {
		case s.Late:
			class = "late"
		case slices.Contains(front, i):
			class = "dot a1"
		}
		c.Printf(`<circle class="%s" cx="%s" cy="%s" r="6"><title>%s</title></circle>`+"\n", class,
			Px(f.Px(s.X)), Px(f.Py(s.Y)), Escape(s.Name))
	}
	t.label(c, &f, front)
	return c.Close()
}

// frontText says which choices nobody beats.
func (t *tradeOff) frontText(front []int) string {
	names := make([]string, len(front))
	for n, i := range front {
		names[n] = t.points[i].Name
	}
	return fmt.Sprintf("Each dot is one of %d choices, the further to the lower left the better. No other "+
		"one beats in both: %s.",
		len(t.points), strings.Join(names, ", "))
}

// labelBox is room that is taken.
type labelBox struct{ left, top, right, bottom float64 }

func (b labelBox) overlaps(o labelBox) bool {
	return b.left < o.right && o.left < b.right && b.top < o.bottom && o.top < b.bottom
}

// label names the dots, those of the front first, as far as there is room.
func (t *tradeOff) label(c *Canvas, f *Frame, front []int) {
	var taken []labelBox
	for i := range t.points {
		x, y := f.Px(t.points[i].X), f.Py(t.points[i].Y)
		taken = append(taken, labelBox{x - 7, y - 7, x + 7, y + 7})
	}
	order := slices.Clone(front)
	for i := range t.points {
		if !slices.Contains(front, i) {
			order = append(order, i)
		}
	}
	for _, i := range order {
		name := Truncate(queue.Printable(t.points[i].Name), 30)
		wide := letterWidth * float64(utf8.RuneCountInString(name))
		x, y := f.Px(t.points[i].X), f.Py(t.points[i].Y)
		for _, at := range [][2]float64{
			{11, 4},
			{-11 - wide, 4},
			{-wide / 2, -11},
			{-wide / 2, 20},
			{9, -8},
			{9, 17},
			{-9 - wide, -8},
			{-9 - wide, 17},
		} {
			b := labelBox{x + at[0], y + at[1] - 10, x + at[0] + wide, y + at[1] + 3}
			free := b.left > f.Left && b.right < f.Right+RightMargin && b.top > 0 && b.bottom < f.Lower
			if free && !slices.ContainsFunc(taken, b.overlaps) {
				taken = append(taken, b)
				c.Text(b.left, y+at[1], "k halo", name)
				break
			}
		}
	}
}
