package planreport

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/queue"
)

// PlanPage is a plan with what a report tells beside it.
type PlanPage struct {
	Result *Result
	Name   string      // of the batch
	Jobs   []queue.Job // by task, for their users and workloads; nil: not known
	Models []FittedModel
	Origin page.Facts // the command, files and version
}

// FittedModel is how well a workload is known on a GPU model.
type FittedModel struct {
	Workload, GPUModel string
	Settings           int     // distinct settings it was fitted to; 0: not known
	TimeError          float64 // mean relative error at settings left out; 0: not known
	PowerError         float64
	Source             string
}

// The most that a report shows.
const (
	maxPageRows = 2000 // of jobs in a table
	maxPageBars = 6000 // of jobs in the picture
)

// WritePlanPage writes the report of a plan: what was decided and why, and how
// sure that is.
func WritePlanPage(w io.Writer, p *PlanPage) error {
	return page.WriteReport(w, p.Content())
}

// Content returns what a report of a plan says, for pages that say it too.
func (p *PlanPage) Content() *page.Report {
	s := Summarise(p.Result)
	out := &page.Report{
		Title: "Plan of " + p.Name, Lead: p.lead(&s), Foot: p.Origin,
		Parts: slices.Concat([]any{p.tiles(&s), p.facts(&s)}, p.problemNotices(&s), s.againstParts()),
	}
	if s.JobsTotal == s.Infeasible {
		return out
	}
	for _, section := range []struct {
		id, heading string
		parts       func(*Summary) []any
	}{
		{"schedule", "Who runs where and when", p.schedule},
		{"energy", "Energy over time", p.energyParts},
		{"why", "Why", p.whyParts},
		{"who", "Users and workloads", p.whoParts},
		{"clocks", "Clocks", p.clockParts},
		{"sure", "How sure this is", p.certaintyParts},
		{"jobs", "Jobs", p.jobParts},
	} {
		if parts := section.parts(&s); len(parts) > 0 {
			out.Sections = append(out.Sections, page.Section{
				ID: section.id, Heading: section.heading, Parts: parts,
			})
		}
	}
	return out
}

// lead returns in a sentence how many jobs are planned.
func (*PlanPage) lead(s *Summary) string {
	planned := s.JobsTotal - s.Infeasible
	switch {
	case planned == 0:
		return fmt.Sprintf("Policy %s can plan none of %s: nothing was decided.", s.Policy,
			report.Plural(s.JobsTotal, "job"))
	case s.Infeasible > 0:
		return fmt.Sprintf("Policy %s plans %s of %s.", s.Policy, report.FormatCount(planned),
			report.Plural(s.JobsTotal, "job"))
	case planned == 1:
		return fmt.Sprintf("Policy %s plans 1 job.", s.Policy)
	}
	return fmt.Sprintf("Policy %s plans all %s.", s.Policy, report.Plural(planned, "job"))
}

// facts returns the totals that the text has, and what the clocks of jobs are.
func (p *PlanPage) facts(s *Summary) page.Facts {
	facts := s.facts()
	if s.JobsTotal == s.Infeasible {
		return facts
	}
	if s.ObjectiveBound > 0 && !s.forEnergy() {
		facts = append(facts, page.Fact{
			Name: "Objective", Text: s.objectiveText(s.Objective, energyScale(s.Energy)),
		})
	}
	slower, same, faster := p.Result.countSpeeds()
	clocks := fmt.Sprintf("core below the default for %s, at it for %s and above it for %s",
		report.Plural(slower, "job"), report.FormatCount(same), report.FormatCount(faster))
	if capped := countCapped(p.Result); capped > 0 {
		clocks += "; " + report.Plural(capped, "job runs", "jobs run") + " under a power cap"
	}
	return append(facts, page.Fact{Name: "Clocks", Text: clocks})
}

// tiles returns the figures that matter most.
func (p *PlanPage) tiles(s *Summary) page.Tiles {
	scale := energyScale(s.Energy)
	tiles := page.Tiles{{
		Label: "Energy", Value: scale.FormatWithUnit(float64(s.Energy)), Note: report.FormatKWh(s.Energy),
	}}
	planned := s.JobsTotal - s.Infeasible
	if s.Baseline > 0 && planned > 0 {
		tile := page.Tile{
			Label: "Saving", Value: report.FormatPercent(s.Saving()),
			Note: "of " + scale.FormatWithUnit(float64(s.Baseline)) + " at default clocks", Kind: page.Good,
		}
		if s.SavingInterval.isWorthShowing() {
			tile.Note += "; " + s.SavingInterval.String() + " in 9 of 10 cases"
		}
		switch saved := s.Saving(); {
		case saved < 0:
			tile.Kind = page.Warn
		case saved < report.RelativeTolerance:
			tile.Kind = page.Plain
		}
		tiles = append(tiles, tile)
	}
	if cost := report.FootprintText(&s.Factors, s.Energy); cost != "" && planned > 0 {
		tile := page.Tile{Label: "Cost", Value: cost}
		if base := baselineCost(s); base != "" {
			tile.Note = "at default clocks " + base
		}
		tiles = append(tiles, tile)
	}
	if planned > 0 && s.isComparable(s.Constant) {
		note := "of " + scale.FormatWithUnit(float64(s.Constant.Energy)) +
			" at the best clocks that are the same for all jobs of a GPU model"
		tiles = append(tiles, page.Tile{
			Label: "Beyond " + constantName(s.Mode),
			Value: report.FormatPercent(1 - energyRatio(s.Energy, s.Constant.Energy)), Note: note,
		})
	}
	if s.ObjectiveBound > 0 && planned > 0 {
		part, side := s.boundDistance()
		tiles = append(tiles, page.Tile{
			Label: "Gap", Value: part,
			Note: side + " " + s.objectiveText(s.ObjectiveBound, scale) + ", " + s.boundText(),
		})
	}
	jobs := page.Tile{Label: "Jobs", Value: report.FormatCount(planned), Note: "all of the batch"}
	if s.Infeasible > 0 {
		jobs.Note, jobs.Kind = report.Plural(s.Infeasible, "job")+" of "+report.FormatCount(s.JobsTotal)+
			" can't be planned", page.Bad
	}
	late := page.Tile{
		Label: "Deadlines missed", Value: report.FormatCount(s.Misses), Note: "of planned jobs", Kind: page.Good,
	}
	if s.Misses > 0 {
		late.Kind = page.Bad
	}
	tiles = append(tiles, jobs, late)
	if rest := s.PastDue - s.Misses; rest > 0 {
		tiles = append(tiles, page.Tile{
			Label: "Due times missed", Value: report.FormatCount(rest), Kind: page.Warn,
			Note: "by further jobs, which keep their deadlines",
		})
	}
	return tiles
}

// problemNotices returns what must not be overlooked.
func (p *PlanPage) problemNotices(s *Summary) []any {
	var parts []any
	if s.Infeasible > 0 {
		parts = append(parts,
			&page.Notice{
				Kind: page.Bad, Text: report.Plural(s.Infeasible, "job") +
					" can't be planned. The rest of this page is about the others.",
			},
			p.Result.infeasibleTable().Page("Jobs that can't be planned", "", maxPageRows))
	}
	if s.Misses > 0 {
		parts = append(parts,
			&page.Notice{
				Kind: page.Bad, Text: report.Plural(s.Misses, "job ends", "jobs end") + " after the deadline.",
			},
			p.Result.lateTable().Page("Jobs that end late", "", maxPageRows))
	}
	parts = append(parts, p.dueParts(s)...)
	if text := p.Result.newlyLateText(s); text != "" {
		parts = append(parts, &page.Notice{Kind: page.Warn, Text: text})
	}
	if s.Slowed > 0 {
		parts = append(parts, &page.Notice{
			Kind: page.Warn, Text: report.Plural(s.Slowed, "job is slowed", "jobs are slowed") +
				" more than tolerated.",
		})
	}
	if warnings := p.Result.Plan.Warnings; len(warnings) > 0 {
		notice := &page.Notice{Kind: page.Warn, Text: "The planner warns:"}
		notice.Items = queue.WarningLines(warnings, p.Result.EveryWarning)
		parts = append(parts, notice)
	}
	return parts
}

func (p *PlanPage) schedule(s *Summary) []any {
	picture, lanes, hidden := drawGantt(p.Result,
		&SVGOptions{MaxBars: maxPageBars, MaxHeight: 1000, ID: "plan"})
	caption := "A lane for each GPU, a bar for each job in the colour of its core clock; stripes are GPUs " +
		"that are on and idle. Point at a bar for its details; the table of jobs has them too."
	if hidden > 0 {
		caption += " Only the first " + report.FormatCount(lanes) +
			" of " + report.FormatCount(lanes+hidden) + " GPUs are drawn."
	}
	if s.JobsTotal > maxPageBars {
		caption += " Neighbours that are too short to be seen are one bar."
	}
	return []any{&page.Figure{ID: "figure-plan", Caption: caption, SVG: picture}}
}

// energyParts returns where energy goes, and when.
func (p *PlanPage) energyParts(s *Summary) []any {
	return append([]any{p.partsTable(s)}, newEnergyOverTime(p.Result).figures()...)
}

// partsTable returns the parts of the energy. Shares are of the total.
func (p *PlanPage) partsTable(s *Summary) *page.Table {
	scale := energyScale(s.Energy)
	parts := slices.DeleteFunc(s.energyParts(), func(part energyPart) bool { return part.energy == 0 })
	parts = append(parts, energyPart{"total", s.Energy})
	t := report.NewTable([]report.Column{
		{Head: "part", Left: true},
		{Head: "energy", Note: scale.Symbol()},
		{Head: "share", Note: "%"},
		{Head: "what it is", Left: true},
	}, len(parts), func(i int) []report.Value {
		part := parts[i]
		share := strconv.FormatFloat(100*energyRatio(part.energy, s.Energy), 'f', 1, 64)
		return []report.Value{
			report.Text(part.name), report.Text(scale.Format(float64(part.energy))), report.Text(share),
			report.Text(partWords[part.name]),
		}
	})
	return t.Page("Where the energy goes", "", -1)
}

var partWords = map[string]string{
	"run": "GPUs that run jobs", "idle": "GPUs of nodes that are on and run nothing",
	"turn-on": "switching nodes on",
	"host":    "the rest of nodes that are on: CPUs, memory, fans", "sleep": "nodes that are off",
}

// jobParts returns the table of all jobs, folded.
func (p *PlanPage) jobParts(s *Summary) []any {
	planned := s.JobsTotal - s.Infeasible
	summary := "All " + report.Plural(planned, "planned job")
	if planned == 1 {
		summary = "The planned job"
	}
	if planned > maxPageRows {
		summary = fmt.Sprintf("The first %s of %s planned jobs", report.FormatCount(maxPageRows),
			report.FormatCount(planned))
	}
	parts := []any{&page.Details{Summary: summary, Parts: []any{
		p.Result.textJobTable(planned).Page("Jobs, in the order of the batch", "", maxPageRows),
	}}}
	if shared := p.Result.sharedTable(); shared != nil {
		parts = append(parts, &page.Details{Summary: "Jobs on GPUs that may be shared", Parts: []any{
			shared.Page("Jobs on GPUs that may be shared", "", maxPageRows),
		}})
	}
	return parts
}

// clockParts returns the clocks that were chosen, and how often.
func (p *PlanPage) clockParts(*Summary) []any {
	t := groupTable("GPU model, core/mem", p.Result.clockGroups())
	return []any{
		t.Page("Clocks that were chosen",
			"Energies are of GPUs while jobs run. The settings with the most energy come first.", maxGroups),
	}
}

// whyParts returns the reasons, and what clocks trade.
func (p *PlanPage) whyParts(*Summary) []any {
	reason := func(task int) planner.Reason { return p.Result.Plan.Assignments[task].Reason }
	clocks := p.Result.groupJobs(func(task int) string { return clockWord(reason(task)) })
	places := p.Result.groupJobs(func(task int) string { return placeWords[reason(task).Place] })
	example := report.Column{Head: "such as", Left: true, Max: maxName}
	parts := append(make([]any, 0, 4),
		page.Text("Each job has a reason for its clocks and one for its place, in words of a policy's "+
			"stages. epplan explain tells of one job why, and what else it could have run at."),
		groupTable("clocks", clocks, example).Page("Why clocks are as they are",
			explainWords(clockSentences, clocks), -1),
		groupTable("place", places, example).Page("Why jobs run where they do", "", -1))
	if figure := p.Result.jobCurves(); figure != nil {
		parts = append(parts, figure)
	}
	return parts
}

// clockSentences say what the words for clocks mean.
var clockSentences = map[string]string{
	clockWords[planner.ClocksDefault]: "the policy leaves clocks alone",
	clockWords[planner.ClocksNoModel]: "nobody knows how the job responds, so that it runs " +
		"at default clocks",
	clockWords[planner.ClocksShared]: "part of a GPU, whose clocks belong to all who are on it",
	clockWords[planner.ClocksFree]: "the clocks that take the least energy, with no deadline, due " +
		"time or limit in the way",
	clockWords[planner.ClocksDeadline]: "faster than the optimum, for the deadline, less its " +
		"margin, demands it",
	boundWords[planner.BoundDue]: "faster than the optimum, for the due time of a job without " +
		"deadline demands it",
	boundWords[planner.BoundLimit]: "faster than the optimum, for the run-time limit, less its " +
		"margin, demands it",
	clockWords[planner.ClocksReadjust]:  "shortened to use a GPU that is on",
	clockWords[planner.ClocksStretched]: "lengthened into its node's idle time",
	clockWords[planner.ClocksShrunk]:    "shortened so that its node ends earlier",
	clockWords[planner.ClocksLate]:      "as fast as possible, and the deadline, less its margin, is lost",
	lateWords[planner.BoundDue]: "as fast as possible, and after the due time of a job " +
		"without deadline",
	lateWords[planner.BoundLimit]: "as fast as possible, and longer than its run-time limit " +
		"less its margin",
	clockWords[planner.ClocksPaced]: "faster than the optimum, so that jobs spend no more time in the " +
		"system than at default clocks",
	clockWords[planner.ClocksAdapted]:  "the clock of a GPU that jobs share",
	clockWords[planner.ClocksConstant]: "the clocks of all jobs of the GPU model",
	clockWords[planner.ClocksBudget]:   "other clocks than without the power budget",
}

func explainWords(sentences map[string]string, groups []groupSum) string {
	parts := make([]string, 0, len(groups))
	for i := range groups {
		if text := sentences[groups[i].name]; text != "" {
			parts = append(parts, groups[i].name+": "+text)
		}
	}
	return strings.Join(parts, "; ") + "."
}
