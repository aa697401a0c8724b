package report

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/epplan/epplan/queue"
)

// SVGOptions change the picture of a plan; nil means the defaults. Lengths are
// pixels.
type SVGOptions struct {
	// Width of the picture. 0 means 1200; less than 1000 counts as 1000.
	Width float64
	// MaxHeight bounds the lanes. 0 means 1600; less than 100 counts as 100.
	MaxHeight float64
}

// WriteSVG draws a plan: time to the right, a lane for each GPU of the nodes
// that are on, a bar for each job in the colour of its core clock, stripes
// where a node is on and the GPU idle, nothing where it is off. Jobs that end
// late carry a mark at their deadline. Each bar has its details as a tooltip.
//
// Where there are more GPUs than pixels the first ones are drawn; neighbours
// too short to be seen become one bar.
func WriteSVG(w io.Writer, r *Result, opts *SVGOptions) error {
	p := newPicture(w, r, opts)
	p.open()
	p.heading()
	p.idle()
	p.axis()
	p.bars()
	p.laneLabels()
	p.printf("</svg>\n")
	return p.out.Flush()
}

// picture is a plan being drawn. The writer keeps its first error until it is
// flushed.
type picture struct {
	out     *bufio.Writer
	result  *Result
	summary Summary
	grid
}

const (
	defaultWidth, minWidth   = 1200, 1000
	defaultHeight, minHeight = 1600, 100
	headingHeight            = 112 // title, totals and legend
	topAxisHeight            = 18  // above tall lanes
	axisHeight               = 44
	rightMargin              = 28
)

func newPicture(w io.Writer, r *Result, opts *SVGOptions) *picture {
	width, height := 0.0, 0.0
	if opts != nil {
		width, height = opts.Width, opts.MaxHeight
	}
	width, height = orDefault(width, defaultWidth, minWidth), orDefault(height, defaultHeight, minHeight)
	return &picture{
		out: bufio.NewWriterSize(w, 1<<16), result: r, summary: Summarise(r),
		grid: layOutGrid(r, width, height),
	}
}

func orDefault(given, usual, least float64) float64 {
	if !(given > 0) {
		return usual
	}
	return max(given, least)
}

func (p *picture) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format, args...) }

// style is the whole look: the picture needs nothing from outside.
const style = `<style>
text{font-family:system-ui,-apple-system,"Segoe UI","DejaVu Sans",Arial,sans-serif;font-size:11px;fill:#3b4252}
.t{font-size:17px;font-weight:600;fill:#1b1f27}.s{font-size:13px}.bad{fill:#b3001b;font-weight:600}
.e{text-anchor:end}.m{text-anchor:middle}.g{stroke:#1b1f27;stroke-opacity:.12}.f{fill:#7b8494}
.b{stroke:#fff;stroke-width:.5}.n{shape-rendering:crispEdges}.l{stroke:#b3001b;stroke-width:1.5}.d{fill:#1b1f27}.w{fill:#fff}
.d,.w{pointer-events:none}.b:hover,.n:hover{stroke:#1b1f27;stroke-width:1}
</style>
`

// open writes the head of the file, and what is drawn with.
func (p *picture) open() {
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %[1]s %[2]s" role="img" aria-label="%[3]s">`+"\n",
		px(p.width), px(p.height()), escape(p.title()))
	p.printf("%s", style)
	p.printf(`<defs><pattern id="idle" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
		`<rect width="6" height="6" fill="#f1f2f5"/><rect width="1.6" height="6" fill="#cdd2da"/></pattern>`)
	p.printf(`<linearGradient id="clock">`)
	for _, s := range clockColors {
		p.printf(`<stop offset="%s" stop-color="%s"/>`, px((s.clock-slowest)/(fastest-slowest)), s.color.hex())
	}
	p.printf("</linearGradient></defs>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n")
}

// heading is the title, the totals and the legend.
func (p *picture) heading() {
	p.text(20, 30, "t", p.title())
	p.text(20, 52, "s", p.totals())
	if trouble := p.trouble(); trouble != "" {
		p.text(p.width-rightMargin, 30, "s bad e", trouble)
	}
	p.legend(20, 78)
}

func (p *picture) title() string {
	s := &p.summary
	return fmt.Sprintf("%s: %s on %s, %s", shortened(queue.Printable(s.Policy), 50), counting(s.JobsTotal-s.Infeasible, "job", "jobs"),
		counting(s.NodesUsed, "node", "nodes"), counting(s.GPUsUsed, "GPU", "GPUs"))
}

// totals is energy, saving, gap and end in one line.
func (p *picture) totals() string {
	s := &p.summary
	scale := CommonScale(Joules, 5, float64(s.Energy))
	parts := []string{scale.With(float64(s.Energy)) + " (" + FormatKWh(s.Energy) + ")"}
	if s.Baseline > 0 {
		parts = append(parts, FormatPercent(s.Saving())+" saved of "+scale.With(float64(s.Baseline))+" at default clocks")
	}
	if s.Bound > 0 {
		parts = append(parts, FormatPercent(s.Gap())+" above the bound")
	}
	parts = append(parts, "last job ends at "+FormatSeconds(s.End))
	if s.Misses+s.Infeasible == 0 {
		parts = append(parts, "all deadlines met")
	}
	return strings.Join(parts, "  ·  ")
}

// trouble is what the reader must not overlook.
func (p *picture) trouble() string {
	var parts []string
	if n := p.summary.Misses; n > 0 {
		parts = append(parts, counting(n, "job late", "jobs late"))
	}
	if n := p.summary.Infeasible; n > 0 {
		parts = append(parts, counting(n, "job", "jobs")+" can't be planned")
	}
	if p.hidden > 0 {
		parts = append(parts, FormatCount(p.lanes)+" of "+FormatCount(p.lanes+p.hidden)+" GPUs drawn")
	}
	return strings.Join(parts, ", ")
}

// legend explains colours and patterns, in a row from x, with y in its middle.
func (p *picture) legend(x, y float64) {
	const bar = 180
	p.text(x, y+4, "", "core clock")
	x += 64
	p.printf(`<rect x="%s" y="%s" width="%d" height="10" fill="url(#clock)"/>`+"\n", px(x), px(y-5), bar)
	for _, s := range clockColors {
		label := strconv.FormatFloat(s.clock, 'g', 3, 64) + "×"
		if s.clock == 1 {
			label = "default"
		}
		p.text(x+bar*(s.clock-slowest)/(fastest-slowest), y+17, "m f", label)
	}
	x += bar + 40
	p.printf(`<rect x="%s" y="%s" width="22" height="12" fill="url(#idle)" stroke="#cdd2da"/>`+"\n", px(x), px(y-6))
	p.text(x+28, y+4, "", "on, idle")
	x += 90
	p.printf(`<rect x="%s" y="%s" width="22" height="12" fill="#fff" stroke="#cdd2da"/>`+"\n", px(x), px(y-6))
	p.text(x+28, y+4, "", "off")
	x += 66
	if p.summary.Misses > 0 {
		p.printf(`<rect class="l" x="%s" y="%s" width="22" height="12" fill="%s"/>`, px(x), px(y-6), clockColor(1).hex())
		p.deadline(x+10, y-6, 12)
		p.text(x+28, y+4, "", "late: the line is the deadline")
		x += 215
		p.overdue(x, y-6, 12)
		p.text(x+12, y+4, "", "deadline before the start")
	}
}

// text writes one line of text.
func (p *picture) text(x, y float64, class, text string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	p.printf(`<text x="%s" y="%s"%s>%s</text>`+"\n", px(x), px(y), class, escape(text))
}

// px is a length with two decimals at most.
func px(v float64) string {
	text := strconv.FormatFloat(v, 'f', 2, 64)
	text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	if text == "-0" {
		return "0"
	}
	return text
}

// escape makes a text safe inside an element or an attribute.
func escape(text string) string {
	var out strings.Builder
	// A strings.Builder takes everything.
	_ = xml.EscapeText(&out, []byte(queue.Printable(text)))
	return out.String()
}
