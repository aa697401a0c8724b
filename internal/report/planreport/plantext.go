package planreport

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/queue"
)

// maxName is how much of a job's id a table shows.
const maxName = 24

// WritePlanTable writes a plan for people: its totals, what went wrong, and a
// line for each of the first jobs.
func WritePlanTable(w io.Writer, r *Result, opts *report.TextOptions) error {
	s := Summarise(r)
	out := bufio.NewWriter(w)
	for _, f := range s.facts() {
		report.WriteLines(out, opts.Paint(report.Bold, fmt.Sprintf("%-7s", f.Name))+"  "+f.Text)
	}
	if table := s.againstTable(); table != nil && s.JobsTotal > s.Infeasible {
		report.WriteLines(out, "", strings.Join(s.againstCaption(), "\n")+":")
		var all report.TextOptions
		if opts != nil {
			all = *opts
		}
		all.Rows = -1
		if err := table.WriteText(out, &all); err != nil {
			return err
		}
	}
	if text := r.newlyLateText(&s); text != "" {
		report.WriteLines(out, "", opts.Paint(report.BoldRed, queue.Printable(text)))
	}
	for _, section := range []struct {
		title string
		table *report.Table
	}{
		{report.Plural(s.Infeasible, "job") + " can't be planned:", r.infeasibleTable()},
		{report.Plural(s.Misses, "job ends", "jobs end") + " after the deadline:", r.lateTable()},
		{
			report.Plural(s.PastDue-s.Misses, "job ends past its due time:", "jobs end past their due times:"),
			r.dueTable(),
		},
	} {
		if section.table.Len == 0 {
			continue
		}
		report.WriteLines(out, "", opts.Paint(report.BoldRed, section.title))
		if err := section.table.WriteText(out, opts); err != nil {
			return err
		}
	}
	if s.JobsTotal > s.Infeasible {
		report.WriteLines(out, "")
		jobs := r.textJobTable(s.JobsTotal - s.Infeasible)
		if opts != nil && opts.Wide {
			jobs = r.jobTable(true)
		}
		if err := jobs.WriteText(out, opts); err != nil {
			return err
		}
	}
	if shared := r.sharedTable(); shared != nil {
		report.WriteLines(out, "", "Jobs on GPUs that may be shared:")
		if err := shared.WriteText(out, opts); err != nil {
			return err
		}
	}
	return out.Flush()
}

// facts returns the totals, as the text and the page of a plan have them.
func (s *Summary) facts() page.Facts {
	scale := energyScale(s.Energy)
	seed := ""
	if s.Cut {
		seed = ", search cut"
	}
	if s.Seed != nil {
		seed += ", seed " + strconv.FormatUint(*s.Seed, 10)
	}
	facts := page.Facts{
		{Name: "Plan", Text: fmt.Sprintf("%s, %s, %s start: %s", queue.Printable(s.policyText()), s.Mode, s.Start,
			s.Status) + seed},
		{Name: "Jobs", Text: s.coverageText()},
		{Name: "Energy", Text: s.breakdownText(scale)},
	}
	if s.Shared > 0 {
		facts = append(facts, page.Fact{
			Name: "Shared", Text: fmt.Sprintf("%s on %s that may be shared; at worst %.3f times as long as alone "+
				"at the highest clock; %s more than tolerated", report.Plural(s.Shared, "job"),
				report.Plural(s.SharedGPUs, "GPU"), s.WorstSlowdown,
				report.Plural(s.Slowed, "job is slowed", "jobs are slowed")),
		})
	}
	if s.Infeasible == s.JobsTotal {
		return facts // nothing is planned: there is nothing to save
	}
	switch {
	case s.Unequal:
		facts = append(facts, page.Fact{Name: "Saving", Text: unequalText})
	case s.Baseline > 0:
		facts = append(facts, page.Fact{Name: "Saving", Text: s.savingsText(scale) + s.unmodelledText()})
		if later := s.laterText(); later != "" {
			facts = append(facts, page.Fact{Name: "Time", Text: later})
		}
	}
	if cost := costText(s); cost != "" {
		facts = append(facts, page.Fact{Name: "Cost", Text: cost})
	}
	facts = append(facts, page.Fact{
		Name: "Peak", Text: report.FormatWatts(s.Peak) + " at most, GPUs at work and idle with their hosts",
	})
	if s.Free != nil {
		facts = append(facts, page.Fact{Name: "Budget", Text: budgetText(s, scale)})
	}
	if s.Hours != nil {
		facts = append(facts, page.Fact{Name: "Hours", Text: s.Hours.text()})
	}
	if s.Least != nil {
		facts = append(facts, page.Fact{Name: "Sooner", Text: soonerText(s)})
	}
	if left := frontierText(s); left != "" {
		facts = append(facts, page.Fact{Name: "Online", Text: left})
	}
	if s.ObjectiveBound > 0 {
		part, side := s.boundDistance()
		facts = append(facts, page.Fact{
			Name: "Gap",
			Text: part + " " + side + " " + s.objectiveText(s.ObjectiveBound, scale) + ", " + s.boundText(),
		})
	}
	return facts
}

// unequalText stands in place of a saving.
const unequalText = "not stated: first come, first served leaves out other jobs"

// costText returns the cost of the plan's energy, and of the energy at default clocks; "" without factors.
func costText(s *Summary) string {
	text := report.FootprintText(&s.Factors, s.Energy)
	if text == "" {
		return ""
	}
	if s.Factors.Series != "" {
		text += ", by the hour"
	}
	if s.Factors.PUE > 1 {
		text += fmt.Sprintf(", with a PUE of %v", s.Factors.PUE)
	}
	if base := baselineCost(s); base != "" {
		text += "; at default clocks " + base
	}
	return text
}

// baselineCost returns the cost of the energy at default clocks, "" if nobody knows when it is used.
func baselineCost(s *Summary) string {
	factors := &s.Factors
	if s.Reference != nil {
		factors = &s.Reference.Factors
	}
	if s.Baseline <= 0 || s.Reference == nil && factors.Series != "" {
		return ""
	}
	return report.FootprintText(factors, s.Baseline)
}

// budgetText says what a power budget costs.
func budgetText(s *Summary, scale report.Scale) string {
	kept := report.FormatWatts(s.Budget)
	if s.BudgetMost > s.Budget {
		kept += " to " + report.FormatWatts(s.BudgetMost) + " over time"
	}
	kept += ", kept at every moment; "
	if s.Free.Energy == s.Energy && s.Free.Turnaround == s.Turnaround {
		return kept + "the plan is the one without it"
	}
	jobs := ""
	if more := s.Infeasible - s.Free.Infeasible; more > 0 {
		jobs = report.Plural(more, "more job is planned, ", "more jobs are planned, ")
	}
	return kept + fmt.Sprintf("without it %s%s, a mean turnaround of %s and %s at most. FCFS, EASY and "+
		"constant clocks know no budget", jobs, scale.FormatWithUnit(float64(s.Free.Energy)),
		report.FormatSeconds(s.Free.Turnaround.Mean), report.FormatWatts(s.Free.Peak))
}

// policyText returns the policy, and whose plan it improved.
func (s *Summary) policyText() string {
	if s.From == "" {
		return s.Policy
	}
	return s.Policy + " from " + s.From
}

// coverageText says how many jobs are planned, on what, and whether in time.
func (s *Summary) coverageText() string {
	planned := report.FormatCount(s.JobsTotal - s.Infeasible)
	if s.Infeasible == s.JobsTotal {
		return "none of " + report.FormatCount(s.JobsTotal) + " can be planned"
	}
	if s.Infeasible > 0 {
		planned += " of " + report.FormatCount(s.JobsTotal)
	}
	inTime := "all deadlines are met"
	switch {
	case s.PastDue > 0:
		inTime = s.lateText()
	case s.Infeasible > 0:
		inTime = "their deadlines are met"
	}
	return fmt.Sprintf("%s on %s with %s; the last one ends at %s; %s", planned,
		report.Plural(s.NodesUsed, "node"), report.Plural(s.GPUsUsed, "GPU"),
		report.FormatSeconds(s.End), inTime)
}

// breakdownText returns the total energy and its parts, all in one unit.
func (s *Summary) breakdownText(scale report.Scale) string {
	var parts []string
	for _, p := range s.energyParts() {
		if p.energy != 0 {
			parts = append(parts, p.name+" "+scale.Format(float64(p.energy)))
		}
	}
	if len(parts) == 0 {
		return energyText(s.Energy)
	}
	return energyText(s.Energy) + " = " + strings.Join(parts, " + ")
}

// textJobTable has a line for each planned job, of which there are count.
func (r *Result) textJobTable(count int) *report.Table {
	inMHz := r.hasClocksInMHz()
	clocks := report.Column{Head: "core/mem", Note: "× default"}
	if inMHz {
		clocks.Note = "MHz"
	}
	if countCapped(r) > 0 {
		clocks.Head += "@cap"
	}
	columns := []report.Column{
		{Head: "job", Left: true, Max: maxName},
		{Head: "node"},
		{Head: "GPU"},
		{Head: "start", Unit: report.Seconds, Group: 1},
		{Head: "end", Unit: report.Seconds, Group: 1},
		clocks,
		{Head: "power", Unit: report.Watts},
		{Head: "energy", Unit: report.Joules},
		{Head: "slack", Unit: report.Seconds, Group: 1},
		{Head: "why", Left: true},
	}
	return &report.Table{Columns: columns, Len: count, Rows: func(yield func([]report.Value) bool) {
		for task, a := range r.eachPlanned {
			t := &r.Problem.Tasks[task]
			if !yield([]report.Value{
				report.Text(t.ID), report.Text(r.nodeNames(a)), report.Text(gpuNames(a)), report.Number(a.Start),
				report.Number(a.End),
				report.Text(clockText(&a.Point, inMHz)), report.Number(a.Power(t)), report.Number(a.Energy(t)),
				report.Number(t.Deadline - a.End), report.Text(shortReason(a.Reason)),
			}) {
				return
			}
		}
	}}
}

// hasClocksInMHz reports whether every planned job has clocks in MHz.
func (r *Result) hasClocksInMHz() bool {
	for _, a := range r.eachPlanned {
		if a.Point.Core == 0 {
			return false
		}
	}
	return true
}

// countCapped returns how many planned jobs run under a power cap.
func countCapped(r *Result) (count int) {
	for _, a := range r.eachPlanned {
		if a.Point.Cap != 0 {
			count++
		}
	}
	return count
}

// clockText is core and memory clock, in MHz or as multiples of the default, and the power cap if one is
// set.
func clockText(at *dvfsmodel.Point, inMHz bool) string {
	text := fmt.Sprintf("%.3f/%.3f", at.Scaling.Fc, at.Scaling.Fm)
	if inMHz {
		text = fmt.Sprintf("%.0f/%.0f", float64(at.Core), float64(at.Mem))
	}
	if at.Cap != 0 {
		text += fmt.Sprintf("@%gW", float64(at.Cap))
	}
	return text
}

// nodeName returns the node's number within its class, with the class where there are several.
func (r *Result) nodeName(node int) string {
	number := strconv.Itoa(nodeNumber(r, node))
	if classes := r.Problem.Cluster.Classes; len(classes) > 1 {
		return classes[r.Plan.Nodes[node].Class].Name + "/" + number
	}
	return number
}

// nodeNames returns the numbers of a job's nodes, with their class where there are several.
func (r *Result) nodeNames(a *planner.Assignment) string {
	var name strings.Builder
	name.WriteString(r.nodeName(int(a.Node)))
	for k, part := range a.More {
		// The last of those in name, and the next.
		last, number := nodeNumber(r, int(a.Node)), nodeNumber(r, int(part.Node))
		if k > 0 {
			last = nodeNumber(r, int(a.More[k-1].Node))
		}
		switch follows := k+1 < len(a.More) && nodeNumber(r, int(a.More[k+1].Node)) == number+1; {
		case number != last+1:
			name.WriteString("," + strconv.Itoa(number))
		case !follows:
			name.WriteString("-" + strconv.Itoa(number))
		}
	}
	return name.String()
}

// gpuNames returns a job's GPUs: once where they are the same on all its nodes, else for
// each of them.
func gpuNames(a *planner.Assignment) string {
	if !slices.ContainsFunc(a.More, func(part planner.Part) bool { return part.GPUs != a.GPUs }) {
		return report.RangesText(a.GPUs)
	}
	var all []string
	for part := range a.Parts {
		all = append(all, report.RangesText(part.GPUs))
	}
	return strings.Join(all, ";")
}

// clockWords and placeWords are the reasons in a word or two.
var (
	clockWords = map[planner.ClockReason]string{
		planner.ClocksDefault:   "default",
		planner.ClocksNoModel:   "no model",
		planner.ClocksShared:    "shares a GPU",
		planner.ClocksFree:      "optimum",
		planner.ClocksDeadline:  "deadline",
		planner.ClocksReadjust:  "readjusted",
		planner.ClocksStretched: "stretched",
		planner.ClocksShrunk:    "shortened",
		planner.ClocksLate:      "too late",
		planner.ClocksAdapted:   "shared clock",
		planner.ClocksPaced:     "paced",
		planner.ClocksConstant:  "constant",
		planner.ClocksBudget:    "power budget",
	}
	placeWords = map[planner.PlaceReason]string{
		planner.PlaceOpened:   "new GPU",
		planner.PlaceLightest: "free first",
		planner.PlaceFirst:    "first fit",
		planner.PlaceFullest:  "fullest",
		planner.PlaceEmptiest: "emptiest",
		planner.PlaceLatest:   "latest fit",
		planner.PlaceMarginal: "least added",
		planner.PlaceMoved:    "moved",
		planner.PlaceForced:   "still in time",
		planner.PlaceLate:     "earliest finish",
		planner.PlaceHeld:     "held back",
		planner.PlaceSoonest:  "soonest",
		planner.PlaceScored:   "best score",
		planner.PlaceBeside:   "beside others",
		planner.PlacePlanned:  "replanned",
		planner.PlaceBudget:   "budget has room",
		planner.PlacePrice:    "cheap hours",
		planner.PlaceTogether: "free together",
		planner.PlaceRuns:     "runs already",
	}
)

// The bounds other than a deadline, in place of the clocks' own words.
var (
	boundWords = map[planner.TimeBound]string{planner.BoundDue: "due time", planner.BoundLimit: "limit"}
	lateWords  = map[planner.TimeBound]string{planner.BoundDue: "past due", planner.BoundLimit: "past limit"}
)

// clockWord returns the reason for clocks in a word or two.
func clockWord(r planner.Reason) string {
	switch r.Clocks {
	case planner.ClocksDeadline:
		return cmp.Or(boundWords[r.Bound], clockWords[r.Clocks])
	case planner.ClocksLate:
		return cmp.Or(lateWords[r.Bound], clockWords[r.Clocks])
	default:
		return clockWords[r.Clocks]
	}
}

// shortReason returns a reason in a few words; Reason.String is the whole sentence.
func shortReason(r planner.Reason) string {
	text := clockWord(r)
	if r.Prior {
		text += " by prior"
	}
	return text + ", " + placeWords[r.Place]
}
