package planreport

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/planner"
)

// defaultEnergy returns what a planned job would take at default clocks where it
// runs, without its host share, joules.
func (r *Result) defaultEnergy(task int) float64 {
	t, a := &r.Problem.Tasks[task], &r.Plan.Assignments[task]
	return float64(t.Options[a.Option].Response.Default().Energy) * gpuWorth(t, a)
}

// gpuWorth returns how many GPUs' worth a job occupies.
func gpuWorth(t *planner.Task, a *planner.Assignment) float64 {
	if t.Share < 1 {
		return t.Share
	}
	return float64(a.GPUCount())
}

// groupSum is jobs that have something in common.
type groupSum struct {
	name, example     string
	jobs, late        int
	gpuSeconds        float64
	energy, atDefault float64 // J, while they run, without the host's
}

func (g *groupSum) add(r *Result, task int) {
	t, a := &r.Problem.Tasks[task], &r.Plan.Assignments[task]
	g.jobs++
	g.gpuSeconds += gpuWorth(t, a) * (a.End - a.Start)
	g.energy += float64(a.Energy(t))
	g.atDefault += r.defaultEnergy(task)
	if r.isLate(task) {
		g.late++
	}
}

// groupJobs adds planned jobs up by a name, the groups with the most energy first.
func (r *Result) groupJobs(name func(task int) string) []groupSum {
	index := make(map[string]int)
	var groups []groupSum
	for task := range r.eachPlanned {
		key := name(task)
		at, known := index[key]
		if !known {
			at = len(groups)
			index[key] = at
			groups = append(groups, groupSum{name: key, example: r.Problem.Tasks[task].ID})
		}
		groups[at].add(r, task)
	}
	slices.SortStableFunc(groups, func(a, b groupSum) int {
		return cmp.Or(cmp.Compare(b.energy, a.energy), cmp.Compare(a.name, b.name))
	})
	return groups
}

// maxGroups is how many rows a table of groups has.
const maxGroups = 200

// groupTable returns a row for each group. Energies are of GPUs while jobs run.
func groupTable(head string, groups []groupSum, more ...report.Column) *report.Table {
	columns := slices.Concat([]report.Column{
		{Head: head, Left: true, Max: 60},
		{Head: "jobs"},
		{Head: "GPU time", Note: "h"},
		{Head: "energy", Unit: report.Joules, Group: 1},
		{Head: "at default", Unit: report.Joules, Group: 1},
		{Head: "saved", Unit: report.Fraction, Digits: 2},
		{Head: "late"},
	}, more)
	return report.NewTable(columns, len(groups), func(i int) []report.Value {
		g, saved := &groups[i], report.Value{}
		if g.atDefault > 0 {
			saved = report.Number(1 - g.energy/g.atDefault)
		}
		hours := report.GroupThousands(strconv.FormatFloat(g.gpuSeconds/3600, 'f', 2, 64))
		row := []report.Value{
			report.Text(g.name), report.Count(g.jobs), report.Text(hours), report.Number(g.energy),
			report.Number(g.atDefault), saved, countIfAny(g.late),
		}
		if len(more) > 0 {
			row = append(row, report.Text(g.example))
		}
		return row
	})
}

// maxGroupBars is how many groups a picture has; the last one may be all
// others.
const maxGroupBars = 12

// groupFigure draws the energy of groups.
func groupFigure(id, what string, groups []groupSum) *page.Figure {
	var rows []report.BarRow
	others := groupSum{}
	var values []float64
	for i := range groups {
		g := &groups[i]
		if i >= maxGroupBars-1 && len(groups) > maxGroupBars {
			others.jobs, others.energy, others.atDefault = others.jobs+1, others.energy+g.energy,
				others.atDefault+g.atDefault
			continue
		}
		rows, values = append(rows, g.barRow(g.name)), append(values, g.energy)
	}
	if others.jobs > 0 {
		rows, values = append(rows, others.barRow("the other "+report.FormatCount(others.jobs))),
			append(values, others.energy)
	}
	scale := report.CommonScale(report.Joules, report.ColumnDigits, values...)
	return &page.Figure{
		ID: "figure-" + id, Caption: "Energy of GPUs while jobs run, by " + what + ". The table has the numbers.",
		SVG: report.DrawBarRows(id, "Energy by "+what,
			"A bar for the energy of each "+what+", with an outline for the same jobs at default clocks.",
			"energy", "at default clocks", scale, rows),
	}
}

func (g *groupSum) barRow(name string) report.BarRow {
	note := ""
	if g.atDefault > 0 {
		note = " (" + signedPercent(g.energy/g.atDefault-1) + ")"
	}
	return report.BarRow{Name: name, Value: g.energy, Reference: g.atDefault, Note: note}
}

// signedPercent returns a change in per cent.
func signedPercent(change float64) string {
	text := fmt.Sprintf("%+.1f %%", 100*change)
	if text == "-0.0 %" {
		text = "+0.0 %"
	}
	return text
}

// clockGroups adds jobs up by GPU model and clocks.
func (r *Result) clockGroups() []groupSum {
	inMHz := r.hasClocksInMHz()
	return r.groupJobs(func(task int) string {
		a := &r.Plan.Assignments[task]
		unit := " × default"
		if inMHz {
			unit = " MHz"
		}
		return r.Problem.Tasks[task].Options[a.Option].Model + ", " + clockText(&a.Point, inMHz) + unit
	})
}

// countSpeeds counts jobs by whether their core clock is below, at or above the
// default.
func (r *Result) countSpeeds() (slower, same, faster int) {
	const tolerance = 5e-4
	for task, a := range r.eachPlanned {
		set := r.Problem.Tasks[task].Options[a.Option].Response.Default().Scaling
		switch ratio := a.Point.Scaling.Fc / set.Fc; {
		case ratio < 1-tolerance:
			slower++
		case ratio > 1+tolerance:
			faster++
		default:
			same++
		}
	}
	return slower, same, faster
}

// soonerText says what a plan gains over the one that costs least, and for how much more.
func soonerText(s *Summary) string {
	text := "turnaround " + signedPercent(s.Turnaround.Mean/s.Least.Turnaround.Mean-1)
	if s.Least.Wait.Mean > 0 {
		text += ", wait " + signedPercent(s.Wait.Mean/s.Least.Wait.Mean-1)
	}
	of := "energy than"
	if s.ObjectiveUnit != "J" {
		of = "by the objective than"
	}
	more := 100 * (s.Objective/s.Least.Objective - 1)
	return fmt.Sprintf("%s, for %.2f %% more %s the least found", text, more, of)
}

// frontierText says what a slower pace would save of an online plan's energy, and what hindsight would, and
// what that does to mean turnaround; empty where neither is known.
func frontierText(s *Summary) string {
	var parts []string
	for _, other := range []struct {
		plan *Summary
		name string
	}{{s.Slower, fmt.Sprintf("at pace %g", s.Pace)}, {s.Hindsight, "with all jobs known from the start"}} {
		if !s.isComparable(other.plan) {
			continue
		}
		const noteworthy = 5e-4 // less is printed as 0.0 %
		saved := 1 - energyRatio(other.plan.Energy, s.Energy)
		if saved < noteworthy {
			parts = append(parts, other.name+": no plan with less energy found")
			continue
		}
		text := fmt.Sprintf("%s: %s energy, %s turnaround", other.name, signedPercent(-saved),
			signedPercent(other.plan.Turnaround.Mean/s.Turnaround.Mean-1))
		if more := other.plan.Misses - s.Misses; more > 0 {
			text += ", " + report.Plural(more, "more job misses its deadline", "more jobs miss their deadlines")
		}
		if more := other.plan.PastDue - other.plan.Misses - s.PastDue + s.Misses; more > 0 {
			text += ", " + report.Plural(more, "more job ends past its due time", "more jobs end past their due times")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}
