package planreport_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/planreport"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
	"github.com/epplan/epplan/queue"
)

type planWriter func(io.Writer, *planreport.Result) error

func table(opts *report.TextOptions) planWriter {
	return func(w io.Writer, r *planreport.Result) error { return planreport.WritePlanTable(w, r, opts) }
}

func ganttChart(opts *planreport.SVGOptions) planWriter {
	return func(w io.Writer, r *planreport.Result) error { return planreport.WriteSVG(w, r, opts) }
}

func written(tb testing.TB, write planWriter, r *planreport.Result) []byte {
	tb.Helper()
	var out bytes.Buffer
	if err := write(&out, r); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func TestPlansLookLikeTheirGoldenFiles(t *testing.T) {
	seed := uint64(math.MaxUint64)
	gang := rounded(solve(t, gangProblem(t), "baseline"))
	small, late := rounded(solve(t, smallProblem(t), "edl:0.9")), rounded(solve(t, lateProblem(t), "edl"))
	small.Seed = &seed
	small.Plan.Warnings = append(small.Plan.Warnings, errors.New("a \x1b[1mstrange\x1b[0m model"))
	for _, c := range []struct {
		file   string
		write  planWriter
		result *planreport.Result
	}{
		{"small.json", planreport.WritePlanJSON, small},
		{"small.csv", planreport.WritePlanCSV, small},
		{"small.txt", table(nil), small},
		{"small.svg", ganttChart(nil), small},
		{"late.txt", table(nil), late},
		{"late.svg", ganttChart(nil), late},
		{"gang.json", planreport.WritePlanJSON, gang},
		{"gang.csv", planreport.WritePlanCSV, gang},
		{"gang.txt", table(nil), gang},
		{"gang.svg", ganttChart(nil), gang},
		{"many.txt", table(nil), rounded(solve(t, manyProblem(t, 200), "edl:0.8"))},
	} {
		t.Run(c.file, func(t *testing.T) { golden(t, c.file, written(t, c.write, c.result)) })
	}
}

// document is what a reader of the JSON knows of it.
type document struct {
	Policy     string
	Seed       *uint64
	JobsTotal  int      `json:"jobs_total"`
	Energy     float64  `json:"energy_j"`
	Saving     *float64 `json:"saving"`
	Gap        *float64 `json:"gap"`
	Infeasible []struct {
		ID       string
		Earliest *float64 `json:"finish_if_free_s"`
	}
	Warnings []string
	Jobs     []struct {
		ID       string
		GPUs     []int    `json:"gpus"`
		Deadline *float64 `json:"deadline_s"`
		End      float64  `json:"end_s"`
		Energy   float64  `json:"energy_j"`
		Core     *float64 `json:"core_mhz"`
		Reason   string
	}
}

func decode(tb testing.TB, text []byte) document {
	tb.Helper()
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		tb.Fatalf("%v in\n%s", err, text)
	}
	return d
}

func TestPlanJSONGivesEveryJobExactly(t *testing.T) {
	r := solve(t, manyProblem(t, 100), "edl")
	d := decode(t, written(t, planreport.WritePlanJSON, r))
	if d.JobsTotal != 100 || len(d.Jobs) != 100 || d.Energy != float64(r.Plan.Ledger.Total()) ||
		d.Policy != r.Plan.Policy {
		t.Errorf("%d jobs of %d, %v J, policy %q", len(d.Jobs), d.JobsTotal, d.Energy, d.Policy)
	}
	for i, job := range d.Jobs {
		want, a := &r.Problem.Tasks[i], &r.Plan.Assignments[i]
		if job.ID != want.ID || job.End != a.End || *job.Deadline != want.Deadline ||
			job.Reason != a.Reason.String() ||
			job.Energy != float64(a.Energy(want)) || len(job.GPUs) != 1 || job.GPUs[0] != a.GPUs.First() ||
			job.Core != nil {
			t.Errorf("job %d is %+v, want %+v", i, job, a)
		}
	}
}

func TestPlanJSONHasNullWhereNothingFiniteIsKnown(t *testing.T) {
	p := lateProblem(t)
	p.Tasks[0].Options[0].GPUs = 8
	p.Tasks[1].Deadline, p.Tasks[1].Due = math.Inf(1), math.Inf(1)
	r := solve(t, p, "edl")
	r.Baseline, r.Bound = 0, bound.Bound{}
	text := written(t, planreport.WritePlanJSON, r)
	d := decode(t, text)
	if d.Saving != nil || d.Gap != nil || len(d.Jobs) != 1 || d.Jobs[0].Deadline != nil {
		t.Errorf("saving, gap or deadline is not null:\n%s", text)
	}
	if len(d.Infeasible) != 1 || d.Infeasible[0].ID != "first" || d.Infeasible[0].Earliest != nil {
		t.Errorf("infeasible is %+v", d.Infeasible)
	}
}

func TestClocksInMHzAreGivenWhereThePlanHasThem(t *testing.T) {
	r := solve(t, lateProblem(t), "edl")
	for i := range r.Plan.Assignments {
		r.Plan.Assignments[i].Point.Core, r.Plan.Assignments[i].Point.Mem = 1290, 5005
	}
	d := decode(t, written(t, planreport.WritePlanJSON, r))
	if d.Jobs[0].Core == nil || *d.Jobs[0].Core != 1290 {
		t.Errorf("core_mhz is %v, want 1290", d.Jobs[0].Core)
	}
	text := string(written(t, table(nil), r))
	if !strings.Contains(text, "1290/5005") || !strings.Contains(text, "MHz") {
		t.Errorf("no clocks in MHz:\n%s", text)
	}
	if svg := string(written(t, ganttChart(nil), r)); !strings.Contains(svg,
		"core 1290 MHz, memory 5005 MHz") {
		t.Error("no clocks in MHz in the picture")
	}
}

func TestPlanCSVHasARowForEveryJobOfTheBatch(t *testing.T) {
	r := solve(t, smallProblem(t), "edl:0.9")
	rows, err := csv.NewReader(bytes.NewReader(written(t, planreport.WritePlanCSV, r))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1+len(r.Problem.Tasks) {
		t.Fatalf("%d rows, want a header and %d jobs", len(rows), len(r.Problem.Tasks))
	}
	for i := range r.Problem.Tasks {
		row, unplaced := rows[i+1], r.Plan.Assignments[i].Node < 0
		if row[0] != queue.Printable(r.Problem.Tasks[i].ID) || (row[1] == "") != unplaced ||
			strings.HasPrefix(row[len(row)-1], "not planned: ") != unplaced {
			t.Errorf("job %d is %q", i, row)
		}
	}
}

func TestTheTableIsNarrowAndHarmless(t *testing.T) {
	for _, p := range []*planner.Problem{smallProblem(t), lateProblem(t), manyProblem(t, 300)} {
		for line := range strings.Lines(string(written(t, table(nil), solve(t, p, "edl:0.9")))) {
			line = strings.TrimSuffix(line, "\n")
			if utf8.RuneCountInString(line) > 120 ||
				strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("a line is too long or not printable: %q", line)
			}
		}
	}
}

func TestLongPlansAreCutUnlessAllRowsAreWanted(t *testing.T) {
	r := solve(t, manyProblem(t, 1500), "edl")
	for _, c := range []struct {
		opts *report.TextOptions
		more string
		last bool
	}{
		{nil, "… 1,475 more; --json or --csv shows all", false},
		{&report.TextOptions{Rows: 1499}, "… 1 more;", false},
		{&report.TextOptions{Rows: -1}, "", true},
	} {
		text := string(written(t, table(c.opts), r))
		if (c.more == "") == strings.Contains(text, "… ") || !strings.Contains(text, c.more) ||
			strings.Contains(text, "job-1499 ") != c.last {
			t.Errorf("with %+v the table ends in %q", c.opts, text[len(text)-120:])
		}
	}
}

func TestColoursAppearOnlyWhenWanted(t *testing.T) {
	r := solve(t, lateProblem(t), "edl")
	plain, colored := written(t, table(nil), r), written(t, table(&report.TextOptions{Color: true}), r)
	if bytes.Contains(plain, []byte("\x1b")) ||
		!bytes.Contains(colored, []byte("\x1b[1;31m1 job ends after the deadline:\x1b[0m")) {
		t.Errorf("plain:\n%s\ncolored:\n%q", plain, colored)
	}
}

func TestABatchOfWhichNothingCanBePlannedSaysSo(t *testing.T) {
	p := lateProblem(t)
	for i := range p.Tasks {
		p.Tasks[i].Options[0].GPUs = 2
	}
	r := solve(t, p, "edl")
	text := string(written(t, table(nil), r))
	if !strings.Contains(text, "none of 2 can be planned") ||
		!strings.Contains(text, "2 jobs can't be planned:") {
		t.Error(text)
	}
	if d := decode(t, written(t, planreport.WritePlanJSON, r)); len(d.Jobs) != 0 || len(d.Infeasible) != 2 {
		t.Errorf("%+v", d)
	}
	wellFormed(t, written(t, ganttChart(nil), r))
}

func TestSummariseCountsDistinctNodesAndGPUs(t *testing.T) {
	r := &planreport.Result{
		Problem: &planner.Problem{
			Tasks: make([]planner.Task, 4), Cluster: planner.Cluster{Classes: make([]planner.NodeClass, 1)},
		},
		Plan: &planner.Plan{
			Nodes: make([]planner.PlannedNode, 3),
			Assignments: []planner.Assignment{
				{Node: 0, GPUs: 0b0011, End: 5},
				{Node: 0, GPUs: 0b0110, End: 9},
				{Node: 2, GPUs: 1, End: 7},
				{Node: -1},
			},
			Unplaced: []planner.Unplaced{{Task: 3}},
			Ledger:   planner.Ledger{Run: 80, Idle: 20},
		},
		Baseline: 200, Bound: bound.Bound{Value: 80, Cost: 80},
	}
	s := planreport.Summarise(r)
	if s.NodesUsed != 2 || s.GPUsUsed != 4 || s.End != 9 || s.Infeasible != 1 || s.Saving() != .5 ||
		s.Gap() != .25 {
		t.Errorf("%+v, saving %v, gap %v", s, s.Saving(), s.Gap())
	}
}

// broken takes some bytes and then no more.
type broken struct{ left int }

var errBroken = errors.New("disk full")

func (b *broken) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestAFailingWriterIsAnErrorOfEveryReport(t *testing.T) {
	r := solve(t, manyProblem(t, 300), "edl")
	for name, write := range map[string]planWriter{
		"json": planreport.WritePlanJSON, "csv": planreport.WritePlanCSV,
		"table": table(&report.TextOptions{Rows: -1}), "svg": ganttChart(nil),
	} {
		for _, room := range []int{0, 5000, len(written(t, write, r)) - 1} {
			if err := write(&broken{room}, r); !errors.Is(err, errBroken) {
				t.Errorf("%s after %d bytes: error %v, want %v", name, room, err, errBroken)
			}
		}
	}
}

// million returns a plan of n jobs that needs no planning.
func million(tb testing.TB, n int) *planreport.Result {
	tb.Helper()
	response := workload(tb, 100, 200, .5)
	p := &planner.Problem{
		Cluster: planner.Cluster{Classes: []planner.NodeClass{{Model: "x", GPUs: 8}}},
		Tasks:   make([]planner.Task, n),
	}
	plan := &planner.Plan{
		Assignments: make([]planner.Assignment, n),
		Nodes:       []planner.PlannedNode{{On: []planner.Interval{{To: float64(n)}}}},
	}
	for i := range n {
		p.Tasks[i] = task("job", float64(i+200), response)
		plan.Assignments[i] = planner.Assignment{
			GPUs: 1 << (i % 8), Start: float64(i), End: float64(i) + 100.25,
			Point:  dvfsmodel.Point{Time: 100.25, Power: 180.125, Energy: 18057.5},
			Reason: planner.Reason{Clocks: planner.ClocksReadjust, Want: 110.5, TimeBudget: 100.25},
		}
	}
	return &planreport.Result{Problem: p, Plan: plan}
}

func BenchmarkPlanJSON(b *testing.B) { benchmarkPlan(b, planreport.WritePlanJSON) }
func BenchmarkPlanCSV(b *testing.B)  { benchmarkPlan(b, planreport.WritePlanCSV) }
func BenchmarkPlanSVG(b *testing.B)  { benchmarkPlan(b, ganttChart(nil)) }

func benchmarkPlan(b *testing.B, write planWriter) {
	b.Helper()
	const jobs = 100_000
	r := million(b, jobs)
	b.ReportAllocs()
	for b.Loop() {
		if err := write(io.Discard, r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/jobs, "ns/job")
}
