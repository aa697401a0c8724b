package planreport

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/planner"
)

// comparedFigure is one of the figures in which a plan is held against what sites run.
type comparedFigure struct {
	name  string
	of    func(*Summary) float64
	write func(float64) string
}

// comparedFigures returns those figures: what the batch takes, whom it keeps waiting, and
// whether it keeps what was promised.
func comparedFigures(energy report.Scale) []comparedFigure {
	count := func(n float64) string { return report.FormatCount(int(n)) }
	return []comparedFigure{
		{"energy", func(s *Summary) float64 { return float64(s.Energy) }, energy.FormatWithUnit},
		{"past due", func(s *Summary) float64 { return float64(s.PastDue) }, count},
		{"makespan", func(s *Summary) float64 { return s.Makespan }, report.FormatSeconds},
		{"wait, mean", func(s *Summary) float64 { return s.Wait.Mean }, report.FormatSeconds},
		{"wait, p95", func(s *Summary) float64 { return s.Wait.P95 }, report.FormatSeconds},
		{"turnaround, mean", func(s *Summary) float64 { return s.Turnaround.Mean }, report.FormatSeconds},
		{"turnaround, p95", func(s *Summary) float64 { return s.Turnaround.P95 }, report.FormatSeconds},
	}
}

// againstTable holds the plan against first come, first served and EASY, both at
// default clocks, and against constant clocks; nil where none is known.
func (s *Summary) againstTable() *report.Table {
	if s.Reference == nil && s.Easy == nil && s.Constant == nil {
		return nil
	}
	others := []*Summary{s.Reference, s.Easy, s.Constant}
	all := comparedFigures(energyScale(s.Energy))
	return report.NewTable([]report.Column{
		{Head: " ", Left: true},
		{Head: "plan"},
		{Head: "FCFS"},
		{Head: "change"},
		{Head: "EASY"},
		{Head: "change"},
		{Head: "constant"},
		{Head: "change"},
	}, len(all), func(i int) []report.Value {
		m := &all[i]
		row := append(make([]report.Value, 0, 2+2*len(others)), report.Text(m.name),
			report.Text(m.write(m.of(s))))
		for _, other := range others {
			row = append(row, m.values(s, other)...)
		}
		return row
	})
}

// values is another plan's figure, and how this one's differs from it: by how
// many jobs, or by which part.
func (m *comparedFigure) values(s, other *Summary) []report.Value {
	if other == nil {
		return []report.Value{{}, {}}
	}
	mine, theirs := m.of(s), m.of(other)
	row := []report.Value{report.Text(m.write(theirs)), {}}
	switch {
	case m.name == "past due":
		if diff := int(mine - theirs); diff != 0 {
			row[1] = report.Text(fmt.Sprintf("%+d", diff))
		}
	case theirs > 0:
		row[1] = report.Text(signedPercent(mine/theirs - 1))
	}
	return row
}

// againstCaption says what the table of [Summary.againstTable] is about, in a line or
// two.
func (s *Summary) againstCaption() []string {
	const caption = "At default clocks, first come, first served (FCFS) and with backfilling (EASY)"
	if s.Constant == nil {
		return []string{caption}
	}
	text := "the best that are the same for all jobs of a GPU model"
	if s.Mode == planner.Online {
		text += ", found in hindsight"
	}
	pairs, unit := make([]string, 0, len(s.Constant.Clocks)), " MHz"
	for _, model := range slices.Sorted(maps.Keys(s.Constant.Clocks)) {
		at := s.Constant.Clocks[model]
		pairs = append(pairs, model+" "+clockText(&at, at.Core > 0))
		if at.Core == 0 {
			unit = ""
		}
	}
	if len(pairs) > 0 {
		text += ": " + strings.Join(pairs, ", ") + unit
	}
	return []string{caption + ", and at constant clocks,", text}
}

// savingsText returns the parts of what others take that the plan saves, in words: the
// baseline, EASY and constant clocks, if they plan as many jobs.
func (s *Summary) savingsText(scale report.Scale) string {
	saved := report.FormatPercent(s.Saving())
	if s.SavingInterval.isWorthShowing() {
		saved += " (" + s.SavingInterval.String() + " in 9 of 10 cases)"
	}
	parts := []string{saved + " of " + scale.FormatWithUnit(float64(s.Baseline)) + " at default clocks"}
	if s.AlwaysOn {
		parts[0] += " with all nodes on"
	}
	for _, other := range []struct {
		plan *Summary
		what string
	}{{s.Easy, "EASY"}, {s.Constant, constantName(s.Mode)}} {
		if s.isComparable(other.plan) {
			parts = append(parts,
				report.FormatPercent(1-energyRatio(s.Energy, other.plan.Energy))+" against "+other.what)
		}
	}
	return strings.Join(parts, ", ")
}

// laterText says what a saving costs in time: how much longer jobs take than first come, first served, from
// arrival to end, and how much longer they may; empty where neither is known.
func (s *Summary) laterText() string {
	var parts []string
	const fcfs = "first come, first served"
	than := "as long as " + fcfs
	if r := s.Reference; s.isComparable(r) && r.Turnaround.Mean > 0 && r.Turnaround.P95 > 0 {
		parts = append(parts, "turnaround "+signedPercent(s.Turnaround.Mean/r.Turnaround.Mean-1)+" (p95 "+
			signedPercent(s.Turnaround.P95/r.Turnaround.P95-1)+") against "+fcfs)
		than = "that"
	}
	if s.MaxTurnaround > 0 {
		parts = append(parts, fmt.Sprintf("jobs without a deadline may take %g times %s (max_turnaround)",
			s.MaxTurnaround, than))
	}
	return strings.Join(parts, "; ")
}

// againstParts are this table on a page.
func (s *Summary) againstParts() []any {
	t := s.againstTable()
	if t == nil || s.Infeasible == s.JobsTotal {
		return nil
	}
	return []any{
		t.Page(strings.Join(s.againstCaption(), " "), "", -1),
		page.Text("Past due are jobs that end after their due times or deadlines. " +
			"Wait is from arrival to start, turnaround from arrival to end; 95 % of the jobs " +
			"take no longer " +
			"than p95. Changes are the plan's."),
	}
}

// timesBaseline returns a figure as a multiple of the baseline's; missing where that is 0 or
// not known.
func (s *Summary) timesBaseline(of func(*Summary) float64) report.Value {
	if s.Reference == nil || !(of(s.Reference) > 0) || s.Infeasible == s.JobsTotal {
		return report.Value{}
	}
	return report.Text(strconv.FormatFloat(of(s)/of(s.Reference), 'f', 2, 64))
}

// lateText counts the jobs that end late.
func (s *Summary) lateText() string {
	var parts []string
	if s.Misses > 0 {
		parts = append(parts, report.Plural(s.Misses, "misses its deadline", "miss their deadlines"))
	}
	if rest := s.PastDue - s.Misses; rest > 0 {
		parts = append(parts, report.Plural(rest, "ends past its due time", "end past their due times"))
	}
	return strings.Join(parts, ", ")
}

// lateTable lists the jobs that miss their deadlines.
func (r *Result) lateTable() *report.Table {
	return r.overdueTable("deadline", r.Plan.Misses, func(t *planner.Task) float64 { return t.Deadline }, nil)
}

// dueTable lists the jobs that end past their due times, missed deadlines aside.
func (r *Result) dueTable() *report.Table {
	tasks := slices.DeleteFunc(r.Plan.PastDue(r.Problem), r.isLate)
	return r.overdueTable("due", tasks, func(t *planner.Task) float64 { return t.Due }, r.Reference)
}

// overdueTable lists jobs that end after a time, which is called so, and when they end in
// another plan; nil: there is none.
func (r *Result) overdueTable(
	head string, tasks []int, limit func(*planner.Task) float64, other *planner.Plan,
) *report.Table {
	return report.NewTable([]report.Column{
		{Head: "job", Left: true, Max: maxName},
		{Head: head, Unit: report.Seconds, Group: 1},
		{Head: "end", Unit: report.Seconds, Group: 1},
		{Head: "late by", Unit: report.Seconds, Group: 1},
		{Head: "end, FCFS", Unit: report.Seconds, Group: 1},
	}, len(tasks), func(i int) []report.Value {
		t, end, before := &r.Problem.Tasks[tasks[i]], r.Plan.Assignments[tasks[i]].End, report.Value{}
		if other != nil && other.Assignments[tasks[i]].Node >= 0 {
			before = report.Number(other.Assignments[tasks[i]].End)
		}
		return []report.Value{
			report.Text(t.ID), report.Number(limit(t)), report.Number(end), report.Number(end - limit(t)), before,
		}
	})
}

// newlyLateText names the jobs that are late in this plan only; empty where none is.
func (r *Result) newlyLateText(s *Summary) string {
	if len(s.NewlyLate) == 0 {
		return ""
	}
	return report.Plural(len(s.NewlyLate), "job is late here that isn't", "jobs are late here that aren't") +
		" at default clocks, first come, first served: " +
		report.NamesText(r.ids(s.NewlyLate), len(s.NewlyLate)) + "."
}

// dueParts returns the jobs past their due times, on a page.
func (p *PlanPage) dueParts(s *Summary) []any {
	if s.PastDue == s.Misses {
		return nil
	}
	n := s.PastDue - s.Misses
	return []any{
		&page.Notice{
			Kind: page.Warn,
			Text: report.Plural(n, "job ends past its due time", "jobs end past their due times") + ".",
		},
		p.Result.dueTable().Page("Jobs that end past their due times", "", maxPageRows),
	}
}
