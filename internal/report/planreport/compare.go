package planreport

import (
	"bufio"
	"io"
	"slices"
	"time"

	"github.com/epplan/epplan/internal/report"
)

// Run is one row of a comparison: a policy with its parameters, and what came
// of it.
type Run struct {
	Params   []Param
	Summary  Summary
	Planning time.Duration
	// Unfinished says that planning was stopped: the summary is that of the best plan so
	// far, or has the policy's name alone where there was none.
	Unfinished bool
}

// Planned reports whether there is a plan.
func (r *Run) Planned() bool { return !r.Unfinished || r.Summary.JobsTotal > 0 }

// unfinishedText is the status of a run that was stopped.
const unfinishedText = "unfinished"

// stoppedValue is a cell that says so for people; missing where it wasn't.
func (r *Run) stoppedValue() report.Value {
	if r.Unfinished {
		return report.Text(unfinishedText)
	}
	return report.Value{}
}

// appendMissing fills a row of so many columns up.
func appendMissing(row []report.Value, columns int) []report.Value {
	return append(row, make([]report.Value, columns-len(row))...)
}

// Param is a parameter that distinguishes runs, such as θ or l. Its key is its
// column.
type Param struct {
	Key   string
	Value report.Value
}

// Comparison is a table of several runs, a row each, in the given order. Each
// parameter has a column of its own, in the order of its first use.
func Comparison(runs []Run) *report.Table {
	keys := paramKeys(runs)
	figures := comparedColumns()
	sharing := slices.ContainsFunc(runs, func(r Run) bool { return r.Summary.Shared > 0 })
	if sharing {
		figures = append(figures, report.Column{Key: "slowed", Head: "slowed"},
			report.Column{Key: "worst_slowdown"}, report.Column{Head: "worst slowdown", Note: "× alone"})
	}
	columns := make([]report.Column, 0, 1+len(keys)+len(figures))
	columns = append(columns, report.Column{Key: "policy", Head: "policy", Left: true, Max: 40})
	for _, key := range keys {
		columns = append(columns, report.Column{Key: key, Head: key})
	}
	columns = append(columns, figures...)
	return &report.Table{Columns: columns, Len: len(runs), Rows: func(yield func([]report.Value) bool) {
		for i := range runs {
			row := append(make([]report.Value, 0, len(columns)), report.Text(runs[i].Summary.Policy))
			for _, key := range keys {
				row = append(row, runs[i].param(key))
			}
			row = runs[i].appendCompared(row)
			if sharing && runs[i].Planned() {
				row = append(row, report.Count(runs[i].Summary.Slowed))
				row = append(row, runs[i].Summary.slowdownValues()...)
			}
			if !yield(appendMissing(row, len(columns))) {
				return
			}
		}
	}}
}

func paramKeys(runs []Run) []string {
	var keys []string
	for i := range runs {
		for _, p := range runs[i].Params {
			if !slices.Contains(keys, p.Key) {
				keys = append(keys, p.Key)
			}
		}
	}
	return keys
}

func (r *Run) param(key string) report.Value {
	for _, p := range r.Params {
		if p.Key == key {
			return p.Value
		}
	}
	return report.Value{}
}

// comparedColumns are those after the parameters: people get the times as multiples
// of the baseline's, machines the seconds.
func comparedColumns() []report.Column {
	return []report.Column{
		{Key: "status"},
		{Head: "search", Left: true},
		{Key: "jobs_total"},
		{Key: "misses"},
		{Head: "misses"},
		{Key: "infeasible"},
		{Head: "infeasible"},
		{Key: "past_due"},
		{Head: "past", Note: "due"},
		{Key: "objective"},
		{Key: "objective_unit"},
		{Head: "objective"},
		{Key: "objective_bound"},
		{Key: "objective_gap"},
		{Key: "energy_j"},
		{Key: "run_j"},
		{Key: "idle_j"},
		{Key: "turn_on_j"},
		{Key: "host_j"},
		{Key: "sleep_j"},
		{Key: "baseline_energy_j"},
		{Key: "saving", Head: "saving", Unit: report.Fraction},
		{Key: "saving_interval", JSONOnly: true},
		{Key: "modelled"},
		{Key: "power_assumed_jobs"},
		{Key: "bound_j"},
		{Key: "gap"},
		{Key: "nodes_used"},
		{Key: "gpus_used"},
		{Key: "end_s"},
		{Head: "end", Unit: report.Seconds},
		{Key: "makespan_s"},
		{Head: "makespan"},
		{Key: "wait_mean_s"},
		{Head: "wait", Note: "mean"},
		{Key: "wait_p95_s"},
		{Head: "wait", Note: "p95"},
		{Key: "turnaround_mean_s"},
		{Head: "turnaround", Note: "mean"},
		{Key: "turnaround_p95_s"},
		{Head: "turnaround", Note: "p95"},
		{Key: "baseline", JSONOnly: true},
		{Key: "easy", JSONOnly: true},
		{Key: "constant", JSONOnly: true},
		{Key: "planning_s"},
	}
}

func (r *Run) appendCompared(row []report.Value) []report.Value {
	s := &r.Summary
	status := s.Status.String()
	if r.Unfinished {
		status = unfinishedText
	}
	if !r.Planned() {
		row = appendMissing(append(row, report.Text(status), r.stoppedValue()), len(row)+len(comparedColumns()))
		row[len(row)-1] = report.Number(r.Planning.Seconds())
		return row
	}
	matters := func(n int) report.Value { // people see the columns only where they matter
		if n > 0 {
			return report.Count(n)
		}
		return report.Value{}
	}
	end := report.Value{}
	if s.Reference == nil {
		end = report.Number(s.End)
	}
	return append(row,
		report.Text(status), r.stoppedValue(), report.Count(s.JobsTotal), report.Count(s.Misses), matters(s.Misses),
		report.Count(s.Infeasible), matters(s.Infeasible),
		report.Count(s.PastDue), matters(s.PastDue),
		report.Number(s.Objective), report.Text(s.ObjectiveUnit), s.objectiveTimes(),
		report.NonZero(s.ObjectiveBound),
		report.Number(s.ObjectiveGap()), report.Number(s.Energy), report.Number(s.Run), report.Number(s.Idle),
		report.Number(s.TurnOn),
		report.Number(s.Host), report.Number(s.Sleep),
		report.NonZero(s.Baseline), report.Number(s.Saving()), s.SavingInterval.objectValue(),
		report.Number(s.Modelled),
		report.Count(s.Assumed), report.NonZero(s.Bound), report.Number(s.Gap()),
		report.Count(s.NodesUsed), report.Count(s.GPUsUsed), report.Number(s.End), end,
		report.Number(s.Makespan), s.timesBaseline(func(s *Summary) float64 { return s.Makespan }),
		report.Number(s.Wait.Mean), s.timesBaseline(func(s *Summary) float64 { return s.Wait.Mean }),
		report.Number(s.Wait.P95), s.timesBaseline(func(s *Summary) float64 { return s.Wait.P95 }),
		report.Number(s.Turnaround.Mean), s.timesBaseline(func(s *Summary) float64 { return s.Turnaround.Mean }),
		report.Number(s.Turnaround.P95), s.timesBaseline(func(s *Summary) float64 { return s.Turnaround.P95 }),
		s.baselineValue(), s.Easy.objectValue(), s.Constant.constantValue(), report.Number(r.Planning.Seconds()),
	)
}

// WriteComparison writes runs for people: what they save and what that costs in
// time, and where their energy goes.
func WriteComparison(w io.Writer, runs []Run, opts *report.TextOptions) error {
	out := bufio.NewWriter(w)
	if slices.ContainsFunc(runs, func(r Run) bool { return r.Summary.Reference != nil }) {
		report.WriteLines(out, "Against first come, first served at default clocks; times as multiples of its own:")
	}
	if err := Comparison(runs).WriteText(out, opts); err != nil {
		return err
	}
	for _, text := range savingsBasis(runs) {
		report.WriteLines(out, text)
	}
	if !slices.ContainsFunc(runs, func(r Run) bool { return r.Planned() }) {
		return out.Flush()
	}
	measured := "it is"
	if slices.ContainsFunc(runs, func(r Run) bool { return r.Planned() && !r.Summary.forEnergy() }) {
		measured = "the objective is"
	}
	report.WriteLines(out, "",
		"Where the energy goes, and how far "+measured+" above what no schedule can beat (gap):")
	if err := energyShares(runs).WriteText(out, opts); err != nil {
		return err
	}
	return out.Flush()
}

// savingsBasis says of each problem what stands behind its savings beside models, by its first
// plan.
func savingsBasis(runs []Run) []string {
	var all []string
	runs = slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return !r.Planned() })
	for _, c := range runsByProblem(runs) {
		if text := c.runs[0].Summary.unmodelledText(); text != "" && c.runs[0].Summary.Baseline > 0 {
			if c.name != "" {
				text = " " + c.name + text
			}
			all = append(all, "Savings"+text+".")
		}
	}
	return all
}

// energyShares is a table of the parts of each plan's energy, for people.
func energyShares(runs []Run) *report.Table {
	runs = slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return !r.Planned() })
	keys := paramKeys(runs)
	params := make([]report.Column, 0, len(keys))
	parts := make([]report.Column, 0, len(new(Summary).energyParts()))
	for _, key := range keys {
		params = append(params, report.Column{Head: key})
	}
	for _, part := range new(Summary).energyParts() {
		parts = append(parts, report.Column{Head: part.name, Unit: report.Fraction, Digits: 2})
	}
	columns := slices.Concat([]report.Column{{Head: "policy", Left: true, Max: 40}}, params,
		[]report.Column{
			{Head: "energy", Unit: report.Joules, Digits: 5}, {Head: "gap", Unit: report.Fraction, Digits: 2},
		}, parts,
		[]report.Column{{Head: "nodes"}, {Head: "planning", Unit: report.Seconds, Digits: 2}})
	return &report.Table{Columns: columns, Len: len(runs), Rows: func(yield func([]report.Value) bool) {
		for i := range runs {
			s := &runs[i].Summary
			row := append(make([]report.Value, 0, len(columns)), report.Text(s.Policy))
			for _, key := range keys {
				row = append(row, runs[i].param(key))
			}
			row = append(row, report.Number(s.Energy), report.Number(s.ObjectiveGap()))
			for _, part := range s.energyParts() {
				row = append(row, report.NonZero(energyRatio(part.energy, s.Energy)))
			}
			if !yield(append(row, report.Count(s.NodesUsed), report.Number(runs[i].Planning.Seconds()))) {
				return
			}
		}
	}}
}
