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

// Param is a parameter that distinguishes runs, such as θ or l. Its key is its
// column.
type Param struct {
	Key   string
	Value report.Value
}

// Comparison returns a table of several runs, a row each, in the given order. Each
// parameter has a column of its own, in the order of its first use. After these people
// and machines have columns of their own.
func Comparison(runs []Run) *report.Table {
	columns := []report.Column{{Key: "policy", Head: "policy", Left: true, Max: 40}}
	keys := paramKeys(runs)
	for _, key := range keys {
		columns = append(columns, report.Column{Key: key, Head: key})
	}
	columns = append(columns, shownColumns...)
	sharing := slices.ContainsFunc(runs, func(r Run) bool { return r.Summary.Shared > 0 })
	for _, f := range new(Run).fields(sharing) {
		columns = append(columns, report.Column{Key: f.key, JSONOnly: f.object})
	}
	return report.NewTable(columns, len(runs), func(i int) []report.Value {
		r := &runs[i]
		row := append(make([]report.Value, 0, len(columns)), report.Text(r.Summary.Policy))
		for _, key := range keys {
			row = append(row, r.param(key))
		}
		row = append(row, r.shownValues(sharing)...)
		for _, f := range r.fields(sharing) {
			row = append(row, f.value)
		}
		return row
	})
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

// shownColumns are those that people get; times are multiples of the baseline's.
var shownColumns = []report.Column{
	{Head: "search", Left: true},
	{Head: "misses"},
	{Head: "infeasible"},
	{Head: "past", Note: "due"},
	{Head: "objective"},
	{Head: "saving", Unit: report.Fraction},
	{Head: "end", Unit: report.Seconds},
	{Head: "makespan"},
	{Head: "wait", Note: "mean"},
	{Head: "wait", Note: "p95"},
	{Head: "turnaround", Note: "mean"},
	{Head: "turnaround", Note: "p95"},
	{Head: "slowed"},
	{Head: "worst slowdown", Note: "× alone"},
	{Head: "cost"},
}

// shownValues returns the values of shownColumns: missing where they don't matter.
func (r *Run) shownValues(sharing bool) []report.Value {
	s := &r.Summary
	var search, objective, end, slowed, slowdown, cost report.Value
	if r.Unfinished {
		search = report.Text(unfinishedText)
	}
	if !s.forEnergy() { // else the saving tells
		objective = s.timesBaseline(func(s *Summary) float64 { return s.Objective })
	}
	if s.Reference == nil && r.Planned() {
		end = report.Number(s.End)
	}
	if sharing && r.Planned() {
		slowed = report.Count(s.Slowed)
	}
	if r.Planned() {
		money := s.Factors
		if money.CostPerKWh != 0 {
			money.CarbonPerKWh, money.WaterPerKWh = 0, 0
		}
		cost = report.NonEmpty(report.FootprintText(&money, s.Energy))
	}
	if s.WorstSlowdown > 0 {
		slowdown = factorValue(s.WorstSlowdown)
	}
	return []report.Value{
		search, countIfAny(s.Misses), countIfAny(s.Infeasible), countIfAny(s.PastDue), objective,
		report.Number(s.Saving()), end,
		s.timesBaseline(func(s *Summary) float64 { return s.Makespan }),
		s.timesBaseline(func(s *Summary) float64 { return s.Wait.Mean }),
		s.timesBaseline(func(s *Summary) float64 { return s.Wait.P95 }),
		s.timesBaseline(func(s *Summary) float64 { return s.Turnaround.Mean }),
		s.timesBaseline(func(s *Summary) float64 { return s.Turnaround.P95 }),
		slowed, slowdown, cost,
	}
}

// countIfAny returns a cell with a number, missing when it is 0.
func countIfAny(n int) report.Value {
	if n == 0 {
		return report.Value{}
	}
	return report.Count(n)
}

// fields returns what machines get of a run: of one without a plan its status alone, and how
// long planning took.
func (r *Run) fields(sharing bool) []jsonField {
	s := &r.Summary
	status := s.Status.String()
	if r.Unfinished {
		status = unfinishedText
	}
	out := append([]jsonField{
		{key: "status", value: report.Text(status)},
		{key: "jobs_total", value: report.Count(s.JobsTotal)},
		{key: "misses", value: report.Count(s.Misses)},
		{key: "infeasible", value: report.Count(s.Infeasible)},
		{key: "past_due", value: report.Count(s.PastDue)},
	}, s.figures()...)
	out = append(out, jsonField{key: "planning_s", value: report.Number(r.Planning.Seconds())})
	if sharing {
		out = append(out, jsonField{key: "slowed", value: report.Count(s.Slowed)},
			jsonField{key: "worst_slowdown", value: report.NonZero(s.WorstSlowdown)})
	}
	for i := range out {
		if key := out[i].key; !r.Planned() && key != "status" && key != "planning_s" {
			out[i].value = report.Value{}
		}
	}
	return out
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
	if slices.ContainsFunc(runs, func(r Run) bool { return r.Summary.Unequal }) {
		all = append(all, "A row without a saving leaves out other jobs than first come, first served.")
	}
	if slices.ContainsFunc(runs, func(r Run) bool { return r.Summary.AlwaysOn }) {
		all = append(all, "Policies with park=never are held against first come, first served with all nodes on, "+
			"too.")
	}
	return all
}

// energyShares returns a table of the parts of each plan's energy, for people.
func energyShares(runs []Run) *report.Table {
	runs = slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return !r.Planned() })
	keys := paramKeys(runs)
	columns := append(make([]report.Column, 0, 10+len(keys)), report.Column{Head: "policy", Left: true, Max: 40})
	for _, key := range keys {
		columns = append(columns, report.Column{Head: key})
	}
	columns = append(columns, report.Column{Head: "energy", Unit: report.Joules, Digits: 5},
		report.Column{Head: "gap", Unit: report.Fraction, Digits: 2})
	for _, part := range new(Summary).energyParts() {
		columns = append(columns, report.Column{Head: part.name, Unit: report.Fraction, Digits: 2})
	}
	columns = append(columns, report.Column{Head: "nodes"},
		report.Column{Head: "planning", Unit: report.Seconds, Digits: 2})
	return report.NewTable(columns, len(runs), func(i int) []report.Value {
		s := &runs[i].Summary
		row := []report.Value{report.Text(s.Policy)}
		for _, key := range keys {
			row = append(row, runs[i].param(key))
		}
		row = append(row, report.Number(s.Energy), report.Number(s.ObjectiveGap()))
		for _, part := range s.energyParts() {
			row = append(row, report.NonZero(energyRatio(part.energy, s.Energy)))
		}
		return append(row, report.Count(s.NodesUsed), report.Number(runs[i].Planning.Seconds()))
	})
}
