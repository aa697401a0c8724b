package planreport

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/queue"
)

// SVGOptions change the picture of a plan; nil means the defaults. Lengths are
// pixels.
type SVGOptions struct {
	// MaxHeight bounds the lanes. 0 means 1600.
	MaxHeight float64
	// MaxBars is how many bars there are about at most: with more, neighbours
	// that are short are joined. 0 means 20,000.
	MaxBars int
	// ID makes the picture a part of a page: what its ids begin with. It is
	// without title and background then, and has the page's colours.
	ID string
}

// WriteSVG draws a plan: time to the right, a lane for each GPU of the nodes
// that are on, a bar for each job in the colour of its core clock, stripes
// where a node is on and the GPU idle, nothing where it is off. Jobs that end
// late carry a mark at their deadline. Each bar has its details as a tooltip.
//
// Where there are more GPUs than pixels the first ones are drawn; neighbours
// too short to be seen become one bar.
func WriteSVG(w io.Writer, r *Result, opts *SVGOptions) error {
	if opts == nil {
		opts = &SVGOptions{}
	}
	picture, _, _ := drawGantt(r, opts)
	_, err := io.WriteString(w, string(picture))
	return err
}

// ganttChart is a plan being drawn.
type ganttChart struct {
	*report.Canvas
	result  *Result
	summary Summary
	maxBars int
	grid    laneGrid
}

func (p *ganttChart) draw() template.HTML {
	p.begin()
	p.heading()
	p.drawIdle()
	p.drawTimeAxis()
	p.drawBars()
	p.laneLabels()
	return p.Close()
}

const (
	ganttWidth       = 1200
	defaultMaxHeight = 1600
	headingHeight    = 112 // title, totals and legend
	legendHeight     = 46  // legend alone

	narrowLegendHeight = 106
	narrowBars         = 1500
	topAxisHeight      = 18 // above tall lanes
	axisHeight         = 44
)

// planPictureClass is the class of pictures of plans: text is small.
const planPictureClass = report.PictureClass + " plan"

// drawGantt draws a plan, and returns how many GPUs have lanes and how many haven't.
func drawGantt(r *Result, opts *SVGOptions) (picture template.HTML, lanes, hidden int) {
	picture = report.DrawForScreens(opts.ID, func(c *report.Canvas) template.HTML {
		p := newGanttChart(c, r, opts)
		lanes, hidden = p.grid.lanes, p.grid.hidden
		return p.draw()
	})
	return picture, lanes, hidden
}

func newGanttChart(c *report.Canvas, r *Result, opts *SVGOptions) *ganttChart {
	top, maxBars := float64(headingHeight), cmp.Or(opts.MaxBars, defaultMaxBars)
	if c.InPage() {
		top = c.Either(legendHeight, narrowLegendHeight) // the page says the rest
	}
	if c.Narrow() {
		maxBars = min(maxBars, narrowBars)
	}
	return &ganttChart{
		Canvas: c, result: r, summary: Summarise(r), maxBars: maxBars,
		grid: layOutGrid(r, c.Either(ganttWidth, report.NarrowWidth), top,
			cmp.Or(opts.MaxHeight, defaultMaxHeight)),
	}
}

// begin writes the head of the file, and what is drawn with.
func (p *ganttChart) begin() {
	p.Open(planPictureClass, p.grid.width, p.grid.height(), p.title(), p.description())
	p.Printf(
		`<defs><pattern id="%s" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">`+
			`<rect class="ib" width="6" height="6"/><rect class="il" width="1.6" height="6"/></pattern>`,
		p.ScopedID("idle"),
	)
	p.Printf(`<linearGradient id="%s">`, p.ScopedID("clock"))
	for _, s := range clockColors {
		p.Printf(`<stop offset="%s" stop-color="%s"/>`, report.Px((s.clock-slowest)/(fastest-slowest)),
			s.color.hex())
	}
	p.Printf("</linearGradient></defs>\n")
}

func (p *ganttChart) description() string {
	text := "Time goes to the right. Each GPU has a lane, each job a bar in the colour of its core clock: " +
		"blue is slower than the default, sand the default, red faster. " +
		"Stripes are GPUs that are on and idle. " + p.totalsText()
	if trouble := p.warningText(); trouble != "" {
		text += ". " + trouble
	}
	return text
}

// heading is the title, the totals and the legend.
func (p *ganttChart) heading() {
	if p.InPage() {
		p.legend(4, 12)
		return
	}
	p.Text(20, 30, "t", p.title())
	p.Text(20, 52, "s", p.totalsText())
	if trouble := p.warningText(); trouble != "" {
		p.Text(ganttWidth-report.RightMargin, 30, "s bad e", trouble)
	}
	p.legend(20, 78)
}

func (p *ganttChart) title() string {
	s := &p.summary
	return fmt.Sprintf("%s: %s on %s, %s", report.Truncate(queue.Printable(s.Policy), 50),
		report.Plural(s.JobsTotal-s.Infeasible, "job"),
		report.Plural(s.NodesUsed, "node"), report.Plural(s.GPUsUsed, "GPU"))
}

// totalsText is energy, saving, gap and end in one line.
func (p *ganttChart) totalsText() string {
	s := &p.summary
	parts := []string{energyText(s.Energy)}
	if s.Baseline > 0 {
		parts = append(parts, report.FormatPercent(s.Saving())+" saved of "+
			energyScale(s.Energy).FormatWithUnit(float64(s.Baseline))+" at default clocks")
	}
	if s.ObjectiveBound > 0 {
		part, side := s.boundDistance()
		parts = append(parts, part+" "+side+" the bound")
	}
	parts = append(parts, "last job ends at "+report.FormatSeconds(s.End))
	if s.PastDue+s.Infeasible == 0 {
		parts = append(parts, "all deadlines met")
	}
	return strings.Join(parts, "  ·  ")
}

// warningText returns what the reader must not overlook.
func (p *ganttChart) warningText() string {
	var parts []string
	if n := p.summary.Misses; n > 0 {
		parts = append(parts, report.Plural(n, "job late", "jobs late"))
	}
	if n := p.summary.PastDue - p.summary.Misses; n > 0 {
		parts = append(parts, report.Plural(n, "job past due", "jobs past due"))
	}
	if n := p.summary.Infeasible; n > 0 {
		parts = append(parts, report.Plural(n, "job")+" can't be planned")
	}
	if p.grid.hidden > 0 {
		parts = append(parts, report.FormatCount(p.grid.lanes)+" of "+
			report.FormatCount(p.grid.lanes+p.grid.hidden)+" GPUs drawn")
	}
	return strings.Join(parts, ", ")
}

// legend explains colours and patterns, in a row from x, with y in its middle.
func (p *ganttChart) legend(x, y float64) {
	const bar = 180
	p.Text(x, y+4, "", "core clock")
	x += 64
	p.Printf(`<rect x="%s" y="%s" width="%d" height="10" fill="url(#%s)"/>`+"\n", report.Px(x), report.Px(y-5), bar,
		p.ScopedID("clock"))
	for _, s := range clockColors {
		label := strconv.FormatFloat(s.clock, 'g', 3, 64) + "×"
		if s.clock == 1 {
			label = "default"
		}
		p.Text(x+bar*(s.clock-slowest)/(fastest-slowest), y+17, "m f", label)
	}
	left := x - 64
	next := func(wide float64, newRow bool) {
		if x += wide; p.Narrow() && newRow {
			x, y = left, y+22
		}
	}
	if next(bar+40, true); p.Narrow() {
		y += 12 // below the clocks
	}
	p.Printf(`<rect x="%s" y="%s" width="22" height="12" fill="url(#%s)" class="io"/>`+"\n", report.Px(x), report.Px(y-6),
		p.ScopedID("idle"))
	p.Text(x+28, y+4, "", "on, idle")
	next(90, false)
	p.Printf(`<rect x="%s" y="%s" width="22" height="12" class="off"/>`+"\n", report.Px(x), report.Px(y-6))
	p.Text(x+28, y+4, "", "off")
	next(66, true)
	if p.summary.Misses > 0 {
		p.Printf(`<rect class="l" x="%s" y="%s" width="22" height="12" fill="%s"/>`, report.Px(x), report.Px(y-6),
			clockColor(1).hex())
		p.drawDeadline(x+10, y-6, 12)
		p.Text(x+28, y+4, "", "late: the line is the deadline")
		next(215, true)
		p.drawOverdue(x, y-6, 12)
		p.Text(x+12, y+4, "", "deadline before the start")
	}
}
