package planreport

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/epplan/epplan/internal/report"
)

// laneGrid says where lanes and times lie in a picture.
type laneGrid struct {
	width  float64 // of the picture
	left   float64 // of the lanes
	top    float64
	lane   float64 // height of a lane
	gap    float64 // between two nodes
	end    float64 // seconds that the width of the lanes stands for
	groups []laneGroup
	lanes  int // drawn
	hidden int // not drawn for want of room
}

// laneGroup is the lanes of one node.
type laneGroup struct {
	node, gpus int
	y          float64
}

// maxLaneHeight is the height of a lane where there is room enough.
const maxLaneHeight = 22

// layOutGrid gives a lane to each GPU of each node that is ever on, as far as
// the height reaches.
func layOutGrid(r *Result, width, top, height float64) laneGrid {
	g := laneGrid{width: width, top: top, end: lastSecond(r)}
	all := 0
	for node := range r.Plan.Nodes {
		if n := &r.Plan.Nodes[node]; len(n.On) > 0 {
			gpus := r.Problem.Cluster.Classes[n.Class].GPUs
			g.groups = append(g.groups, laneGroup{node: node, gpus: gpus})
			all += gpus
		}
	}
	g.fit(all, height)
	if g.hasTopAxis(all) {
		g.top += topAxisHeight
	}
	y := g.top
	for i := range g.groups {
		below := y + g.lane*float64(g.groups[i].gpus)
		if below > g.top+height+1e-6 && i > 0 {
			g.groups = g.groups[:i]
			break
		}
		g.groups[i].y, y = y, below+g.gap
		g.lanes += g.groups[i].gpus
	}
	g.hidden = all - g.lanes
	g.left = 24 + 6.6*float64(g.labelLength(r))
	return g
}

// lastSecond returns the end of all that is drawn, and never 0.
func lastSecond(r *Result) float64 {
	end := r.Plan.Ledger.End
	for _, a := range r.eachPlanned {
		end = max(end, a.End)
	}
	if !(end > 0) {
		return 1
	}
	return end
}

// fit chooses the heights of lanes and gaps.
func (g *laneGrid) fit(lanes int, height float64) {
	g.lane = maxLaneHeight
	if lanes == 0 {
		return
	}
	nodes := float64(len(g.groups))
	for _, gap := range [...]float64{5, 2, 1, 0} {
		g.gap = gap
		g.lane = min(maxLaneHeight, (height-gap*(nodes-1))/float64(lanes))
		if g.lane >= 2*gap {
			break
		}
	}
	if g.lane < minLabelHeight {
		g.lane = max(1, math.Floor(g.lane)) // whole pixels: no blurred edges
	}
}

// hasTopAxis reports whether so many lanes have ticks above them too.
func (g *laneGrid) hasTopAxis(lanes int) bool {
	return g.lane*float64(lanes)+g.gap*float64(len(g.groups)) > 600
}

// inset returns the part of a lane above and below its bars.
func (g *laneGrid) inset() (above, below float64) {
	switch {
	case g.lane >= minLabelHeight:
		return 1, 1
	case g.lane >= 4:
		return 0, 1
	}
	return 0, 0
}

// labelLength returns how many characters the labels of the lanes take.
func (g *laneGrid) labelLength(r *Result) int {
	longest := 4
	for _, group := range g.groups {
		longest = max(longest, utf8.RuneCountInString(g.nodeLabel(r, group.node)))
	}
	if g.gpuLabels() {
		longest += 4
	}
	return longest
}

// nodeLabel returns the name of a node beside its lanes.
func (g *laneGrid) nodeLabel(r *Result, node int) string {
	if len(r.Problem.Cluster.Classes) == 1 {
		return "node " + strconv.Itoa(node)
	}
	return report.Truncate(r.nodeName(node), 20)
}

// minLabelHeight is the least height at which a lane has text of its own.
const minLabelHeight = 8

// gpuLabels reports whether each GPU has a label.
func (g *laneGrid) gpuLabels() bool {
	if g.lane < minLabelHeight {
		return false
	}
	for _, group := range g.groups {
		if group.gpus > 1 {
			return true
		}
	}
	return false
}

func (g *laneGrid) plotWidth() float64                    { return g.width - g.left - report.RightMargin }
func (g *laneGrid) x(t float64) float64                   { return g.left + t/g.end*g.plotWidth() }
func (g *laneGrid) height() float64                       { return g.bottom() + axisHeight }
func (g *laneGrid) perPixel() float64                     { return g.end / g.plotWidth() }
func (l *laneGroup) laneTop(g *laneGrid, gpu int) float64 { return l.y + g.lane*float64(gpu) }

func (g *laneGrid) bottom() float64 {
	if len(g.groups) == 0 {
		return g.top + maxLaneHeight
	}
	last := &g.groups[len(g.groups)-1]
	return last.laneTop(g, last.gpus)
}

// laneLabels names nodes, and GPUs where there is room.
func (p *ganttChart) laneLabels() {
	nodeX := p.grid.left - 8
	if p.grid.gpuLabels() {
		nodeX = p.grid.left - 32
	}
	next := math.Inf(-1)
	for i := range p.grid.groups {
		group := &p.grid.groups[i]
		middle := group.y + p.grid.lane*float64(group.gpus)/2
		if middle >= next {
			p.Text(nodeX, middle+4, "e", p.grid.nodeLabel(p.result, group.node))
			next = middle + 14
		}
		if p.grid.lane < minLabelHeight || group.gpus == 1 {
			continue
		}
		for gpu := range group.gpus {
			if p.grid.lane >= 11 || gpu%2 == 0 {
				p.Text(p.grid.left-8, group.laneTop(&p.grid, gpu)+p.grid.lane/2+4, "e f", strconv.Itoa(gpu))
			}
		}
	}
}

// drawIdle draws the spans in which nodes are on: what no bar covers is idle.
func (p *ganttChart) drawIdle() {
	for i := range p.grid.groups {
		group := &p.grid.groups[i]
		for _, on := range p.result.Plan.Nodes[group.node].On {
			x, wide := report.Px(p.grid.x(on.From)), report.Px(max(minBarWidth, on.Len()/p.grid.perPixel()))
			if above, below := p.grid.inset(); above+below > 0 {
				for gpu := range group.gpus {
					p.idleRect(x, group.laneTop(&p.grid, gpu)+above, wide, p.grid.lane-above-below)
				}
				continue
			}
			p.idleRect(x, group.y, wide, p.grid.lane*float64(group.gpus))
		}
	}
}

func (p *ganttChart) idleRect(x string, y float64, wide string, high float64) {
	p.Printf(`<rect x="%s" y="%s" width="%s" height="%s" fill="url(#%s)"/>`+"\n", x, report.Px(y), wide, report.Px(high),
		p.ScopedID("idle"))
}

// drawTimeAxis draws the ticks below the lanes, and above them too if those are tall.
func (p *ganttChart) drawTimeAxis() {
	axis := report.TimeAxis(p.grid.end, p.grid.plotWidth())
	bottom := p.grid.bottom()
	for i := 0; float64(i)*axis.Step <= p.grid.end*(1+1e-9); i++ {
		t := float64(i) * axis.Step
		x := p.grid.x(t)
		p.Printf(`<path class="g" d="M%s %sV%s"/>`+"\n", report.Px(x), report.Px(p.grid.top-2), report.Px(bottom+5))
		p.Text(x, bottom+18, "m", axis.Label(t))
		if p.grid.hasTopAxis(p.grid.lanes) {
			p.Text(x, p.grid.top-6, "m f", axis.Label(t))
		}
	}
	p.Text(p.grid.left+p.grid.plotWidth()/2, bottom+36, "m f", axis.Title)
}
