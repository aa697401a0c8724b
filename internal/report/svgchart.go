package report

import (
	"fmt"
	"html/template"
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
	// Low and High are the edges of a band around it; nil: none.
	Low, High []float64
	Mark      Mark
	Color     int      // one of the ten; 0: by its place in the chart
	Notes     []string // what each dot is, for the pointer; nil: the name
}

// Chart is lines over the same axes.
type Chart struct {
	Title string
	X, Y  string // what the axes show, with units
	Lines []Series
	Zero  bool // the vertical axis shows 0, too
	Half  bool // it stands in half of a page's width; of all charts of a picture, as the first one says
}

// WriteCharts draws charts below each other in one SVG picture. Lines of the
// same place in their charts have the same colour, which the legend explains by
// the names of the first chart's lines. The picture follows the viewer's choice
// of light or dark.
func WriteCharts(w io.Writer, title string, charts []Chart) error {
	_, err := io.WriteString(w, string(InlineCharts("", title, charts)))
	return err
}

// InlineCharts draws charts as [WriteCharts] does, as a picture that is part of
// a page: with the page's colours, and ids that begin with the given one. The
// title is for those who don't see it; the page shows its own.
func InlineCharts(id, title string, charts []Chart) template.HTML {
	return DrawForScreens(id, func(c *Canvas) template.HTML {
		p := &chartPicture{Canvas: c, title: title, width: c.Either(chartWidth, NarrowWidth), panel: panelHeight}
		if len(charts) > 0 {
			if charts[0].Half {
				p.width, p.panel = c.Either(halfChartWidth, NarrowWidth), halfPanelHeight
			}
			p.layOutLegend(charts[0].Lines)
		}
		p.begin(charts)
		for i := range charts {
			p.chart(&charts[i], p.top+float64(i)*p.panel)
		}
		return p.Close()
	})
}

// Lengths in pixels.
const (
	chartWidth = 900

	halfChartWidth  = 600
	halfPanelHeight = 250

	panelHeight = 300
	panelTop    = 34 // of the plot in its panel: the title
	panelFoot   = 50 // below the plot: ticks and the axis' title
	panelLeft   = 18 // left of the title of the vertical axis
	legendRow   = 20
	keyLength   = 26 // of a line in the legend
	letterWidth = 6.7
	tickRoom    = 64 // of a horizontal axis
)

// lineColors is how many colours tell lines apart; from the next line on they
// return, dashed.
const lineColors = 10

// chartPicture is charts being drawn.
type chartPicture struct {
	*Canvas
	title  string
	width  float64
	panel  float64 // height of one
	legend []legendKey
	top    float64 // of the first panel
}

type legendKey struct {
	name string
	x, y float64
}

// layOutLegend puts the keys into rows.
func (p *chartPicture) layOutLegend(lines []Series) {
	x, y := 20.0, 56.0
	if p.InPage() {
		y = 20 // the page has the title
	}
	for i := range lines {
		name := Truncate(queue.Printable(lines[i].Name), 40)
		wide := keyLength + 8 + letterWidth*float64(utf8.RuneCountInString(name)) + 18
		if x+wide > p.width-20 && x > 20 {
			x, y = 20, y+legendRow
		}
		p.legend = append(p.legend, legendKey{name, x, y})
		x += wide
	}
	p.top = y + legendRow
}

func (p *chartPicture) begin(charts []Chart) {
	p.Open(PictureClass, p.width, p.top+float64(len(charts))*p.panel, p.title, chartsText(charts))
	if !p.InPage() {
		p.Text(20, 30, "t", p.title)
	}
	for i, key := range p.legend {
		p.key(&charts[0].Lines[i], i, key)
		p.Text(key.x+keyLength+8, key.y, "k", key.name)
	}
}

// chartsText says what axes and lines there are.
func chartsText(charts []Chart) string {
	parts := make([]string, len(charts))
	for i := range charts {
		c := &charts[i]
		names := make([]string, len(c.Lines))
		for j := range names {
			names[j] = c.Lines[j].Name
		}
		parts[i] = fmt.Sprintf("%s: %s over %s, a line for each of %s.", c.Title, c.Y, c.X,
			strings.Join(names, ", "))
	}
	return strings.Join(parts, " ")
}

// lineStyle returns the colour, and the dashes, of a line.
func lineStyle(i int) string {
	look := `class="ln c` + strconv.Itoa(1+i%lineColors) + `"`
	if round := i / lineColors; round > 0 {
		look += ` stroke-dasharray="` + strconv.Itoa(2+5/round) + ` 3"`
	}
	return look
}

// axisRange is what an axis shows, from one tick to another.
type axisRange struct{ from, to, Step float64 }

// axisOvershoot is the part of the distance between ticks, less than a line's width,
// by which values may lie outside.
const axisOvershoot = 0.02

// newAxisRange covers the values with about as many ticks as are asked for.
func newAxisRange(ticks int, values func(yield func([]float64))) axisRange {
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
		around := 0.5 // of 0
		if low != 0 {
			around = math.Abs(low) / 10
		}
		low, high = low-around, high+around
	}
	step := decimalStep((high - low) / float64(ticks))
	return axisRange{
		step * math.Floor(low/step+axisOvershoot), step * math.Ceil(high/step-axisOvershoot), step,
	}
}

// label returns a tick's value with as many decimals as the step has.
func (s axisRange) label(v float64) string {
	decimals := max(0, -int(math.Floor(math.Log10(s.Step)+1e-9)))
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Trim(text, "-0.") == "" {
		text = strings.TrimPrefix(text, "-")
	}
	return GroupThousands(text)
}

// chart draws one panel from its upper edge on.
func (p *chartPicture) chart(c *Chart, top float64) {
	across := newAxisRange(int(p.width/tickRoom), func(yield func([]float64)) {
		for i := range c.Lines {
			yield(c.Lines[i].X)
		}
	})
	up := newAxisRange(6, func(yield func([]float64)) {
		for i := range c.Lines {
			yield(c.Lines[i].Y)
			yield(c.Lines[i].Low)
			yield(c.Lines[i].High)
		}
		if c.Zero {
			yield([]float64{0})
		}
	})
	f := Frame{
		X: plainAxis(across, c.X), Y: plainAxis(up, c.Y), Right: p.width - RightMargin,
		Upper: top + panelTop, Lower: top + p.panel - panelFoot,
	}
	f.Left = f.Y.titleOffset() + panelLeft
	p.Text(f.Left, top+20, "h", c.Title)
	p.Axes(&f)
	for i := range c.Lines {
		p.band(&c.Lines[i], i, &f)
	}
	for i := range c.Lines {
		p.series(&c.Lines[i], i, &f)
	}
}

// LinePath returns a line, in pieces where there are gaps.
func LinePath(s *Series, x, y func(float64) float64) string {
	var b strings.Builder
	command := "M"
	for i, v := range s.Y {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			command = "M"
			continue
		}
		b.WriteString(command + Px(x(s.X[i])) + " " + Px(y(v)))
		command = "L"
	}
	return b.String()
}
