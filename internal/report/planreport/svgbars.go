package planreport

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner"
)

// bar is a job, or several that are too short to be seen alone, on
// neighbouring GPUs of a node.
type bar struct {
	group, gpu, gpus int     // lanes: from gpu, gpus of them
	offset, share    float64 // part of the lane, from its top
	start, end       float64
	task             int // the first one
	jobs             int
	clock            float64 // core clock, mean over time
	busy             float64 // seconds that the clock stands for
}

const (
	minBarWidth    = 0.6   // least width of a bar, pixels
	defaultMaxBars = 20000 // with more of them, short means longer than what can't be seen
)

func (p *ganttChart) drawBars() {
	all := p.collectBars()
	sortBars(all)
	stackShares(all)
	all = p.mergeShortBars(all)
	for i := range all {
		p.drawBar(&all[i])
	}
}

// sortBars puts them in the order of lanes and starts.
func sortBars(all []bar) {
	slices.SortFunc(all, func(a, b bar) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.gpu, b.gpu), cmp.Compare(a.start, b.start),
			cmp.Compare(a.task, b.task))
	})
}

// collectBars makes a bar for each run of neighbouring GPUs of each job on each node.
func (p *ganttChart) collectBars() []bar {
	groupOf := make([]int, len(p.result.Plan.Nodes))
	for i := range groupOf {
		groupOf[i] = -1
	}
	for i := range p.grid.groups {
		groupOf[p.grid.groups[i].node] = i
	}
	bars, crowds := make([]bar, 0, len(p.result.Plan.Assignments)), p.result.maxSharers()
	for task, a := range p.result.eachWithNodes {
		one := bar{
			share: p.result.Problem.Tasks[task].Share, start: a.Start, end: a.End,
			task: task, jobs: 1, clock: a.Point.Scaling.Fc, busy: a.End - a.Start,
		}
		for _, gpu := range a.GPUs.Indexes() {
			if n := crowds[gpuLane{a.Node, gpu}]; n > 0 {
				one.share = min(one.share, 1/float64(n))
			}
		}
		for part := range a.Parts {
			if one.group = groupOf[part.Node]; one.group < 0 {
				continue
			}
			for s := part.GPUs; s != 0; {
				one.gpu, one.gpus = s.First(), 0
				for g := one.gpu; g < planner.MaxGPUs && s.Has(g); g++ {
					s &= s - 1
					one.gpus++
				}
				bars = append(bars, one)
			}
		}
	}
	return bars
}

// stackShares puts jobs that share a GPU on top of each other. The bars are
// sorted by lane and start.
func stackShares(bars []bar) {
	var active []*bar // on the same lane, by offset
	for i := range bars {
		b := &bars[i]
		if b.share >= 1 {
			continue
		}
		active = slices.DeleteFunc(active, func(a *bar) bool {
			return a.group != b.group || a.gpu != b.gpu || a.end <= b.start
		})
		at := 0
		for at < len(active) && active[at].offset < b.offset+b.share-1e-9 {
			b.offset = active[at].offset + active[at].share
			at++
		}
		b.offset = min(b.offset, 1-b.share)
		active = slices.Insert(active, at, b)
	}
}

// mergeShortBars joins neighbours on a lane that are too short to be told apart. Late
// jobs stay alone.
func (p *ganttChart) mergeShortBars(bars []bar) []bar {
	short := minBarWidth * p.grid.perPixel()
	if len(bars) > p.maxBars {
		short = max(short, p.grid.end*float64(p.grid.lanes)/float64(p.maxBars))
	}
	out := bars[:0]
	for _, b := range bars {
		if n := len(out) - 1; n >= 0 && b.end-b.start < short && !p.result.isLate(b.task) {
			last := &out[n]
			if last.isSameLanes(&b) && b.end-last.start < short && !p.result.isLate(last.task) {
				last.add(&b)
				continue
			}
		}
		out = append(out, b)
	}
	return out
}

// isSameLanes reports whether two bars lie on the same lanes.
func (b *bar) isSameLanes(next *bar) bool {
	return b.group == next.group && b.gpu == next.gpu && b.gpus == next.gpus && b.share == 1 &&
		next.share == 1
}

func (b *bar) add(next *bar) {
	total := b.busy + next.busy
	if total > 0 {
		b.clock = (b.clock*b.busy + next.clock*next.busy) / total
	}
	b.busy, b.end, b.jobs = total, max(b.end, next.end), b.jobs+next.jobs
}

// drawBar draws one bar with its tooltip, its name where it fits, and its
// deadline if it is missed.
func (p *ganttChart) drawBar(b *bar) {
	x, wide := p.grid.x(b.start), max(minBarWidth, (b.end-b.start)/p.grid.perPixel())
	above, below := p.grid.inset()
	y := p.grid.groups[b.group].laneTop(&p.grid, b.gpu) + above
	high := p.grid.lane*float64(b.gpus) - above - below
	y, high = y+b.offset*high, high*b.share
	late := b.jobs == 1 && p.result.isLate(b.task)
	class, round := "b", ""
	switch {
	case late:
		class = "l"
	case p.grid.lane < 4:
		class = "u"
		if wide > 4 {
			wide-- // keeps neighbours apart
		}
	}
	if p.grid.lane >= 12 && wide >= 6 {
		round = ` rx="2"`
	}
	color, tooltip := clockColor(b.clock), ""
	if !p.Narrow() { // a phone has no pointer
		tooltip = "<title>" + escapeLines(p.tooltip(b)) + "</title>"
	}
	p.Printf(`<rect class="%s" x="%s" y="%s" width="%s" height="%s"%s fill="%s">%s</rect>`+"\n", class,
		report.Px(x), report.Px(y), report.Px(wide), report.Px(max(minBarWidth, high)), round, color.hex(), tooltip)
	if b.jobs > 1 {
		return
	}
	indent := 5.0 // of the name
	if late {
		if due := p.result.Problem.Tasks[b.task].Deadline; due > b.start {
			p.drawDeadline(p.grid.x(due), y, high)
		} else {
			p.drawOverdue(x, y, high)
			indent += overdueWidth
		}
	}
	id := p.result.Problem.Tasks[b.task].ID
	if high >= 10 && wide >= 5+indent+6.8*float64(utf8.RuneCountInString(id)) {
		p.Text(x+indent, y+high/2+4, color.textClass(), id)
	}
}

// drawDeadline marks the time at which a late job should have ended.
func (p *ganttChart) drawDeadline(x, y, high float64) {
	p.Printf(`<path class="x" d="M%s %sh2v%sh-2z"/>`, report.Px(x-1), report.Px(y), report.Px(max(2, high)))
	if high >= minLabelHeight {
		p.Printf(`<path class="x" d="M%s %sh10l-5 5z"/>`, report.Px(x-5), report.Px(y-1))
	}
	p.Printf("\n")
}

// overdueWidth is how wide the mark of a job is that starts after its deadline.
const overdueWidth = 6

// drawOverdue marks a job that starts after its deadline.
func (p *ganttChart) drawOverdue(x, y, high float64) {
	p.Printf(`<path class="x" d="M%s %sl%d %sv-%sz"/>`+"\n", report.Px(x), report.Px(y+high/2), overdueWidth,
		report.Px(high/2), report.Px(high))
}

// tooltip returns what there is to know of a bar, in lines.
func (p *ganttChart) tooltip(b *bar) []string {
	if b.jobs > 1 {
		return []string{report.FormatCount(b.jobs) + " jobs", fmt.Sprintf("core %.3g× on average", b.clock)}
	}
	t, a := &p.result.Problem.Tasks[b.task], &p.result.Plan.Assignments[b.task]
	set := &a.Point.Scaling
	clocks := fmt.Sprintf("core %.4g×, memory %.4g×", set.Fc, set.Fm)
	if a.Point.Core > 0 {
		clocks = fmt.Sprintf("core %.0f MHz, memory %.0f MHz", float64(a.Point.Core), float64(a.Point.Mem))
	}
	if a.Point.Cap != 0 {
		clocks += fmt.Sprintf(", power at most %g W", float64(a.Point.Cap))
	}
	times := report.CommonScale(report.Seconds, report.SignificantDigits, p.grid.end)
	lines := []string{
		t.ID + " on " + onNodes(p.result, a),
		clocks,
		times.Format(a.Start) + " – " + times.FormatWithUnit(a.End) + ", " + report.FormatWatts(a.Power(t)) + ", " +
			report.FormatJoules(a.Energy(t)),
	}
	if p.result.isLate(b.task) {
		lines = append(lines, "late by "+times.FormatWithUnit(a.End-t.Deadline))
	}
	return append(lines, a.Reason.String())
}

// onNodes says on which nodes and GPUs a job runs.
func onNodes(r *Result, a *planner.Assignment) string {
	if len(a.More) == 0 {
		return "node " + r.nodeName(int(a.Node)) + ", GPU " + report.RangesText(a.GPUs)
	}
	var all []string
	for part := range a.Parts {
		all = append(all, r.nodeName(int(part.Node)))
	}
	return "nodes " + strings.Join(all, ", ") + ", GPU " + gpuNames(a)
}

// escapeLines joins lines so that each stays one.
func escapeLines(lines []string) string {
	for i := range lines {
		lines[i] = report.Escape(lines[i])
	}
	return strings.Join(lines, "\n")
}
