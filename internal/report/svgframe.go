package report

import (
	"math"
	"unicode/utf8"
)

// Axis is one axis of a plot: what it shows from where to where, and how ticks
// are labelled.
type Axis struct {
	axisRange
	Label func(v float64) string
	Title string
}

// What the axes and their labels take beside a plot, pixels.
const (
	LeftMargin  = 84
	RightMargin = 28
	FootMargin  = 50
)

// Frame is the axes of a plot and where they lie, pixels.
type Frame struct {
	X, Y                      Axis
	Left, Right, Upper, Lower float64
}

// Px returns where a value of the horizontal axis lies, pixels.
func (f *Frame) Px(v float64) float64 {
	return f.Left + (v-f.X.from)/(f.X.to-f.X.from)*(f.Right-f.Left)
}

// Py returns where a value of the vertical axis lies, pixels.
func (f *Frame) Py(v float64) float64 {
	return f.Lower - (v-f.Y.from)/(f.Y.to-f.Y.from)*(f.Lower-f.Upper)
}

func plainAxis(s axisRange, title string) Axis {
	return Axis{axisRange: s, Label: s.label, Title: title}
}

// TimeAxis returns a time axis from 0 on.
func TimeAxis(end, pixels float64) Axis {
	r := newTimeTicks(end, end/pixels*tickDistance)
	return Axis{axisRange: axisRange{0, end, r.step}, Label: r.label, Title: "time, " + r.unit}
}

// UnitAxis returns an axis of numbers with a unit, from 0 on, in the scale of the
// largest.
func UnitAxis(what string, scale Scale, largest float64, ticks int) Axis {
	s := newAxisRange(ticks, func(yield func([]float64)) { yield([]float64{0, largest / scale.factor}) })
	return Axis{
		axisRange: axisRange{s.from * scale.factor, s.to * scale.factor, s.Step * scale.factor},
		Label:     func(v float64) string { return s.label(v / scale.factor) },
		Title:     what + ", " + scale.Symbol(),
	}
}

// ticks returns the values with a label: from a multiple of the step on.
func (s axisRange) ticks() []float64 {
	first := math.Ceil(s.from/s.Step - axisOvershoot)
	count := int(math.Floor((s.to-first*s.Step)/s.Step + axisOvershoot))
	all := make([]float64, 0, count+1)
	for i := range count + 1 {
		all = append(all, (first+float64(i))*s.Step)
	}
	return all
}

// Axes draws grid, ticks and titles.
func (c *Canvas) Axes(f *Frame) {
	for _, v := range f.X.ticks() {
		c.Printf(`<path class="g" d="M%s %sV%s"/>`, Px(f.Px(v)), Px(f.Upper), Px(f.Lower+5))
		c.Text(f.Px(v), f.Lower+19, "m", f.X.Label(v))
	}
	for _, v := range f.Y.ticks() {
		class := "g"
		if math.Abs(v) < f.Y.Step/1e6 {
			class = "z"
		}
		c.Printf(`<path class="%s" d="M%s %sH%s"/>`, class, Px(f.Left-5), Px(f.Py(v)), Px(f.Right))
		c.Text(f.Left-10, f.Py(v)+4, "e", f.Y.Label(v))
	}
	c.Text((f.Left+f.Right)/2, f.Lower+38, "m", f.X.Title)
	c.Printf(`<text transform="translate(%s %s) rotate(-90)" class="m">%s</text>`+"\n",
		Px(f.Left-f.Y.titleOffset()), Px((f.Upper+f.Lower)/2), Escape(f.Y.Title))
}

// titleOffset returns how far from the plot the title of a vertical axis stands, beyond its
// labels, pixels.
func (s *Axis) titleOffset() float64 {
	const least, between = 58, 17
	widest := 0
	for _, v := range s.ticks() {
		widest = max(widest, utf8.RuneCountInString(s.Label(v)))
	}
	return max(least, between+letterWidth*float64(widest))
}
