package planreport

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
)

// ComparePage is a comparison with what a report tells beside it.
type ComparePage struct {
	Runs     []Run
	Name     string   // of the batch, or how many there are
	Warnings []string // about the batches, as lines
	Origin   page.Facts
}

// problemKeys are the parameters that make the problem another one: only plans
// of the same problem are weighed against each other.
var problemKeys = []string{"batch", "gpus_per_node"}

// maxProblems is how many problems have a section of their own.
const maxProblems = 12

type problemRuns struct {
	name      string
	runs      []Run
	names     []string // what each run is called
	best      int      // the run with the least objective of those that keep all promises; -1: none does
	unplanned []string // what the runs without a plan are called
}

// runsByProblem returns the problems in the order of the runs.
func runsByProblem(runs []Run) []problemRuns {
	var all []problemRuns
	index := make(map[string]int)
	for i := range runs {
		problems, tags := []string{}, []string{runs[i].Summary.Policy}
		for _, p := range runs[i].Params {
			text := p.Key + " " + p.Value.Display(report.Scale{}, report.Plain)
			if slices.Contains(problemKeys, p.Key) {
				problems = append(problems, text)
				continue
			}
			tags = append(tags, text)
		}
		problem, tag := strings.Join(problems, ", "), strings.Join(tags, ", ")
		at, known := index[problem]
		if !known {
			at = len(all)
			index[problem] = at
			all = append(all, problemRuns{name: problem, best: -1})
		}
		if !runs[i].Planned() {
			all[at].unplanned = append(all[at].unplanned, tag)
			continue
		}
		all[at].runs, all[at].names = append(all[at].runs, runs[i]), append(all[at].names, tag)
	}
	for i := range all {
		all[i].chooseBest()
	}
	return all
}

// isComplete reports whether a plan covers all jobs in time.
func isComplete(s *Summary) bool { return s.PastDue == 0 && s.Infeasible == 0 }

func (c *problemRuns) chooseBest() {
	for i := range c.runs {
		s := &c.runs[i].Summary
		if isComplete(s) && (c.best < 0 || s.Objective < c.runs[c.best].Summary.Objective) {
			c.best = i
		}
	}
}

// WriteComparePage writes the report of a comparison. Planning times aren't in
// it, so that the same comparison gives the same file.
func WriteComparePage(w io.Writer, p *ComparePage) error {
	table := Comparison(p.Runs)
	all := runsByProblem(p.Runs)
	out := &page.Report{
		Title: "Policies compared on " + p.Name, Foot: p.Origin,
		Parts: []any{
			table.Page("A row for each plan",
				"Against the same jobs at default clocks, first come, first served: saving is of its "+
					"energy, makespan, wait and turnaround are multiples of its own. Past due are jobs "+
					"that end after their due times or deadlines.", -1),
		},
	}
	if len(p.Warnings) > 0 {
		out.Parts = append(out.Parts, &page.Notice{Kind: page.Warn, Text: "The planner warns:", Items: p.Warnings})
	}
	for _, text := range savingsBasis(p.Runs) {
		out.Parts = append(out.Parts, &page.Notice{Kind: page.Info, Text: text})
	}
	for i := range all {
		if i == maxProblems {
			out.Parts = append(out.Parts, &page.Notice{
				Kind: page.Info,
				Text: fmt.Sprintf("Only the first %d of %d problems have a section of their own.",
					maxProblems, len(all)),
			})
			break
		}
		out.Sections = append(out.Sections, all[i].section(i))
	}
	if len(all) == 1 {
		out.Lead = all[0].verdictText()
	} else {
		out.Lead = fmt.Sprintf("%s of %s. Plans are weighed against each other where the batch and the "+
			"cluster are the same.", report.Plural(len(p.Runs), "plan"), report.Plural(len(all),
			"problem"))
	}
	return page.WriteReport(w, out)
}

func (c *problemRuns) section(number int) page.Section {
	s := page.Section{ID: "problem-" + strconv.Itoa(number+1), Heading: c.name}
	if c.name == "" {
		s.Heading = "What is traded"
	} else {
		s.Parts = append(s.Parts, page.Text(c.verdictText()))
	}
	for _, axis := range []struct {
		id, what, caption string
		of                func(*Summary) float64
	}{
		{"end", "last end", "Energy by when the last job ends.", func(s *Summary) float64 { return s.End }},
		{"wait", "mean wait", "Energy by how long jobs wait on average, from their arrival to " +
			"their start.", func(s *Summary) float64 { return s.Wait.Mean }},
	} {
		var spots []report.TradeOffPoint
		for i := range c.runs {
			s := &c.runs[i].Summary
			if s.Infeasible < s.JobsTotal {
				spots = append(spots, report.TradeOffPoint{
					Name: c.names[i], X: axis.of(s), Y: float64(s.Energy), Late: !isComplete(s),
				})
			}
		}
		figure := report.TradeOffFigure(axis.id+"-"+strconv.Itoa(number+1), axis.caption+
			" The dotted line is the front: no other plan is better in both. Hollow dots miss deadlines, "+
			"due times or jobs.", axis.what, report.Seconds, spots)
		if figure != nil {
			s.Parts = append(s.Parts, figure)
		}
	}
	s.Parts = append(s.Parts, c.partsTable())
	return s
}

// verdictText says which plan is best, and why, and what has no plan.
func (c *problemRuns) verdictText() string {
	text := c.bestText()
	if len(c.unplanned) > 0 {
		text += " Unfinished, without a plan: " + strings.Join(c.unplanned, "; ") + "."
	}
	return text
}

func (c *problemRuns) bestText() string {
	if len(c.runs) == 0 {
		return "No policy has a plan."
	}
	if c.best < 0 {
		return "No plan covers all jobs in time, so that none is best."
	}
	best := &c.runs[c.best].Summary
	energy, gap := energyText(best.Energy), ""
	if best.Baseline > 0 {
		energy += ", " + best.savingText()
	}
	if best.ObjectiveBound > 0 {
		gap = report.FormatPercent(best.ObjectiveGap()) + " above what no schedule can beat"
	}
	text := c.names[c.best] + " takes the least energy of " + c.keepingText() + ": " +
		joinNonEmpty(" and ", energy, gap) + "."
	if !best.forEnergy() {
		text = c.names[c.best] + " has the least objective of " + c.keepingText() + ": " +
			joinNonEmpty(", ", best.objectiveText(best.Objective, energyScale(best.Energy)), gap) +
			". It takes " + energy + "."
	}
	if second := c.runnerUp(); second >= 0 {
		text += " " + c.differenceText(second)
	}
	return text
}

// joinNonEmpty returns those of some texts that aren't empty.
func joinNonEmpty(by string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), by)
}

// keepingText counts the plans that keep all promises.
func (c *problemRuns) keepingText() string {
	n := 0
	for i := range c.runs {
		if isComplete(&c.runs[i].Summary) {
			n++
		}
	}
	if n == len(c.runs) {
		return "all " + report.Plural(n, "plan") + ", each of which keeps all deadlines and due times"
	}
	return fmt.Sprintf("the %s, of %d, that keep all deadlines and due times",
		report.Plural(n, "plan"), len(c.runs))
}

// runnerUp returns the plan with the least objective of those that have more than the
// best one; -1: there is none.
func (c *problemRuns) runnerUp() int {
	second, least := -1, math.Inf(1)
	for i := range c.runs {
		s := &c.runs[i].Summary
		if isComplete(s) && s.Objective > c.runs[c.best].Summary.Objective*(1+report.RelativeTolerance) &&
			s.Objective < least {
			second, least = i, s.Objective
		}
	}
	return second
}

// differenceText says what the best plan does better than another, by the part of
// the energy that differs most.
func (c *problemRuns) differenceText(other int) string {
	a, b := &c.runs[c.best].Summary, &c.runs[other].Summary
	mine, theirs := a.energyParts(), b.energyParts()
	most := 0
	for i := range mine {
		if theirs[i].energy-mine[i].energy > theirs[most].energy-mine[most].energy {
			most = i
		}
	}
	text := fmt.Sprintf("The next one, %s, takes %s more", c.names[other],
		report.FormatPercent(float64(b.Energy/a.Energy)-1))
	if !a.forEnergy() {
		text = fmt.Sprintf("The next one, %s, has %s more, and takes %s energy", c.names[other],
			report.FormatPercent(b.Objective/a.Objective-1), lessOrMore(1-float64(b.Energy/a.Energy)))
	}
	if diff := theirs[most].energy - mine[most].energy; diff > 0 {
		text += fmt.Sprintf(": most of all %s energy, by %s", mine[most].name, report.FormatJoules(diff))
	}
	if a.NodesUsed != b.NodesUsed {
		text += fmt.Sprintf("; it uses %s, the best one %s", report.Plural(b.NodesUsed, "node"),
			report.FormatCount(a.NodesUsed))
	}
	return text + "."
}

// partsTable returns the energy of each plan by cause.
func (c *problemRuns) partsTable() *page.Table {
	columns := append(make([]report.Column, 0, 11), report.Column{Head: "policy", Left: true, Max: 60},
		report.Column{Head: "energy", Unit: report.Joules, Group: 1})
	for _, part := range new(Summary).energyParts() {
		columns = append(columns, report.Column{Head: part.name, Unit: report.Joules, Group: 1})
	}
	columns = append(columns, report.Column{Head: "last end", Unit: report.Seconds},
		report.Column{Head: "mean wait", Unit: report.Seconds},
		report.Column{Head: "mean turnaround", Unit: report.Seconds}, report.Column{Head: "promises", Left: true})
	t := report.NewTable(columns, len(c.runs), func(i int) []report.Value {
		s := &c.runs[i].Summary
		row := []report.Value{report.Text(c.names[i]), report.Number(s.Energy)}
		for _, part := range s.energyParts() {
			row = append(row, report.NonZero(part.energy))
		}
		promises := "kept"
		switch {
		case i == c.best:
			promises = "kept: the best plan"
		case !isComplete(s):
			promises = fmt.Sprintf("%s late, %d not planned", report.FormatCount(s.PastDue), s.Infeasible)
		}
		if c.runs[i].Unfinished {
			promises += "; unfinished, the best plan so far"
		}
		return append(row, report.Number(s.End), report.Number(s.Wait.Mean), report.Number(s.Turnaround.Mean),
			report.Text(promises))
	})
	return t.Page("Energy by what it goes into", "", -1)
}
