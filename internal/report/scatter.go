package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/epplan/epplan/queue"
)

// tradeOff is choices and what they cost.
type tradeOff struct {
	title string
	x, y  side
	spots []Spot
}

// newTradeOff is a picture of choices whose axes suit them.
func newTradeOff(title, what string, unit Unit, spots []Spot) *tradeOff {
	xs, ys := make([]float64, len(spots)), make([]float64, len(spots))
	for i, s := range spots {
		xs[i], ys[i] = s.X, s.Y
	}
	t := &tradeOff{title: title, spots: spots}
	t.y = within("energy", Joules, ys, 6)
	t.x = within(what, unit, xs, 8)
	return t
}

// within is an axis that covers some values and no more.
func within(what string, unit Unit, values []float64, ticks int) side {
	_, largest := extent(values)
	scale := CommonScale(unit, significantDigits, largest)
	if scale.Symbol() == "h:mm:ss" {
		scale = Scale{unit: unit, symbol: "h", factor: 3600}
	}
	shown := make([]float64, len(values))
	for i, v := range values {
		shown[i] = v / scale.factor
	}
	s := newSpan(ticks, func(yield func([]float64)) { yield(shown) })
	return side{
		span:  span{s.from * scale.factor, s.to * scale.factor, s.step * scale.factor},
		label: func(v float64) string { return s.label(v / scale.factor) }, title: what + ", " + scale.Symbol(),
	}
}

// front is the choices that no other one beats in both costs, by rising x; of those
// that cost the same all.
func (t *tradeOff) front() []int {
	var order []int
	for i, s := range t.spots {
		if !s.Late {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(t.spots[a].X, t.spots[b].X), cmp.Compare(t.spots[a].Y, t.spots[b].Y))
	})
	last := Spot{X: math.Inf(1), Y: math.Inf(1)} // of the front
	return slices.DeleteFunc(order, func(i int) bool {
		s := &t.spots[i]
		same := math.Abs(s.X-last.X) <= rounding*last.X && math.Abs(s.Y-last.Y) <= rounding*last.Y
		if !same && s.Y >= last.Y*(1-rounding) {
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
func (t *tradeOff) draw(w io.Writer, id string) error {
	c := newCanvas(w, id)
	f := frame{x: t.x, y: t.y, left: courseLeft, right: scatterWidth - rightMargin, upper: 20, lower: scatterHeight - courseFoot}
	front := t.front()
	c.open(anyPicture, scatterWidth, scatterHeight, t.title, t.inWords(front))
	c.axes(&f)
	path := ""
	for n, i := range front {
		if n == 0 {
			path = "M" + px(f.px(t.spots[i].X)) + " " + px(f.upper) + "V" + px(f.py(t.spots[i].Y))
			continue
		}
		path += "H" + px(f.px(t.spots[i].X)) + "V" + px(f.py(t.spots[i].Y))
	}
	if path != "" {
		c.printf(`<path class="front" d="%sH%s"/>`+"\n", path, px(f.right))
	}
	for i := range t.spots {
		s := &t.spots[i]
		class := "dot a8"
		switch {
		case s.Late:
			class = "late"
		case slices.Contains(front, i):
			class = "dot a1"
		}
		c.printf(`<circle class="%s" cx="%s" cy="%s" r="6"><title>%s</title></circle>`+"\n", class, px(f.px(s.X)), px(f.py(s.Y)), escape(s.Name))
	}
	t.label(&c, &f, front)
	return c.close()
}

// inWords says which choices nobody beats.
func (t *tradeOff) inWords(front []int) string {
	names := make([]string, len(front))
	for n, i := range front {
		names[n] = t.spots[i].Name
	}
	return fmt.Sprintf("Each dot is one of %d choices, the further to the lower left the better. No other one beats in both: %s.",
		len(t.spots), strings.Join(names, ", "))
}

// box is room that is taken.
type box struct{ left, top, right, bottom float64 }

func (b box) meets(o box) bool {
	return b.left < o.right && o.left < b.right && b.top < o.bottom && o.top < b.bottom
}

// label names the dots, those of the front first, as far as there is room.
func (t *tradeOff) label(c *canvas, f *frame, front []int) {
	var taken []box
	for i := range t.spots {
		x, y := f.px(t.spots[i].X), f.py(t.spots[i].Y)
		taken = append(taken, box{x - 7, y - 7, x + 7, y + 7})
	}
	order := slices.Clone(front)
	for i := range t.spots {
		if !slices.Contains(front, i) {
			order = append(order, i)
		}
	}
	for _, i := range order {
		name := shortened(queue.Printable(t.spots[i].Name), 30)
		wide := letter * float64(utf8.RuneCountInString(name))
		x, y := f.px(t.spots[i].X), f.py(t.spots[i].Y)
		for _, at := range [][2]float64{{11, 4}, {-11 - wide, 4}, {-wide / 2, -11}, {-wide / 2, 20}, {9, -8}, {9, 17}, {-9 - wide, -8}, {-9 - wide, 17}} {
			b := box{x + at[0], y + at[1] - 10, x + at[0] + wide, y + at[1] + 3}
			free := b.left > f.left && b.right < f.right+rightMargin && b.top > 0 && b.bottom < f.lower
			if free && !slices.ContainsFunc(taken, b.meets) {
				taken = append(taken, b)
				c.text(b.left, y+at[1], "k halo", name)
				break
			}
		}
	}
}
