// Package queuereport shows plans of queues for two kinds of GPUs by how long jobs wait: as
// text, JSON and CSV.
package queuereport

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/queue"
)

// maxName is the number of characters of a job's id that a table shows.
const maxName = 24

// Result is a plan of jobs that arrive over time, seen by how long they
// wait.
type Result struct {
	Plan    *planner.Plan
	Problem *planner.Problem // as it turned out
	Policy  string
	Among   int       // policies of which this one was chosen on drawn outcomes; 0: it was given
	Model   string    // of the energy
	Energy  []float64 // by job: kWh
	Simple  *Sum      // the same queue by the paper's Simple rule; nil: not compared
}

// Sum is what a plan of a queue comes to.
type Sum struct {
	EnergyKWh    float64
	TotalWait    float64 // seconds
	MeanWait     float64 // seconds
	LongestWait  float64 // seconds
	Delayed      int     // jobs that waited
	Running      float64 // seconds of all jobs
	Makespan     float64 // seconds from 0 to the last end
	Jobs, Placed int
}

// Sum adds the plan up; means are over the jobs that ran.
func (r *Result) Sum() *Sum {
	s := &Sum{Jobs: len(r.Plan.Assignments)}
	for i := range r.Plan.Assignments {
		a := &r.Plan.Assignments[i]
		if a.Node < 0 {
			continue
		}
		wait := a.Start - r.Problem.Tasks[i].Arrival
		s.Placed++
		s.EnergyKWh += r.Energy[i]
		s.TotalWait += wait
		s.LongestWait = math.Max(s.LongestWait, wait)
		if wait > 0 {
			s.Delayed++
		}
		s.Running += a.End - a.Start
		s.Makespan = math.Max(s.Makespan, a.End)
	}
	if s.Placed > 0 {
		s.MeanWait = s.TotalWait / float64(s.Placed)
	}
	return s
}

// neverRanTable lists the jobs that never ran.
func (r *Result) neverRanTable() *report.Table {
	return report.NewTable([]report.Column{
		{Key: "id", Head: "job", Left: true, Max: maxName},
		{Key: "why", Head: "why", Left: true},
		{Key: "finish_if_free_s", Head: "finish if free", Unit: report.Seconds},
	}, len(r.Plan.Unplaced), func(i int) []report.Value {
		u := &r.Plan.Unplaced[i]
		return []report.Value{
			report.Text(r.Problem.Tasks[u.Task].ID), report.Text(u.Why), report.Number(u.Earliest),
		}
	})
}

// field is a member of the JSON object.
type field struct {
	key   string
	value report.Value
}

// WriteJSON writes the plan as one JSON object: its totals, the jobs that
// never ran, and then every job that did on a line of its own.
func WriteJSON(w io.Writer, r *Result) error {
	s := r.Sum()
	fields := []field{
		{"policy", report.Text(r.Policy)},
		{"energy_model", report.Text(r.Model)},
		{"energy_kwh", report.Number(s.EnergyKWh)},
		{"total_wait_s", report.Number(s.TotalWait)},
		{"mean_wait_s", report.Number(s.MeanWait)},
		{"longest_wait_s", report.Number(s.LongestWait)},
		{"delayed", report.Count(s.Delayed)},
		{"running_s", report.Number(s.Running)},
		{"makespan_s", report.Number(s.Makespan)},
		{"jobs_total", report.Count(s.Jobs)},
	}
	if r.Among > 0 {
		fields = slices.Insert(fields, 1, field{"chosen_among", report.Count(r.Among)})
	}
	if r.Simple != nil {
		fields = append(fields,
			field{"simple_energy_kwh", report.Number(r.Simple.EnergyKWh)},
			field{"simple_total_wait_s", report.Number(r.Simple.TotalWait)},
			field{"simple_longest_wait_s", report.Number(r.Simple.LongestWait)})
	}
	out := bufio.NewWriter(w)
	_, _ = out.WriteString("{\n  ") // a bufio.Writer keeps its first error until it is flushed
	for _, f := range fields {
		line := append(report.AppendQuoted(nil, f.key), ": "...)
		_, _ = out.Write(append(f.value.AppendJSON(line), ",\n  "...))
	}
	_, _ = out.WriteString(`"infeasible": `)
	if err := r.neverRanTable().WriteArray(out, "  "); err != nil {
		return err
	}
	_, _ = out.WriteString(",\n  \"jobs\": ")
	if err := r.table(s.Placed).WriteArray(out, "  "); err != nil {
		return err
	}
	_, _ = out.WriteString("\n}\n")
	return out.Flush()
}

// WriteCSV writes one row for each job that ran, in the order of the queue.
func WriteCSV(w io.Writer, r *Result) error {
	return r.table(len(r.Plan.Assignments)).WriteCSV(w)
}

// table has a row for each job that ran.
func (r *Result) table(rows int) *report.Table {
	return &report.Table{
		Columns: []report.Column{
			{Key: "id", Head: "job", Left: true, Max: maxName},
			{Key: "type", Head: "GPUs", Left: true},
			{Key: "start_s", Head: "start", Unit: report.Seconds},
			{Key: "end_s", Head: "end", Unit: report.Seconds},
			{Head: "wait", Unit: report.Seconds},
		},
		Rows: func(yield func([]report.Value) bool) {
			for i := range r.Plan.Assignments {
				a, t := &r.Plan.Assignments[i], &r.Problem.Tasks[i]
				if a.Node >= 0 && !yield([]report.Value{
					report.Text(t.ID), report.Text(t.Options[a.Option].Model), report.Number(a.Start), report.Number(a.End),
					report.Number(a.Start - t.Arrival),
				}) {
					return
				}
			}
		},
		Len: rows,
	}
}

// WriteTable writes the plan for people.
func WriteTable(w io.Writer, r *Result, opts *report.TextOptions) error {
	out := bufio.NewWriter(w)
	s := r.Sum()
	line := func(label, text string) {
		report.WriteLines(out, opts.Paint(report.Bold, fmt.Sprintf("%-7s", label))+"  "+text)
	}
	chosen := ""
	if r.Among > 0 {
		chosen = fmt.Sprintf(" (chosen among %d on drawn outcomes)", r.Among)
	}
	line("Plan", fmt.Sprintf("%s%s, %s energy", queue.Printable(r.Policy), chosen, r.Model))
	line("Jobs", fmt.Sprintf("%s of %s ran; the last one ends at %s", report.FormatCount(s.Placed),
		report.FormatCount(s.Jobs), report.FormatSeconds(s.Makespan)))
	line("Energy", fmt.Sprintf("%.4f kWh%s", s.EnergyKWh,
		r.changeText(s.EnergyKWh, func(q *Sum) float64 { return q.EnergyKWh })))
	line("Wait", fmt.Sprintf("%s in all, %s on average%s; %s had to", report.FormatSeconds(s.TotalWait),
		report.FormatSeconds(s.MeanWait),
		r.changeText(s.TotalWait, func(q *Sum) float64 { return q.TotalWait }), report.Plural(s.Delayed,
			"job")))
	line("Longest", report.FormatSeconds(s.LongestWait)+r.changeText(s.LongestWait, func(q *Sum) float64 {
		return q.LongestWait
	}))
	if left := r.neverRanTable(); left.Len > 0 {
		report.WriteLines(out, "", opts.Paint(report.BoldRed, report.Plural(left.Len, "job")+" can't be planned:"))
		if err := left.WriteText(out, opts); err != nil {
			return err
		}
	}
	report.WriteLines(out, "")
	if err := r.table(s.Placed).WriteText(out, opts); err != nil {
		return err
	}
	return out.Flush()
}

// changeText states a figure's change against the Simple rule, if that is known.
func (r *Result) changeText(x float64, of func(*Sum) float64) string {
	if r.Simple == nil || of(r.Simple) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%+.1f %% against simple)", 100*(x/of(r.Simple)-1))
}
