package planreport

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/queue"
)

// jsonField is a member of a JSON object: a value, or a list of objects.
type jsonField struct {
	key    string
	value  report.Value
	object bool // the value is an object, if it isn't missing
	list   *report.Table
}

// fields returns the totals of a plan in the order of its JSON.
func (r *Result) fields() []jsonField {
	s := Summarise(r)
	out := []jsonField{
		{key: "policy", value: report.Text(s.Policy)},
		{key: "status", value: report.Text(s.Status.String())},
		{key: "mode", value: report.Text(s.Mode.String())},
		{key: "start", value: report.Text(s.Start.String())},
	}
	if s.From != "" {
		out = append(out, jsonField{key: "improved_from", value: report.Text(s.From)})
	}
	search := "done" // for a better plan
	if s.Cut {
		search = "cut"
	}
	out = append(out, jsonField{key: "search", value: report.Text(search)})
	if r.Seed != nil {
		out = append(out, jsonField{key: "seed", value: report.JSON(strconv.FormatUint(*r.Seed, 10))})
	}
	if !r.QueueAt.IsZero() {
		out = append(out, jsonField{key: "queue_at", value: report.Text(r.QueueAt.UTC().Format(time.RFC3339))})
	}
	if s.Shared > 0 {
		out = append(out,
			jsonField{key: "shared_jobs", value: report.Count(s.Shared)},
			jsonField{key: "shared_gpus", value: report.Count(s.SharedGPUs)},
			jsonField{key: "slowed", value: report.Count(s.Slowed)},
			jsonField{key: "worst_slowdown", value: report.Number(s.WorstSlowdown)})
	}
	out = append(out,
		jsonField{key: "jobs_total", value: report.Count(s.JobsTotal)},
		jsonField{key: "misses", value: report.Count(s.Misses)},
		jsonField{key: "past_due", value: report.Count(s.PastDue)})
	if s.AlwaysOn {
		out = append(out, jsonField{key: "always_on", value: report.JSON("true")})
	}
	for _, f := range s.figures() {
		out = append(out, f)
		if f.key == "modelled" {
			out = append(out, jsonField{key: "error_unknown", value: report.Number(s.UnknownErrorShare)},
				jsonField{key: "prior", value: s.Prior.objectValue()})
		}
	}
	out = append(out,
		jsonField{key: "peak_w", value: report.Number(s.Peak)})
	if s.Free != nil {
		out = append(out, jsonField{key: "budget_w", value: report.Number(s.Budget)},
			jsonField{key: "without_budget", value: s.Free.objectValue()},
			jsonField{key: "power", value: powerSteps(r)})
	}
	if s.Hours != nil {
		out = append(out, jsonField{key: "hours", value: s.Hours.object()})
	}
	out = append(out,
		jsonField{key: "slower", value: s.Slower.objectValue(jsonField{key: "pace", value: report.Number(s.Pace)})},
		jsonField{key: "hindsight", value: s.Hindsight.objectValue()},
		jsonField{key: "least", value: s.Least.objectValue()})
	return append(out, jsonField{key: "newly_late", value: textList(r.ids(s.NewlyLate))})
}

// powerSteps returns what a plan takes over time, each from its time on.
func powerSteps(r *Result) report.Value {
	course := newPowerTimeline(r.Problem, r.Plan)
	steps := make([]string, len(course.at))
	for i, at := range course.at {
		steps[i] = fmt.Sprintf(`{"t_s": %s, "w": %s}`, strconv.FormatFloat(at, 'g', -1, 64),
			strconv.FormatFloat(max(0, course.power[i].total()), 'g', -1, 64))
	}
	return report.JSON("[" + strings.Join(steps, ", ") + "]")
}

// figures returns what a plan comes to, as machines get it of a plan and in comparisons.
func (s *Summary) figures() []jsonField {
	baseline := s.Reference.objectValue()
	if s.Reference == nil && s.Baseline > 0 {
		baseline = newObject([]jsonField{{key: "energy_j", value: report.Number(s.Baseline)}})
	}
	return slices.Concat([]jsonField{
		{key: "objective", value: report.Number(s.Objective)},
		{key: "objective_unit", value: report.Text(s.ObjectiveUnit)},
		{key: "objective_bound", value: report.NonZero(s.ObjectiveBound)},
		{key: "objective_gap", value: report.Number(s.ObjectiveGap())},
		{key: "energy_j", value: report.Number(s.Energy)},
		{key: "run_j", value: report.Number(s.Run)},
		{key: "idle_j", value: report.Number(s.Idle)},
		{key: "turn_on_j", value: report.Number(s.TurnOn)},
		{key: "host_j", value: report.Number(s.Host)},
		{key: "sleep_j", value: report.Number(s.Sleep)},
		{key: "baseline_energy_j", value: report.NonZero(s.Baseline)},
		{key: "saving", value: report.Number(s.Saving())},
		{key: "max_turnaround", value: report.NonZero(s.MaxTurnaround)},
		{key: "saving_interval", value: s.SavingInterval.objectValue(), object: true},
		{key: "modelled", value: report.Number(s.Modelled)},
		{key: "power_assumed_jobs", value: report.Count(s.Assumed)},
		{key: "bound_j", value: report.NonZero(s.Bound)},
		{key: "gap", value: report.Number(s.Gap())},
		{key: "nodes_used", value: report.Count(s.NodesUsed)},
		{key: "gpus_used", value: report.Count(s.GPUsUsed)},
		{key: "end_s", value: report.Number(s.End)},
	}, s.times(), costFields(s), []jsonField{
		{key: "baseline", value: baseline, object: true},
		{key: "easy", value: s.Easy.objectValue(), object: true},
		{key: "constant", value: s.Constant.constantValue(), object: true},
	})
}

// costFields returns the cost, carbon and water of a plan's energy; null without a factor.
func costFields(s *Summary) []jsonField {
	stated := s.Factors.StatedFootprint(s.Energy)
	number := func(x *float64) (v report.Value) {
		if x != nil {
			v = report.Number(*x)
		}
		return v
	}
	return []jsonField{
		{key: "cost", value: number(stated.Cost)},
		{key: "currency", value: report.NonEmpty(s.Factors.Currency)},
		{key: "carbon_g", value: number(stated.Carbon)},
		{key: "water_l", value: number(stated.Water)},
	}
}

// times returns how long a plan takes, and keeps jobs waiting.
func (s *Summary) times() []jsonField {
	return []jsonField{
		{key: "makespan_s", value: report.Number(s.Makespan)},
		{key: "wait_mean_s", value: report.Number(s.Wait.Mean)},
		{key: "wait_p95_s", value: report.Number(s.Wait.P95)},
		{key: "turnaround_mean_s", value: report.Number(s.Turnaround.Mean)},
		{key: "turnaround_p95_s", value: report.Number(s.Turnaround.P95)},
	}
}

// objectValue returns a plan that others are measured against, as an object with some more
// members; missing where it isn't known.
func (s *Summary) objectValue(more ...jsonField) report.Value {
	if s == nil {
		return report.Value{}
	}
	return newObject(slices.Concat([]jsonField{
		{key: "energy_j", value: report.Number(s.Energy)},
		{key: "past_due", value: report.Count(s.PastDue)},
		{key: "misses", value: report.Count(s.Misses)},
	}, s.times(), more))
}

// constantValue returns a plan at constant clocks as an object, with its saving and its clocks.
func (s *Summary) constantValue() report.Value {
	if s == nil {
		return report.Value{}
	}
	clocks := make([]jsonField, 0, len(s.Clocks))
	for _, model := range slices.Sorted(maps.Keys(s.Clocks)) {
		at := s.Clocks[model]
		pair := []jsonField{
			{key: "core_mhz", value: report.Number(at.Core)}, {key: "mem_mhz", value: report.Number(at.Mem)},
		}
		if at.Cap != 0 {
			pair = append(pair, jsonField{key: "cap_w", value: report.Number(at.Cap)})
		}
		if at.Core == 0 { // the GPU model has no table
			pair = []jsonField{
				{key: "fc", value: report.Number(at.Scaling.Fc)}, {key: "fm", value: report.Number(at.Scaling.Fm)},
			}
		}
		clocks = append(clocks, jsonField{key: model, value: newObject(pair)})
	}
	return s.objectValue(jsonField{key: "saving", value: report.Number(s.Saving())},
		jsonField{key: "hindsight", value: report.JSON(strconv.FormatBool(s.Mode == planner.Online))},
		jsonField{key: "clocks", value: newObject(clocks)})
}

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

// textList returns a cell with a JSON array of strings.
func textList(all []string) report.Value {
	line := []byte{'['}
	for i, s := range all {
		if i > 0 {
			line = append(line, ", "...)
		}
		line = report.AppendQuoted(line, s)
	}
	return report.JSON(string(append(line, ']')))
}

func (r *Result) ids(tasks []int) []string {
	all := make([]string, len(tasks))
	for i, task := range tasks {
		all[i] = r.Problem.Tasks[task].ID
	}
	return all
}

// writeObject writes a JSON object with a member, or one object of a list, a line.
func writeObject(w io.Writer, fields []jsonField) error {
	out := bufio.NewWriterSize(w, 1<<16)
	before := "{\n  "
	for _, f := range fields {
		line := append(report.AppendQuoted([]byte(before), f.key), ": "...)
		before = ",\n  "
		if f.list == nil {
			_, _ = out.Write(f.value.AppendJSON(line))
			continue
		}
		_, _ = out.Write(line)
		if err := f.list.WriteArray(out, "  "); err != nil {
			return err
		}
	}
	_, _ = out.WriteString("\n}\n")
	return out.Flush()
}

// WritePlanJSON writes a plan as one JSON object: its totals, the jobs that
// can't be planned, warnings by kind, on request each one, and then every planned job on a line of its own.
func WritePlanJSON(w io.Writer, r *Result) error {
	fields := append(r.fields(), jsonField{key: "infeasible", list: r.infeasibleTable()},
		jsonField{key: "warnings", list: warningTable(r)}, jsonField{key: "jobs", list: r.jobTable(false)})
	if shared := r.sharedTable(); shared != nil {
		fields = append(fields, jsonField{key: "shared", list: shared})
	}
	return writeObject(w, fields)
}

// WritePlanCSV writes one row for each job of the batch, in its order. A job
// that can't be planned has no node, and its reason says why.
func WritePlanCSV(w io.Writer, r *Result) error {
	return r.jobTable(true).WriteCSV(w)
}

// warningTable lists the kinds of warnings, the most dangerous first.
func warningTable(r *Result) *report.Table {
	kinds := queue.SummariseWarnings(r.Plan.Warnings, r.EveryWarning)
	columns := []report.Column{{Key: "kind"}, {Key: "count"}, {Key: "text"}, {Key: "example"}}
	if r.EveryWarning {
		columns = append(columns, report.Column{Key: "all"})
	}
	return report.NewTable(columns, len(kinds), func(i int) []report.Value {
		k := &kinds[i]
		return []report.Value{
			report.Text(k.Kind), report.Count(k.Count), report.Text(k.Text), report.Text(k.Example), textList(k.All),
		}[:len(columns)]
	})
}

// infeasibleTable lists the jobs that can't be planned.
func (r *Result) infeasibleTable() *report.Table {
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

// jobColumns returns those of a job in JSON and CSV, with that of power caps where any is set.
func jobColumns(capped bool) []report.Column {
	columns := []report.Column{
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
		{Key: "cap_w", Optional: true},
		{Key: "power_w"},
		{Key: "energy_j"},
		{Key: "reason"},
	}
	if !capped {
		return slices.Delete(columns, capColumn, capColumn+1)
	}
	return columns
}

// Where in jobColumns the deadline is, and the power cap.
const (
	deadlineColumn = 7
	capColumn      = 13
)

// jobTable has a row for each planned job; for a CSV file one for the other ones too.
func (r *Result) jobTable(csv bool) *report.Table {
	columns := jobColumns(countCapped(r) > 0)
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
	node, gpus, nodes := report.Count(nodeNumber(r, int(a.Node))), report.GPUs(a.GPUs), report.Value{}
	switch {
	case len(a.More) == 0:
	case csv:
		number := func(part planner.Part) string { return strconv.Itoa(nodeNumber(r, int(part.Node))) }
		node, gpus = partTexts(a, number),
			partTexts(a, func(part planner.Part) string { return string(report.AppendSet(nil, part.GPUs, " ")) })
	default:
		nodes = partObjects(r, a)
	}
	values := []report.Value{
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
		report.NonZero(a.Point.Cap),
		report.Number(a.Power(t)),
		report.Number(a.Energy(t)),
		report.Text(a.Reason.String()),
	}
	if len(row) < len(values) {
		values = slices.Delete(values, capColumn, capColumn+1)
	}
	copy(row, values)
}

// partTexts returns a cell with a text for each node of a job, semicolons between them.
func partTexts(a *planner.Assignment, text func(planner.Part) string) report.Value {
	var all []string
	for part := range a.Parts {
		all = append(all, text(part))
	}
	return report.Text(strings.Join(all, ";"))
}

// partObjects returns a cell with a list of objects, one for each node of a job.
func partObjects(r *Result, a *planner.Assignment) report.Value {
	var all []string
	for part := range a.Parts {
		one := newObject([]jsonField{
			{key: "node", value: report.Count(nodeNumber(r, int(part.Node)))},
			{key: "gpus", value: report.GPUs(part.GPUs)},
		})
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
