package report

import (
	"math"
	"unicode/utf8"
)

// plotAxis is one axis of a plot: what it shows from where to where, and how ticks
// are labelled.
type plotAxis struct {
	axisRange
	label func(v float64) string
	title string
}

// plotFrame is the axes of a plot and where they lie, pixels.
type plotFrame struct {
	x, y                      plotAxis
	left, right, upper, lower float64
}

func (f *plotFrame) px(v float64) float64 {
	return f.left + (v-f.x.from)/(f.x.to-f.x.from)*(f.right-f.left)
}

func (f *plotFrame) py(v float64) float64 {
	return f.lower - (v-f.y.from)/(f.y.to-f.y.from)*(f.lower-f.upper)
}

// plainAxis is an axis with plain numbers.
func plainAxis(s axisRange, title string) plotAxis {
	return plotAxis{axisRange: s, label: s.label, title: title}
}

// timeAxis is a time axis from 0 on.
func timeAxis(end, pixels float64) plotAxis {
	r := newTimeTicks(end, end/pixels*tickDistance)
	return plotAxis{axisRange: axisRange{0, end, r.step}, label: r.label, title: "time, " + r.unit}
}

// unitAxis is an axis of numbers with a unit, from 0 on, in the scale of the
// largest.
func unitAxis(what string, scale Scale, largest float64, ticks int) plotAxis {
	s := newAxisRange(ticks, func(yield func([]float64)) { yield([]float64{0, largest / scale.factor}) })
	return plotAxis{
		axisRange: axisRange{s.from * scale.factor, s.to * scale.factor, s.step * scale.factor},
		label:     func(v float64) string { return s.label(v / scale.factor) },
		title:     what + ", " + scale.Symbol(),
	}
}

// ticks are the values with a label: from a multiple of the step on.
func (s axisRange) ticks() []float64 {
	first := math.Ceil(s.from/s.step - axisOvershoot)
	count := int(math.Floor((s.to-first*s.step)/s.step + axisOvershoot))
	all := make([]float64, 0, count+1)
	for i := range count + 1 {
		all = append(all, (first+float64(i))*s.step)
	}
	return all
}

// axes draws grid, ticks and titles.
func (c *canvas) axes(f *plotFrame) {
	for _, v := range f.x.ticks() {
		c.printf(`<path class="g" d="M%s %sV%s"/>`, px(f.px(v)), px(f.upper), px(f.lower+5))
		c.text(f.px(v), f.lower+19, "m", f.x.label(v))
	}
	for _, v := range f.y.ticks() {
		class := "g"
		if math.Abs(v) < f.y.step/1e6 {
			class = "z"
		}
		c.printf(`<path class="%s" d="M%s %sH%s"/>`, class, px(f.left-5), px(f.py(v)), px(f.right))
		c.text(f.left-10, f.py(v)+4, "e", f.y.label(v))
	}
	c.text((f.left+f.right)/2, f.lower+38, "m", f.x.title)
	c.printf(`<text transform="translate(%s %s) rotate(-90)" class="m">%s</text>`+"\n",
		px(f.left-f.y.titleOffset()), px((f.upper+f.lower)/2), escape(f.y.title))
}

// titleOffset is how far from the plot the title of a vertical axis stands, beyond its
// labels, pixels.
func (s *plotAxis) titleOffset() float64 {
	const least, between = 58, 17
	widest := 0
	for _, v := range s.ticks() {
		widest = max(widest, utf8.RuneCountInString(s.label(v)))
	}
	return max(least, between+letterWidth*float64(widest))
}
