package planreport_test

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/queue"
)

// evil is text as no name should be.
const evil = `<script>alert(1)</script>"'&` + "\x1b[31m\u202e\u200b"

// webPage is a report as a test sees it.
type webPage struct {
	text     string
	elements []*html.Node
	sections []string // ids of h2
	captions []string
}

// parsed reads a report and demands of it what every report keeps: nothing from
// outside, no script, ids that are there once, references that lead somewhere,
// tables with captions and scoped headers of as many columns as they say.
func parsed(t *testing.T, text []byte) *webPage {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	d := &webPage{text: string(text)}
	ids := map[string]bool{}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		d.elements = append(d.elements, n)
		if id := attribute(n, "id"); id != "" {
			if ids[id] {
				t.Errorf("id %s is there twice", id)
			}
			ids[id] = true
		}
	}
	for _, n := range d.elements {
		d.check(t, n, ids)
	}
	if outside := regexp.MustCompile(`https?://|@import|url\((?:[^#]|$)`).FindString(d.text); outside != "" {
		t.Errorf("the report has %q", outside)
	}
	if strings.ContainsAny(d.text, "\x1b\u202e\u200b\x00") {
		t.Error("control characters reach the report")
	}
	return d
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// textOf returns all text in a node.
func textOf(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

func (d *webPage) check(t *testing.T, n *html.Node, ids map[string]bool) {
	t.Helper()
	for _, a := range n.Attr {
		if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src" || a.Key == "action" {
			t.Errorf("%s has %s=%q", n.Data, a.Key, a.Val)
		}
		switch a.Key {
		case "href":
			if id, here := strings.CutPrefix(a.Val, "#"); !here || !ids[id] {
				t.Errorf("a link leads to %q", a.Val)
			}
		case "aria-labelledby":
			for id := range strings.FieldsSeq(a.Val) {
				if !ids[id] {
					t.Errorf("%s is named by %s, which isn't there", n.Data, id)
				}
			}
		}
	}
	switch n.Data {
	case "script", "iframe", "link", "img", "object", "embed", "base":
		t.Errorf("there is a %s", n.Data)
	case "h2":
		d.sections = append(d.sections, attribute(n, "id"))
	case "svg":
		if attribute(n, "role") != "img" || attribute(n, "aria-labelledby") == "" {
			t.Error("a picture has no name")
		}
	case "table":
		d.checkTable(t, n)
	}
}

// checkTable demands a caption, and a cell for each header in each row.
func (d *webPage) checkTable(t *testing.T, table *html.Node) {
	t.Helper()
	caption, heads := "", 0
	for n := range table.Descendants() {
		switch n.Data {
		case "caption":
			caption = textOf(n)
			d.captions = append(d.captions, caption)
		case "th":
			if scope := attribute(n, "scope"); scope == "col" {
				heads++
			} else if scope != "row" {
				t.Errorf("%s: a header has the scope %q", caption, scope)
			}
		case "tr":
			cells := 0
			for c := range n.ChildNodes() {
				if c.Type == html.ElementNode {
					cells++
				}
			}
			if heads > 0 && cells != heads {
				t.Errorf("%s: a row has %d cells, want %d", caption, cells, heads)
			}
		}
	}
	if caption == "" {
		t.Error("a table has no caption")
	}
}

func (d *webPage) has(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(d.text, html.EscapeString(text)) {
			t.Errorf("the report lacks %q", text)
		}
	}
}

// usersJobs are jobs of a user and of workloads.
func usersJobs(p *planner.Problem) []queue.Job {
	jobs := make([]queue.Job, len(p.Tasks))
	for i := range jobs {
		jobs[i] = queue.NewJob(p.Tasks[i].ID)
		jobs[i].User, jobs[i].Workload = "ada", "w"+strconv.Itoa(i%3)
	}
	jobs[0].User, jobs[0].Workload = evil, evil
	return jobs
}

func planPage(p *planreport.PlanPage) func(io.Writer) error {
	return func(w io.Writer) error { return planreport.WritePlanPage(w, p) }
}

func asHTML(t *testing.T, write func(io.Writer) error) *webPage {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	return parsed(t, out.Bytes())
}

func TestAReportOfAPlanSaysWhatTheTextSays(t *testing.T) {
	p := smallProblem(t)
	r := solve(t, p, "edl:0.9")
	r.Reference = solve(t, p, "baseline").Plan
	d := asHTML(t, planPage(&planreport.PlanPage{
		Result: r, Name: evil, Jobs: usersJobs(p), Origin: page.Facts{{Name: "Command", Text: evil}},
		Models: []planreport.FittedModel{{
			Workload: "w1", GPUModel: "x", Settings: 12, TimeError: .02, PowerError: .03, Source: evil,
		}},
	}))
	if got := fmt.Sprint(d.sections); got != "[schedule energy why who clocks sure jobs]" {
		t.Errorf("sections are %s", got)
	}
	s := planreport.Summarise(r)
	scale := report.CommonScale(report.Joules, 5, float64(s.Energy))
	var text bytes.Buffer
	if err := planreport.WritePlanTable(&text, r, nil); err != nil {
		t.Fatal(err)
	}
	for _, figure := range []string{
		scale.FormatWithUnit(float64(s.Energy)), report.FormatKWh(s.Energy), report.FormatPercent(s.Saving()),
		scale.FormatWithUnit(float64(s.Baseline)),
		report.FormatPercent(s.Gap()), report.FormatSeconds(s.End), scale.Format(float64(s.Run)),
		scale.Format(float64(s.Idle)),
	} {
		if !strings.Contains(text.String(), figure) {
			t.Errorf("the text lacks %s", figure)
		}
		d.has(t, figure)
	}
	d.has(t, "1 job can't be planned", `<script>alert(1)</script>"'&\x1b[31m\u202e`, `evil\x1b[31m<b>&\u202e`,
		"12", "by user", "all of it at default clocks")
	for _, caption := range []string{
		"Jobs that can't be planned", "Where the energy goes",
		"Power and energy over time", "Why jobs run where they do", "By user", "By workload",
	} {
		if !strings.Contains(strings.Join(d.captions, "\n"), caption) {
			t.Errorf("no table is called %q: %q", caption, d.captions)
		}
	}
}

// Plans of drawn policies, of drawn parts of batches, have the same totals as text and as a page.
func TestTextAndPageOfAPlanHaveTheSameTotals(t *testing.T) {
	rapid.Check(t, func(draw *rapid.T) {
		problems := rapid.SampledFrom([]func(testing.TB) *planner.Problem{smallProblem, lateProblem, gangProblem})
		p := problems.Draw(draw, "problem")(t)
		for i := range p.Tasks {
			p.Tasks[i].Deadline *= rapid.Float64Range(0.1, 2).Draw(draw, "of the deadline")
			p.Tasks[i].Due = p.Tasks[i].Deadline
		}
		r := solve(t, p, rapid.SampledFrom([]string{"edl", "edl:0.9", "baseline", "edf-bf"}).Draw(draw, "policy"))
		r.Reference = solve(t, p, "baseline").Plan
		seed := rapid.Uint64().Draw(draw, "seed")
		r.Seed, r.Plan.Cut = &seed, rapid.Bool().Draw(draw, "cut")
		var text bytes.Buffer
		if err := planreport.WritePlanTable(&text, r, nil); err != nil {
			t.Fatal(err)
		}
		d := asHTML(t, planPage(&planreport.PlanPage{Result: r, Name: "drawn"}))
		totals, _, _ := strings.Cut(text.String(), "\n\n")
		lines := strings.Split(totals, "\n")
		if len(lines) < 3 {
			t.Errorf("totals are\n%s", totals)
		}
		shown := strings.ReplaceAll(html.UnescapeString(d.text), "\u00a0", " ")
		for _, line := range lines {
			_, said, _ := strings.Cut(line, "  ")
			if !strings.Contains(shown, strings.TrimSpace(said)) {
				draw.Fatalf("the page lacks %q", said)
			}
		}
	})
}

func TestAReportOfAPlanThatIsLateOrEmptySaysSo(t *testing.T) {
	late := asHTML(t, planPage(&planreport.PlanPage{Result: solve(t, lateProblem(t), "edl"), Name: "late"}))
	late.has(t, "1 job ends after the deadline", "Jobs that end late")
	p := lateProblem(t)
	for i := range p.Tasks {
		p.Tasks[i].Deadline, p.Tasks[i].Due = 5, 5
	}
	none := asHTML(t, planPage(&planreport.PlanPage{Result: solve(t, p, "edl"), Name: "none"}))
	none.has(t, "can plan none of 2 jobs", "2 jobs can't be planned")
	if len(none.sections) != 0 {
		t.Errorf("there are sections %v of nothing", none.sections)
	}
}

func TestTheSamePlanGivesTheSameReport(t *testing.T) {
	write := func() string {
		p := manyProblem(t, 300)
		return asHTML(t, planPage(&planreport.PlanPage{
			Result: solve(t, p, "edl:0.8"), Name: "many", Jobs: usersJobs(p),
		})).text
	}
	first, second := write(), write()
	if first != second {
		t.Error("two reports of one plan differ")
	}
}

func TestAReportSaysHowManyGPUsItDoesNotDraw(t *testing.T) {
	p := manyProblem(t, 4000)
	p.Mode, p.Cluster.Classes[0].GPUs = planner.Offline, 1
	for i := range p.Tasks {
		task := &p.Tasks[i]
		task.Deadline, task.Due, task.Arrival = task.Deadline-task.Arrival, task.Due-task.Arrival, 0
	}
	r := solve(t, p, "edl:0.8")
	gpus := planreport.Summarise(r).GPUsUsed
	d := asHTML(t, planPage(&planreport.PlanPage{Result: r, Name: "wide"}))
	d.has(t, fmt.Sprintf("Only the first 1,000 of %s GPUs are drawn.", report.FormatCount(gpus)))
}

// Ten thousand jobs: the bounds are those that docs/reports.md states.
func TestAReportOfTenThousandJobsIsCutAndStaysSmall(t *testing.T) {
	p := manyProblem(t, 10_000)
	r := solve(t, p, "edl:0.8")
	r.Reference = solve(t, p, "baseline").Plan
	var out bytes.Buffer
	began := time.Now()
	if err := planreport.WritePlanPage(&out,
		&planreport.PlanPage{Result: r, Name: "many", Jobs: usersJobs(p)}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes in %v", out.Len(), time.Since(began))
	if out.Len() > 5<<20 {
		t.Errorf("%d bytes, want at most 5 MiB", out.Len())
	}
	parsed(t, out.Bytes()).has(t, "The first 2,000 of 10,000 planned jobs", "8,000 more aren't shown here")
}

func runsOf(t *testing.T, p *planner.Problem, params []planreport.Param, names ...string) []planreport.Run {
	t.Helper()
	runs := make([]planreport.Run, len(names))
	for i, name := range names {
		r := solve(t, p, name)
		runs[i] = planreport.Run{Params: params, Summary: planreport.Summarise(r), Planning: time.Second}
	}
	return runs
}

func TestAReportOfAComparisonSaysWhichPlanIsBestAndWhy(t *testing.T) {
	p := manyProblem(t, 60)
	runs := runsOf(t, p, nil, "baseline", "edl:0.9", "edf-bf")
	best := 0
	for i := range runs {
		if runs[i].Summary.Energy < runs[best].Summary.Energy {
			best = i
		}
	}
	d := asHTML(t, func(w io.Writer) error {
		return planreport.WriteComparePage(w, &planreport.ComparePage{Runs: runs, Name: evil})
	})
	d.has(t, runs[best].Summary.Policy+" takes the least energy of all 3 plans", "kept: the best plan",
		"The next one", "last end", "mean wait")
	if strings.Contains(d.text, "planning") {
		t.Error("the report has times of planning, which are never the same")
	}
}

func TestPlansOfDifferentProblemsArentWeighedAgainstEachOther(t *testing.T) {
	runs := runsOf(t, lateProblem(t), []planreport.Param{{Key: "batch", Value: report.Text("late")}}, "edl")
	for _, batch := range []string{"monday", evil} {
		runs = append(runs,
			runsOf(t, manyProblem(t, 20),
				[]planreport.Param{{Key: "batch", Value: report.Text(batch)}, {
					Key: "theta", Value: report.Number(.9),
				}}, "edl:0.9", "edf-bf")...)
	}
	d := asHTML(t, func(w io.Writer) error {
		return planreport.WriteComparePage(w, &planreport.ComparePage{Runs: runs, Name: "3 batches"})
	})
	if len(d.sections) != 3 {
		t.Errorf("sections are %v", d.sections)
	}
	d.has(t, "5 plans of 3 problems", "No plan covers all jobs in time", "edl:0.9, theta 0.9")
}

func TestFiguresHaveTheirNumbersInATable(t *testing.T) {
	chart := report.Chart{Title: evil, X: "load", Y: "kW", Lines: []report.Series{
		{Name: "a", X: []float64{0, 1, 2}, Y: []float64{5, 6.25, 7}},
		{Name: evil, X: []float64{0, 1, 2}, Y: []float64{1, 2, 3}},
	}}
	curve := report.ChartFigure("curve", evil, &chart)
	estimates := report.EstimateFigure("saved", "what", "saved", report.Fraction, []report.Estimate{
		{Name: evil, Note: evil, Value: .12, Low: -.03, High: .27},
		{Name: "models", Value: .2, Believed: true},
	})
	spots := report.TradeOffFigure("trade", "what", "wait", report.Seconds, []report.TradeOffPoint{
		{Name: evil, X: 10, Y: 1e6}, {Name: "b", X: 20, Y: 5e5}, {Name: "c", X: 30, Y: 7e5, Late: true},
	})
	d := asHTML(t, func(w io.Writer) error {
		return page.WriteReport(w, &page.Report{Title: "figures", Parts: []any{curve, estimates, spots}})
	})
	d.has(t, "6.25", "12.0", "-3.0", "27.0", "by none in both", "misses deadlines or jobs")
	if len(d.captions) != 3 {
		t.Errorf("tables are %q", d.captions)
	}
}
