package planreport_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/planner"
)

// rect is a rectangle of a picture.
type rect struct {
	class, fill  string
	x, y, dx, dy float64
	tip          string
}

// drawn is a picture as a test sees it.
type drawn struct {
	width, height float64
	rects         []rect
	texts         []string
}

// bars returns the rectangles that have a tooltip.
func (d *drawn) bars() []rect {
	var bars []rect
	for _, r := range d.rects {
		if r.tip != "" {
			bars = append(bars, r)
		}
	}
	return bars
}

// wellFormed parses a picture, and demands that all of it is inside.
func wellFormed(t *testing.T, svg []byte) *drawn {
	t.Helper()
	d := &drawn{}
	dec := xml.NewDecoder(bytes.NewReader(svg))
	element := ""
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			element = e.Name.Local
			d.element(t, e)
		case xml.CharData:
			switch element {
			case "title":
				if len(d.rects) == 0 {
					continue // the picture's own
				}
				d.rects[len(d.rects)-1].tip = string(e)
			case "text":
				d.texts = append(d.texts, string(e))
			}
			element = ""
		}
	}
	for _, r := range d.bars() {
		if r.x < 0 || r.y < 0 || r.dx <= 0 || r.dy <= 0 || r.x+r.dx > d.width || r.y+r.dy > d.height {
			t.Errorf("a bar is empty or outside: %+v", r)
		}
	}
	return d
}

func (d *drawn) element(t *testing.T, e xml.StartElement) {
	t.Helper()
	attr := map[string]string{}
	for _, a := range e.Attr {
		attr[a.Name.Local] = a.Value
	}
	length := func(name string) float64 {
		v, err := strconv.ParseFloat(attr[name], 64)
		if err != nil && attr[name] != "" && attr[name] != "100%" {
			t.Fatalf("%s of %s: %v", name, e.Name.Local, err)
		}
		return v
	}
	switch e.Name.Local {
	case "svg":
		d.width, d.height = length("width"), length("height")
	case "rect":
		d.rects = append(d.rects, rect{
			class: attr["class"], fill: attr["fill"], x: length("x"), y: length("y"), dx: length("width"),
			dy: length("height"),
		})
	}
}

func (d *drawn) says(text string) bool { return strings.Contains(strings.Join(d.texts, "\n"), text) }

func TestEachJobIsABarWithATooltip(t *testing.T) {
	r := solve(t, smallProblem(t), "edl:0.9")
	d := wellFormed(t, written(t, ganttChart(nil), r))
	bars := d.bars()
	if len(bars) != 5 {
		t.Fatalf("%d bars, want 5", len(bars))
	}
	for i := range r.Plan.Assignments {
		reason := r.Plan.Assignments[i].Reason.String()
		if r.Plan.Assignments[i].Node >= 0 && !strings.Contains(fmt.Sprint(bars), reason) {
			t.Errorf("no tooltip has %q", reason)
		}
	}
	if !d.says("1 job can't be planned") || !d.says("20.0 % saved") || !d.says(`evil\x1b[31m<b>&\u202e`) {
		t.Errorf("texts are %q", d.texts)
	}
}

func TestLateJobsAreMarked(t *testing.T) {
	d := wellFormed(t, written(t, ganttChart(nil), solve(t, lateProblem(t), "edl")))
	late := 0
	for _, b := range d.bars() {
		if b.class == "l" {
			late++
		}
	}
	if late != 1 || !d.says("1 job late") || !d.says("the line is the deadline") {
		t.Errorf("%d late bars, texts %q", late, d.texts)
	}
}

func TestJobsOfSeveralGPUsAreOneBarForEachRunOfNeighbours(t *testing.T) {
	p := lateProblem(t)
	p.Cluster.Classes[0].GPUs = 4
	r := solve(t, p, "edl")
	r.Plan.Assignments[0].GPUs, r.Plan.Assignments[1].GPUs = 0b1101, 0b0010
	d := wellFormed(t, written(t, ganttChart(nil), r))
	heights := map[float64]int{}
	for _, b := range d.bars() {
		heights[b.dy]++
	}
	if len(d.bars()) != 3 || heights[20] != 2 || heights[42] != 1 {
		t.Errorf("bars are %+v", d.bars())
	}
}

func TestJobsThatShareAGPULieAboveEachOther(t *testing.T) {
	p := lateProblem(t)
	for i := range p.Tasks {
		p.Tasks[i].Share = .5
	}
	d := wellFormed(t, written(t, ganttChart(nil), solve(t, p, "edl")))
	bars := d.bars()
	if len(bars) != 2 || bars[0].y+bars[0].dy > bars[1].y+1e-9 || bars[0].x != bars[1].x || bars[0].dy != 10 {
		t.Errorf("bars are %+v", bars)
	}
}

func TestAPictureOfManyGPUsKeepsItsHeightAndDropsLabels(t *testing.T) {
	r := solve(t, manyProblem(t, 2000), "edl:0.8")
	d := wellFormed(t, written(t, ganttChart(&planreport.SVGOptions{MaxHeight: 400}), r))
	if d.height > 400+200 || d.says("job-1\n") {
		t.Errorf("height is %v", d.height)
	}
	if len(d.bars()) != 2000 {
		t.Errorf("%d bars, want 2000", len(d.bars()))
	}
}

func TestGPUsThatDontFitAreCounted(t *testing.T) {
	p := manyProblem(t, 2000)
	p.Cluster.Classes[0].GPUs = 1
	r := solve(t, p, "edl:0.8")
	gpus := planreport.Summarise(r).GPUsUsed
	d := wellFormed(t, written(t, ganttChart(&planreport.SVGOptions{MaxHeight: 100}), r))
	if want := fmt.Sprintf("100 of %d GPUs drawn", gpus); !d.says(want) {
		t.Errorf("texts lack %q: %q", want, d.texts)
	}
}

func TestJobsTooShortToBeSeenAreDrawnTogether(t *testing.T) {
	const jobs = 30_000
	r := million(t, jobs)
	for i := range jobs { // back to back on one GPU
		a := &r.Plan.Assignments[i]
		a.GPUs, a.Start, a.End = 1, float64(i), float64(i+1)
	}
	d := wellFormed(t, written(t, ganttChart(nil), r))
	if n := len(d.bars()); n < 200 || n > 2000 {
		t.Errorf("%d bars for %d jobs", n, jobs)
	}
	total := 0
	for _, b := range d.bars() {
		count, _, _ := strings.Cut(b.tip, " jobs")
		n, err := strconv.Atoi(count)
		if err != nil {
			n = 1
		}
		total += n
	}
	if total != jobs {
		t.Errorf("the bars stand for %d jobs, want %d", total, jobs)
	}
}

func TestTheSamePlanIsDrawnTheSame(t *testing.T) {
	a := written(t, ganttChart(nil), solve(t, manyProblem(t, 500), "edl:0.8"))
	b := written(t, ganttChart(nil), solve(t, manyProblem(t, 500), "edl:0.8"))
	if !bytes.Equal(a, b) {
		t.Error("two pictures of one plan differ")
	}
}

func TestIdleNodesAreDrawnAndNodesThatAreOffAreNot(t *testing.T) {
	p := lateProblem(t)
	p.Cluster.Classes[0].Count = 3
	r := solve(t, p, "edl")
	r.Plan.Nodes = append(r.Plan.Nodes, planner.PlannedNode{On: []planner.Interval{{From: 0, To: 50}}},
		planner.PlannedNode{})
	d := wellFormed(t, written(t, ganttChart(nil), r))
	idle := 0
	for _, rect := range d.rects {
		if rect.fill == "url(#idle)" && rect.dx > 30 {
			idle++
		}
	}
	last := len(r.Plan.Nodes) - 1
	if idle != last || !d.says("node "+strconv.Itoa(last-1)) || d.says("node "+strconv.Itoa(last)) {
		t.Errorf("%d idle spans, texts %q", idle, d.texts)
	}
}
