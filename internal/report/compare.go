package report

import (
	"bufio"
	"io"
	"slices"
	"time"
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
func (r *Run) stoppedValue() Value {
	if r.Unfinished {
		return Text(unfinishedText)
	}
	return Value{}
}

// appendMissing fills a row of so many columns up.
func appendMissing(row []Value, columns int) []Value {
	return append(row, make([]Value, columns-len(row))...)
}

// Param is a parameter that distinguishes runs, such as θ or l. Its key is its
// column.
type Param struct {
	Key   string
	Value Value
}

// Comparison is a table of several runs, a row each, in the given order. Each
// parameter has a column of its own, in the order of its first use.
func Comparison(runs []Run) *Table {
	keys := paramKeys(runs)
	figures := comparedColumns()
	sharing := slices.ContainsFunc(runs, func(r Run) bool { return r.Summary.Shared > 0 })
	if sharing {
		figures = append(figures, Column{Key: "slowed", Head: "slowed"},
			Column{Key: "worst_slowdown"}, Column{Head: "worst slowdown", Note: "× alone"})
	}
	columns := make([]Column, 0, 1+len(keys)+len(figures))
	columns = append(columns, Column{Key: "policy", Head: "policy", Left: true, Max: 40})
	for _, key := range keys {
		columns = append(columns, Column{Key: key, Head: key})
	}
	columns = append(columns, figures...)
	return &Table{Columns: columns, Len: len(runs), Rows: func(yield func([]Value) bool) {
		for i := range runs {
			row := append(make([]Value, 0, len(columns)), Text(runs[i].Summary.Policy))
			for _, key := range keys {
				row = append(row, runs[i].param(key))
			}
			row = runs[i].appendCompared(row)
			if sharing && runs[i].Planned() {
				row = append(row, Count(runs[i].Summary.Slowed))
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

func (r *Run) param(key string) Value {
	for _, p := range r.Params {
		if p.Key == key {
			return p.Value
		}
	}
	return Value{}
}

// comparedColumns are those after the parameters: people get the times as multiples
// of the baseline's, machines the seconds.
func comparedColumns() []Column {
	return []Column{
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
		{Key: "saving", Head: "saving", Unit: Fraction},
		{Key: "saving_interval", JSONOnly: true},
		{Key: "modelled"},
		{Key: "power_assumed_jobs"},
		{Key: "bound_j"},
		{Key: "gap"},
		{Key: "nodes_used"},
		{Key: "gpus_used"},
		{Key: "end_s"},
		{Head: "end", Unit: Seconds},
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

func (r *Run) appendCompared(row []Value) []Value {
	s := &r.Summary
	status := s.Status.String()
	if r.Unfinished {
		status = unfinishedText
	}
	if !r.Planned() {
		row = appendMissing(append(row, Text(status), r.stoppedValue()), len(row)+len(comparedColumns()))
		row[len(row)-1] = Number(r.Planning.Seconds())
		return row
	}
	matters := func(n int) Value { // people see the columns only where they matter
		if n > 0 {
			return Count(n)
		}
		return Value{}
	}
	end := Value{}
	if s.Reference == nil {
		end = Number(s.End)
	}
	return append(row,
		Text(status), r.stoppedValue(), Count(s.JobsTotal), Count(s.Misses), matters(s.Misses),
		Count(s.Infeasible), matters(s.Infeasible),
		Count(s.PastDue), matters(s.PastDue),
		Number(s.Objective), Text(s.ObjectiveUnit), s.objectiveTimes(), nonZero(s.ObjectiveBound),
		Number(s.ObjectiveGap()), Number(s.Energy), Number(s.Run), Number(s.Idle), Number(s.TurnOn),
		Number(s.Host), Number(s.Sleep),
		nonZero(s.Baseline), Number(s.Saving()), s.SavingInterval.objectValue(), Number(s.Modelled),
		Count(s.Assumed), nonZero(s.Bound), Number(s.Gap()),
		Count(s.NodesUsed), Count(s.GPUsUsed), Number(s.End), end,
		Number(s.Makespan), s.timesBaseline(func(s *Summary) float64 { return s.Makespan }),
		Number(s.Wait.Mean), s.timesBaseline(func(s *Summary) float64 { return s.Wait.Mean }),
		Number(s.Wait.P95), s.timesBaseline(func(s *Summary) float64 { return s.Wait.P95 }),
		Number(s.Turnaround.Mean), s.timesBaseline(func(s *Summary) float64 { return s.Turnaround.Mean }),
		Number(s.Turnaround.P95), s.timesBaseline(func(s *Summary) float64 { return s.Turnaround.P95 }),
		s.baselineValue(), s.Easy.objectValue(), s.Constant.constantValue(), Number(r.Planning.Seconds()),
	)
}

// WriteComparison writes runs for people: what they save and what that costs in
// time, and where their energy goes.
func WriteComparison(w io.Writer, runs []Run, opts *TextOptions) error {
	out := bufio.NewWriter(w)
	if slices.ContainsFunc(runs, func(r Run) bool { return r.Summary.Reference != nil }) {
		writeLines(out, "Against first come, first served at default clocks; times as multiples of its own:")
	}
	if err := Comparison(runs).WriteText(out, opts); err != nil {
		return err
	}
	for _, text := range savingsBasis(runs) {
		writeLines(out, text)
	}
	if !slices.ContainsFunc(runs, func(r Run) bool { return r.Planned() }) {
		return out.Flush()
	}
	measured := "it is"
	if slices.ContainsFunc(runs, func(r Run) bool { return r.Planned() && !r.Summary.forEnergy() }) {
		measured = "the objective is"
	}
	writeLines(out, "",
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
func energyShares(runs []Run) *Table {
	runs = slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return !r.Planned() })
	keys := paramKeys(runs)
	params, parts := make([]Column, 0, len(keys)), make([]Column, 0, len(new(Summary).energyParts()))
	for _, key := range keys {
		params = append(params, Column{Head: key})
	}
	for _, part := range new(Summary).energyParts() {
		parts = append(parts, Column{Head: part.name, Unit: Fraction, Digits: 2})
	}
	columns := slices.Concat([]Column{{Head: "policy", Left: true, Max: 40}}, params,
		[]Column{{Head: "energy", Unit: Joules, Digits: 5}, {Head: "gap", Unit: Fraction, Digits: 2}}, parts,
		[]Column{{Head: "nodes"}, {Head: "planning", Unit: Seconds, Digits: 2}})
	return &Table{Columns: columns, Len: len(runs), Rows: func(yield func([]Value) bool) {
		for i := range runs {
			s := &runs[i].Summary
			row := append(make([]Value, 0, len(columns)), Text(s.Policy))
			for _, key := range keys {
				row = append(row, runs[i].param(key))
			}
			row = append(row, Number(s.Energy), Number(s.ObjectiveGap()))
			for _, part := range s.energyParts() {
				row = append(row, nonZero(energyRatio(part.energy, s.Energy)))
			}
			if !yield(append(row, Count(s.NodesUsed), Number(runs[i].Planning.Seconds()))) {
				return
			}
		}
	}}
}
