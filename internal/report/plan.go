package report

import (
	"bufio"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/planner"
)

// jsonField is a member of a JSON object.
type jsonField struct {
	key   string
	value Value
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
		{"policy", Text(s.Policy)},
		{"status", Text(s.Status.String())},
		{"mode", Text(s.Mode.String())},
		{"start", Text(s.Start.String())},
	}
	if s.From != "" {
		out = append(out, jsonField{"improved_from", Text(s.From)})
	}
	out = append(out, jsonField{"search", Text(s.searchText())})
	if r.Seed != nil {
		out = append(out, jsonField{"seed", Value{kind: jsonKind, text: strconv.FormatUint(*r.Seed, 10)}})
	}
	if !r.QueueAt.IsZero() {
		out = append(out, jsonField{"queue_at", Text(r.QueueAt.UTC().Format(time.RFC3339))})
	}
	if s.Shared > 0 {
		out = append(out,
			jsonField{"shared_jobs", Count(s.Shared)}, jsonField{"shared_gpus", Count(s.SharedGPUs)},
			jsonField{"slowed", Count(s.Slowed)}, jsonField{"worst_slowdown", Number(s.WorstSlowdown)},
		)
	}
	return append(out,
		jsonField{"jobs_total", Count(s.JobsTotal)},
		jsonField{"misses", Count(s.Misses)},
		jsonField{"past_due", Count(s.PastDue)},
		jsonField{"objective", Number(s.Objective)},
		jsonField{"objective_unit", Text(s.ObjectiveUnit)},
		jsonField{"objective_bound", nonZero(s.ObjectiveBound)},
		jsonField{"objective_gap", Number(s.ObjectiveGap())},
		jsonField{"energy_j", Number(s.Energy)},
		jsonField{"run_j", Number(s.Run)},
		jsonField{"idle_j", Number(s.Idle)},
		jsonField{"turn_on_j", Number(s.TurnOn)},
		jsonField{"host_j", Number(s.Host)},
		jsonField{"sleep_j", Number(s.Sleep)},
		jsonField{"baseline_energy_j", nonZero(s.Baseline)},
		jsonField{"saving", Number(s.Saving())},
		jsonField{"saving_interval", s.SavingInterval.objectValue()},
		jsonField{"modelled", Number(s.Modelled)},
		jsonField{"error_unknown", Number(s.UnknownErrorShare)},
		jsonField{"prior", s.Prior.objectValue()},
		jsonField{"power_assumed_jobs", Count(s.Assumed)},
		jsonField{"bound_j", nonZero(s.Bound)},
		jsonField{"gap", Number(s.Gap())},
		jsonField{"nodes_used", Count(s.NodesUsed)},
		jsonField{"gpus_used", Count(s.GPUsUsed)},
		jsonField{"end_s", Number(s.End)},
		jsonField{"makespan_s", Number(s.Makespan)},
		jsonField{"wait_mean_s", Number(s.Wait.Mean)},
		jsonField{"wait_p95_s", Number(s.Wait.P95)},
		jsonField{"turnaround_mean_s", Number(s.Turnaround.Mean)},
		jsonField{"turnaround_p95_s", Number(s.Turnaround.P95)},
		jsonField{"baseline", s.baselineValue()},
		jsonField{"easy", s.Easy.objectValue()},
		jsonField{"constant", s.Constant.constantValue()},
		jsonField{"newly_late", r.idsValue(s.NewlyLate)},
	)
}

// baselineValue is what the saving is against, as an object: where only its energy is
// known, that alone.
func (s *Summary) baselineValue() Value {
	if s.Reference == nil && s.Baseline > 0 {
		return newObject([]jsonField{{"energy_j", Number(s.Baseline)}})
	}
	return s.Reference.objectValue()
}

// objectValue is a plan that others are measured against, as an object; missing where
// it isn't known.
func (s *Summary) objectValue() Value {
	if s == nil {
		return Value{}
	}
	return newObject(s.fields())
}

// constantValue is a plan at constant clocks as an object, with its saving and its clocks.
func (s *Summary) constantValue() Value {
	if s == nil {
		return Value{}
	}
	clocks := make([]jsonField, 0, len(s.Clocks))
	for _, model := range slices.Sorted(maps.Keys(s.Clocks)) {
		at := s.Clocks[model]
		pair := []jsonField{{"core_mhz", Number(at.Core)}, {"mem_mhz", Number(at.Mem)}}
		if at.Core == 0 { // the GPU model has no table
			pair = []jsonField{{"fc", Number(at.Scaling.Fc)}, {"fm", Number(at.Scaling.Fm)}}
		}
		clocks = append(clocks, jsonField{model, newObject(pair)})
	}
	return newObject(append(s.fields(), jsonField{"saving", Number(s.Saving())},
		jsonField{"clocks", newObject(clocks)}))
}

// fields are the members of [Summary.objectValue].
func (s *Summary) fields() []jsonField {
	return []jsonField{
		{"energy_j", Number(s.Energy)},
		{"past_due", Count(s.PastDue)},
		{"misses", Count(s.Misses)},
		{"makespan_s", Number(s.Makespan)},
		{"wait_mean_s", Number(s.Wait.Mean)},
		{"wait_p95_s", Number(s.Wait.P95)},
		{"turnaround_mean_s", Number(s.Turnaround.Mean)},
		{"turnaround_p95_s", Number(s.Turnaround.P95)},
	}
}

// newObject is a cell with a JSON object.
func newObject(fields []jsonField) Value {
	text := []byte{'{'}
	for i, f := range fields {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = f.value.appendJSON(append(appendQuoted(text, f.key), ": "...))
	}
	return Value{kind: jsonKind, text: string(append(text, '}'))}
}

// idsValue is a cell with a list of jobs.
func (r *Result) idsValue(tasks []int) Value {
	text := []byte{'['}
	for i, task := range tasks {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = appendQuoted(text, r.Problem.Tasks[task].ID)
	}
	return Value{kind: jsonKind, text: string(append(text, ']'))}
}

// WritePlanJSON writes a plan as one JSON object: its totals, the jobs that
// can't be planned, warnings, and then every planned job on a line of its own.
func WritePlanJSON(w io.Writer, r *Result) error {
	out := bufio.NewWriterSize(w, 1<<16)
	line := []byte("{\n")
	for _, f := range r.fields() {
		line = append(appendQuoted(append(line, "  "...), f.key), ": "...)
		line = append(f.value.appendJSON(line), ",\n"...)
	}
	line = append(line, `  "infeasible": `...)
	_, _ = out.Write(line)
	if err := r.infeasibleTable().writeArray(out, "  "); err != nil {
		return err
	}
	line = append(line[:0], ",\n  \"warnings\": ["...)
	for i, warning := range r.Plan.Warnings {
		if i > 0 {
			line = append(line, ", "...)
		}
		line = appendQuoted(line, warning.Error())
	}
	line = append(line, "],\n  \"jobs\": "...)
	_, _ = out.Write(line)
	if err := r.jobTable(false).writeArray(out, "  "); err != nil {
		return err
	}
	if shared := r.sharedTable(); shared != nil {
		_, _ = out.WriteString(",\n  \"shared\": ")
		if err := shared.writeArray(out, "  "); err != nil {
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
func (r *Result) infeasibleTable() *Table {
	return &Table{
		Columns: []Column{
			{Key: "id", Head: "job", Left: true, Max: maxName},
			{Key: "why", Head: "why", Left: true},
			{Key: "finish_if_free_s", Head: "finish if free", Unit: Seconds},
		},
		Rows: func(yield func([]Value) bool) {
			for _, u := range r.Plan.Unplaced {
				if !yield([]Value{Text(r.Problem.Tasks[u.Task].ID), Text(u.Why), Number(u.Earliest)}) {
					return
				}
			}
		},
		Len: len(r.Plan.Unplaced),
	}
}

// jobColumns are those of a job in JSON and CSV.
func jobColumns() []Column {
	return []Column{
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
func (r *Result) jobTable(csv bool) *Table {
	columns := jobColumns()
	return &Table{Columns: columns, Rows: func(yield func([]Value) bool) {
		row, runs := make([]Value, len(columns)), r.Problem.RunningTasks()
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
				row[0], row[deadlineColumn], row[len(row)-1] = Text(t.ID), Number(t.Deadline),
					Text("not planned: "+why)
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
func (r *Result) fillJob(row []Value, task int, csv bool) {
	t, a := &r.Problem.Tasks[task], &r.Plan.Assignments[task]
	node, gpus, nodes := Count(int(a.Node)), GPUs(a.GPUs), Value{}
	switch {
	case len(a.More) == 0:
	case csv:
		node, gpus = partTexts(a, func(part planner.Part) string { return strconv.Itoa(int(part.Node)) }),
			partTexts(a, func(part planner.Part) string { return string(appendSet(nil, part.GPUs, " ")) })
	default:
		nodes = partObjects(a)
	}
	copy(row, []Value{
		Text(t.ID),
		node,
		Text(r.Problem.Cluster.Classes[r.Plan.Nodes[a.Node].Class].Name),
		gpus,
		nodes,
		Number(a.Start),
		Number(a.End),
		Number(t.Deadline),
		Number(a.Point.Scaling.V),
		Number(a.Point.Scaling.Fc),
		Number(a.Point.Scaling.Fm),
		nonZero(a.Point.Core),
		nonZero(a.Point.Mem),
		Number(a.Power(t)),
		Number(a.Energy(t)),
		Text(a.Reason.String()),
	})
}

// partTexts is a cell with a text for each node of a job, semicolons between them.
func partTexts(a *planner.Assignment, text func(planner.Part) string) Value {
	var all []string
	for part := range a.Parts {
		all = append(all, text(part))
	}
	return Text(strings.Join(all, ";"))
}

// partObjects is a cell with a list of objects, one for each node of a job.
func partObjects(a *planner.Assignment) Value {
	var all []string
	for part := range a.Parts {
		one := newObject([]jsonField{{"node", Count(int(part.Node))}, {"gpus", GPUs(part.GPUs)}})
		all = append(all, one.text)
	}
	return Value{kind: jsonKind, text: "[" + strings.Join(all, ", ") + "]"}
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
