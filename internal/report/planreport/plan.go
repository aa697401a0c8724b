package planreport

import (
	"bufio"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner"
)

// jsonField is a member of a JSON object.
type jsonField struct {
	key   string
	value report.Value
}

// searchText says whether the search for a better plan was done.
func (s *Summary) searchText() string {
	if s.Cut {
		return "cut"
	}
	return "done"
}

// fields are the totals of a plan in the order of its JSON.
func (r *Result) fields() []jsonField {
	s := Summarise(r)
	out := []jsonField{
		{"policy", report.Text(s.Policy)},
		{"status", report.Text(s.Status.String())},
		{"mode", report.Text(s.Mode.String())},
		{"start", report.Text(s.Start.String())},
	}
	if s.From != "" {
		out = append(out, jsonField{"improved_from", report.Text(s.From)})
	}
	out = append(out, jsonField{"search", report.Text(s.searchText())})
	if r.Seed != nil {
		out = append(out, jsonField{"seed", report.JSON(strconv.FormatUint(*r.Seed, 10))})
	}
	if !r.QueueAt.IsZero() {
		out = append(out, jsonField{"queue_at", report.Text(r.QueueAt.UTC().Format(time.RFC3339))})
	}
	if s.Shared > 0 {
		out = append(out,
			jsonField{"shared_jobs", report.Count(s.Shared)}, jsonField{"shared_gpus", report.Count(s.SharedGPUs)},
			jsonField{"slowed", report.Count(s.Slowed)}, jsonField{"worst_slowdown", report.Number(s.WorstSlowdown)},
		)
	}
	return append(out,
		jsonField{"jobs_total", report.Count(s.JobsTotal)},
		jsonField{"misses", report.Count(s.Misses)},
		jsonField{"past_due", report.Count(s.PastDue)},
		jsonField{"objective", report.Number(s.Objective)},
		jsonField{"objective_unit", report.Text(s.ObjectiveUnit)},
		jsonField{"objective_bound", report.NonZero(s.ObjectiveBound)},
		jsonField{"objective_gap", report.Number(s.ObjectiveGap())},
		jsonField{"energy_j", report.Number(s.Energy)},
		jsonField{"run_j", report.Number(s.Run)},
		jsonField{"idle_j", report.Number(s.Idle)},
		jsonField{"turn_on_j", report.Number(s.TurnOn)},
		jsonField{"host_j", report.Number(s.Host)},
		jsonField{"sleep_j", report.Number(s.Sleep)},
		jsonField{"baseline_energy_j", report.NonZero(s.Baseline)},
		jsonField{"saving", report.Number(s.Saving())},
		jsonField{"saving_interval", s.SavingInterval.objectValue()},
		jsonField{"modelled", report.Number(s.Modelled)},
		jsonField{"error_unknown", report.Number(s.UnknownErrorShare)},
		jsonField{"prior", s.Prior.objectValue()},
		jsonField{"power_assumed_jobs", report.Count(s.Assumed)},
		jsonField{"bound_j", report.NonZero(s.Bound)},
		jsonField{"gap", report.Number(s.Gap())},
		jsonField{"nodes_used", report.Count(s.NodesUsed)},
		jsonField{"gpus_used", report.Count(s.GPUsUsed)},
		jsonField{"end_s", report.Number(s.End)},
		jsonField{"makespan_s", report.Number(s.Makespan)},
		jsonField{"wait_mean_s", report.Number(s.Wait.Mean)},
		jsonField{"wait_p95_s", report.Number(s.Wait.P95)},
		jsonField{"turnaround_mean_s", report.Number(s.Turnaround.Mean)},
		jsonField{"turnaround_p95_s", report.Number(s.Turnaround.P95)},
		jsonField{"baseline", s.baselineValue()},
		jsonField{"easy", s.Easy.objectValue()},
		jsonField{"constant", s.Constant.constantValue()},
		jsonField{"newly_late", r.idsValue(s.NewlyLate)},
	)
}

// baselineValue is what the saving is against, as an object: where only its energy is
// known, that alone.
func (s *Summary) baselineValue() report.Value {
	if s.Reference == nil && s.Baseline > 0 {
		return newObject([]jsonField{{"energy_j", report.Number(s.Baseline)}})
	}
	return s.Reference.objectValue()
}

// objectValue is a plan that others are measured against, as an object; missing where
// it isn't known.
func (s *Summary) objectValue() report.Value {
	if s == nil {
		return report.Value{}
	}
	return newObject(s.fields())
}

// constantValue is a plan at constant clocks as an object, with its saving and its clocks.
func (s *Summary) constantValue() report.Value {
	if s == nil {
		return report.Value{}
	}
	clocks := make([]jsonField, 0, len(s.Clocks))
	for _, model := range slices.Sorted(maps.Keys(s.Clocks)) {
		at := s.Clocks[model]
		pair := []jsonField{{"core_mhz", report.Number(at.Core)}, {"mem_mhz", report.Number(at.Mem)}}
		if at.Core == 0 { // the GPU model has no table
			pair = []jsonField{{"fc", report.Number(at.Scaling.Fc)}, {"fm", report.Number(at.Scaling.Fm)}}
		}
		clocks = append(clocks, jsonField{model, newObject(pair)})
	}
	return newObject(append(s.fields(), jsonField{"saving", report.Number(s.Saving())},
		jsonField{"clocks", newObject(clocks)}))
}

// fields are the members of [Summary.objectValue].
func (s *Summary) fields() []jsonField {
	return []jsonField{
		{"energy_j", report.Number(s.Energy)},
		{"past_due", report.Count(s.PastDue)},
		{"misses", report.Count(s.Misses)},
		{"makespan_s", report.Number(s.Makespan)},
		{"wait_mean_s", report.Number(s.Wait.Mean)},
		{"wait_p95_s", report.Number(s.Wait.P95)},
		{"turnaround_mean_s", report.Number(s.Turnaround.Mean)},
		{"turnaround_p95_s", report.Number(s.Turnaround.P95)},
	}
}

// newObject is a cell with a JSON object.
func newObject(fields []jsonField) report.Value {
	text := []byte{'{'}
	for i, f := range fields {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = f.value.AppendJSON(append(report.AppendQuoted(text, f.key), ": "...))
	}
	return report.JSON(string(append(text, '}')))
}

// idsValue is a cell with a list of jobs.
func (r *Result) idsValue(tasks []int) report.Value {
	text := []byte{'['}
	for i, task := range tasks {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = report.AppendQuoted(text, r.Problem.Tasks[task].ID)
	}
	return report.JSON(string(append(text, ']')))
}

// WritePlanJSON writes a plan as one JSON object: its totals, the jobs that
// can't be planned, warnings, and then every planned job on a line of its own.
func WritePlanJSON(w io.Writer, r *Result) error {
	out := bufio.NewWriterSize(w, 1<<16)
	line := []byte("{\n")
	for _, f := range r.fields() {
		line = append(report.AppendQuoted(append(line, "  "...), f.key), ": "...)
		line = append(f.value.AppendJSON(line), ",\n"...)
	}
	line = append(line, `  "infeasible": `...)
	_, _ = out.Write(line)
	if err := r.infeasibleTable().WriteArray(out, "  "); err != nil {
		return err
	}
	line = append(line[:0], ",\n  \"warnings\": ["...)
	for i, warning := range r.Plan.Warnings {
		if i > 0 {
			line = append(line, ", "...)
		}
		line = report.AppendQuoted(line, warning.Error())
	}
	line = append(line, "],\n  \"jobs\": "...)
	_, _ = out.Write(line)
	if err := r.jobTable(false).WriteArray(out, "  "); err != nil {
		return err
	}
	if shared := r.sharedTable(); shared != nil {
		_, _ = out.WriteString(",\n  \"shared\": ")
		if err := shared.WriteArray(out, "  "); err != nil {
			return err
		}
	}
	_, _ = out.WriteString("\n}\n")
	return out.Flush()
}

// WritePlanCSV writes one row for each job of the batch, in its order. A job
// that can't be planned has no node, and its reason says why.
func WritePlanCSV(w io.Writer, r *Result) error {
	return r.jobTable(true).WriteCSV(w)
}

// infeasibleTable lists the jobs that can't be planned.
func (r *Result) infeasibleTable() *report.Table {
	return &report.Table{
		Columns: []report.Column{
			{Key: "id", Head: "job", Left: true, Max: maxName},
			{Key: "why", Head: "why", Left: true},
			{Key: "finish_if_free_s", Head: "finish if free", Unit: report.Seconds},
		},
		Rows: func(yield func([]report.Value) bool) {
			for _, u := range r.Plan.Unplaced {
				if !yield([]report.Value{
					report.Text(r.Problem.Tasks[u.Task].ID), report.Text(u.Why), report.Number(u.Earliest),
				}) {
					return
				}
			}
		},
		Len: len(r.Plan.Unplaced),
	}
}

// jobColumns are those of a job in JSON and CSV.
func jobColumns() []report.Column {
	return []report.Column{
		{Key: "id"},
		{Key: "node"},
		{Key: "node_class"},
		{Key: "gpus"},
		{Key: "nodes", Optional: true, JSONOnly: true},
		{Key: "start_s"},
		{Key: "end_s"},
		{Key: "deadline_s"},
		{Key: "v"},
		{Key: "fc"},
		{Key: "fm"},
		{Key: "core_mhz", Optional: true},
		{Key: "mem_mhz", Optional: true},
		{Key: "power_w"},
		{Key: "energy_j"},
		{Key: "reason"},
	}
}

// deadlineColumn is where in jobColumns the deadline is.
const deadlineColumn = 7

// jobTable has a row for each planned job; for a CSV file one for the other ones too.
func (r *Result) jobTable(csv bool) *report.Table {
	columns := jobColumns()
	return &report.Table{Columns: columns, Rows: func(yield func([]report.Value) bool) {
		row, runs := make([]report.Value, len(columns)), r.Problem.RunningTasks()
		left := r.Plan.Unplaced // by task, ascending
		for i := range r.Plan.Assignments {
			if runs != nil && runs[i] {
				continue
			}
			t := &r.Problem.Tasks[i]
			why := ""
			if len(left) > 0 && left[0].Task == i {
				why, left = left[0].Why, left[1:]
			}
			if r.Plan.Assignments[i].Node < 0 {
				if !csv {
					continue
				}
				clear(row)
				row[0], row[deadlineColumn], row[len(row)-1] = report.Text(t.ID), report.Number(t.Deadline),
					report.Text("not planned: "+why)
			} else {
				r.fillJob(row, i, csv)
			}
			if !yield(row) {
				return
			}
		}
	}}
}

// fillJob sets the values of jobColumns. A CSV file has all nodes of a job in one cell.
func (r *Result) fillJob(row []report.Value, task int, csv bool) {
	t, a := &r.Problem.Tasks[task], &r.Plan.Assignments[task]
	node, gpus, nodes := report.Count(int(a.Node)), report.GPUs(a.GPUs), report.Value{}
	switch {
	case len(a.More) == 0:
	case csv:
		node, gpus = partTexts(a, func(part planner.Part) string { return strconv.Itoa(int(part.Node)) }),
			partTexts(a, func(part planner.Part) string { return string(report.AppendSet(nil, part.GPUs, " ")) })
	default:
		nodes = partObjects(a)
	}
	copy(row, []report.Value{
		report.Text(t.ID),
		node,
		report.Text(r.Problem.Cluster.Classes[r.Plan.Nodes[a.Node].Class].Name),
		gpus,
		nodes,
		report.Number(a.Start),
		report.Number(a.End),
		report.Number(t.Deadline),
		report.Number(a.Point.Scaling.V),
		report.Number(a.Point.Scaling.Fc),
		report.Number(a.Point.Scaling.Fm),
		report.NonZero(a.Point.Core),
		report.NonZero(a.Point.Mem),
		report.Number(a.Power(t)),
		report.Number(a.Energy(t)),
		report.Text(a.Reason.String()),
	})
}

// partTexts is a cell with a text for each node of a job, semicolons between them.
func partTexts(a *planner.Assignment, text func(planner.Part) string) report.Value {
	var all []string
	for part := range a.Parts {
		all = append(all, text(part))
	}
	return report.Text(strings.Join(all, ";"))
}

// partObjects is a cell with a list of objects, one for each node of a job.
func partObjects(a *planner.Assignment) report.Value {
	var all []string
	for part := range a.Parts {
		one := newObject([]jsonField{{"node", report.Count(int(part.Node))}, {"gpus", report.GPUs(part.GPUs)}})
		all = append(all, string(one.AppendJSON(nil)))
	}
	return report.JSON("[" + strings.Join(all, ", ") + "]")
}

// eachPlanned yields the planned tasks in the order of the batch, without those that run at
// the present.
func (r *Result) eachPlanned(yield func(task int, a *planner.Assignment) bool) {
	runs := r.Problem.RunningTasks()
	for task, a := range r.eachWithNodes {
		if (runs == nil || !runs[task]) && !yield(task, a) {
			return
		}
	}
}

// eachWithNodes yields the tasks that have nodes, those that run at the present among them.
func (r *Result) eachWithNodes(yield func(task int, a *planner.Assignment) bool) {
	for i := range r.Plan.Assignments {
		if a := &r.Plan.Assignments[i]; a.Node >= 0 && !yield(i, a) {
			return
		}
	}
}

// isLate reports whether a task ends after its deadline.
func (r *Result) isLate(task int) bool {
	_, late := slices.BinarySearch(r.Plan.Misses, task)
	return late
}
