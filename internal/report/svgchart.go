package report

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/epplan/epplan/queue"
)

// Series is one line of a [Chart]: Y over X, broken where Y is NaN.
type Series struct {
	Name string
	X, Y []float64
}

// Chart is lines over the same axes.
type Chart struct {
	Title string
	X, Y  string // what the axes show, with units
	Lines []Series
}

// WriteCharts draws charts below each other in one SVG picture. Lines of the
// same place in their charts have the same colour, which the legend explains by
// the names of the first chart's lines. The picture follows the viewer's choice
// of light or dark.
func WriteCharts(w io.Writer, title string, charts []Chart) error {
	p := &chartPicture{out: bufio.NewWriterSize(w, 1<<16), title: queue.Printable(title)}
	if len(charts) > 0 {
		p.layOutLegend(charts[0].Lines)
	}
	p.open(len(charts))
	for i := range charts {
		p.chart(&charts[i], p.top+float64(i)*panelHeight)
	}
	p.printf("</svg>\n")
	return p.out.Flush()
}

// Lengths in pixels.
const (
	chartWidth  = 900
	panelHeight = 300
	panelTop    = 34 // of the plot in its panel: the title
	panelFoot   = 50 // below the plot: ticks and the axis' title
	panelLeft   = 76
	legendRow   = 20
	keyLength   = 26 // of a line in the legend
	letter      = 6.7
)

// lineColors tell lines apart on light and on dark; from the eleventh on they
// return, dashed.
var lineColors = []string{
	"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#8a8a8a", "#a6761d", "#d62748",
}

const chartStyle = `<style>
text{font-family:system-ui,-apple-system,"Segoe UI","DejaVu Sans",Arial,sans-serif;font-size:12px;fill:#3b4252}
.t{font-size:17px;font-weight:600;fill:#1b1f27}.h{font-size:13px;font-weight:600;fill:#1b1f27}.e{text-anchor:end}.m{text-anchor:middle}
.bg{fill:#fff}.g{stroke:#1b1f27;stroke-opacity:.12}.z{stroke:#1b1f27;stroke-opacity:.5}.l{fill:none;stroke-width:1.8;stroke-linejoin:round}
@media(prefers-color-scheme:dark){text{fill:#c3c9d4}.t,.h{fill:#f1f3f7}.bg{fill:#14171d}.g,.z{stroke:#f1f3f7}}
</style>
`

// chartPicture is charts being drawn. The writer keeps its first error until it
// is flushed.
type chartPicture struct {
	out    *bufio.Writer
	title  string
	legend []legendKey
	top    float64 // of the first panel
}

type legendKey struct {
	name string
	x, y float64
}

func (p *chartPicture) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format, args...) }

// layOutLegend puts the keys into rows.
func (p *chartPicture) layOutLegend(lines []Series) {
	x, y := 20.0, 56.0
	for i := range lines {
		name := shortened(queue.Printable(lines[i].Name), 40)
		wide := keyLength + 8 + letter*float64(utf8.RuneCountInString(name)) + 18
		if x+wide > chartWidth-20 && x > 20 {
			x, y = 20, y+legendRow
		}
		p.legend = append(p.legend, legendKey{name, x, y})
		x += wide
	}
	p.top = y + legendRow
}

func (p *chartPicture) open(panels int) {
	height := p.top + float64(panels)*panelHeight
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%s" viewBox="0 0 %[1]d %[2]s" role="img" aria-label="%[3]s">`+"\n",
		chartWidth, px(height), escape(p.title))
	p.printf("%s<rect class=\"bg\" width=\"100%%\" height=\"100%%\"/>\n", chartStyle)
	p.text(20, 30, "t", p.title)
	for i, key := range p.legend {
		p.printf(`<path class="l" %s d="M%s %sh%d"/>`, lineLook(i), px(key.x), px(key.y-4), keyLength)
		p.text(key.x+keyLength+8, key.y, "", key.name)
	}
}

// lineLook is the colour, and the dashes, of a line.
func lineLook(i int) string {
	look := `stroke="` + lineColors[i%len(lineColors)] + `"`
	if round := i / len(lineColors); round > 0 {
		look += ` stroke-dasharray="` + strconv.Itoa(2+5/round) + ` 3"`
	}
	return look
}

func (p *chartPicture) text(x, y float64, class, text string) {
	p.printf(`<text x="%s" y="%s" class="%s">%s</text>`+"\n", px(x), px(y), class, escape(text))
}

// span is what an axis shows, from one tick to another.
type span struct{ from, to, step float64 }

// overshoot is the part of the distance between ticks, less than a line's width,
// by which values may lie outside.
const overshoot = 0.02

// newSpan covers the values with about as many ticks as are asked for.
func newSpan(ticks int, values func(yield func([]float64))) span {
	low, high := math.Inf(1), math.Inf(-1)
	values(func(some []float64) {
		for _, v := range some {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				low, high = min(low, v), max(high, v)
			}
		}
	})
	if low > high {
		low, high = 0, 1
	}
	if high-low <= 1e-9*max(math.Abs(low), math.Abs(high), 1e-3) {
		low, high = low-0.5, high+0.5
	}
	step := decimalStep((high - low) / float64(ticks))
	return span{step * math.Floor(low/step+overshoot), step * math.Ceil(high/step-overshoot), step}
}

// ticks are the values with a label.
func (s span) ticks() []float64 {
	count := int(math.Round((s.to - s.from) / s.step))
	all := make([]float64, 0, count+1)
	for i := range count + 1 {
		all = append(all, s.from+float64(i)*s.step)
	}
	return all
}

// label is a tick's value with as many decimals as the step has.
func (s span) label(v float64) string {
	decimals := max(0, -int(math.Floor(math.Log10(s.step)+1e-9)))
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Trim(text, "-0.") == "" {
		text = strings.TrimPrefix(text, "-")
	}
	return grouped(text)
}

// chart draws one panel from its upper edge on.
func (p *chartPicture) chart(c *Chart, top float64) {
	across := newSpan(14, func(yield func([]float64)) {
		for i := range c.Lines {
			yield(c.Lines[i].X)
		}
	})
	up := newSpan(6, func(yield func([]float64)) {
		for i := range c.Lines {
			yield(c.Lines[i].Y)
		}
	})
	upper, lower := top+panelTop, top+panelHeight-panelFoot
	right := float64(chartWidth - rightMargin)
	x := func(v float64) float64 { return panelLeft + (v-across.from)/(across.to-across.from)*(right-panelLeft) }
	y := func(v float64) float64 { return lower - (v-up.from)/(up.to-up.from)*(lower-upper) }

	p.text(panelLeft, top+20, "h", c.Title)
	for _, v := range across.ticks() {
		p.printf(`<path class="g" d="M%s %sV%s"/>`, px(x(v)), px(upper), px(lower+5))
		p.text(x(v), lower+19, "m", across.label(v))
	}
	for _, v := range up.ticks() {
		class := "g"
		if math.Abs(v) < up.step/1e6 {
			class = "z"
		}
		p.printf(`<path class="%s" d="M%s %sH%s"/>`, class, px(panelLeft-5), px(y(v)), px(right))
		p.text(panelLeft-10, y(v)+4, "e", up.label(v))
	}
	p.text((panelLeft+right)/2, lower+38, "m", c.X)
	p.printf(`<text transform="translate(18 %s) rotate(-90)" class="m">%s</text>`+"\n", px((upper+lower)/2), escape(c.Y))
	for i := range c.Lines {
		p.printf(`<path class="l" %s d="%s"><title>%s</title></path>`+"\n", lineLook(i), linePath(&c.Lines[i], x, y), escape(c.Lines[i].Name))
	}
}

// linePath is a line, in pieces where there are gaps.
func linePath(s *Series, x, y func(float64) float64) string {
	var b strings.Builder
	command := "M"
	for i, v := range s.Y {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			command = "M"
			continue
		}
		b.WriteString(command + px(x(s.X[i])) + " " + px(y(v)))
		command = "L"
	}
	return b.String()
}
