package view

import (
	"fmt"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
)

// How the runs of the two control groups are called.
const (
	heldOut    = "held out"
	atConstant = "at constant clocks"
)

// comparison is the saving of one group of runs against another.
type comparison struct {
	name    string
	saving  *epdapi.Saving
	against string // how the runs of the other group are called
	none    string // what to say without a saving
	note    string // what else there is to say of it; empty: nothing
}

func comparisonsOf(s *epdapi.Savings) []comparison {
	const notMeasured, tooLittle = "not measured", "too little to compare"
	all := []comparison{
		{"GPUs", &s.GPU, heldOut, tooFewRunsText(s), ""}, {"Nodes", &s.Node, heldOut, notMeasured, ""},
	}
	if s.EnergyOf == epdapi.OfModules {
		all[0].note = "energies of GPUs are those of their modules, CPUs included"
	}
	if s.Module != nil {
		all = append(all, comparison{
			"Modules", s.Module, heldOut, tooLittle,
			"apart from the GPUs, by counters of modules, CPUs included",
		})
	}
	if c := s.Constant; c != nil {
		all = append(all, comparison{"Constant, GPUs", &c.GPU, heldOut, tooLittle, ""},
			comparison{"Constant, nodes", &c.Node, heldOut, notMeasured, ""},
			comparison{"Added, GPUs", c.AddedGPU.Saving(), atConstant, tooLittle, ""},
			comparison{"Added, nodes", c.AddedNode.Saving(), atConstant, notMeasured, ""})
	}
	return all
}

// Savings returns the view of what was saved, and of its cost in time.
func Savings(s *epdapi.Savings) *View {
	v := &View{
		Title: "What was saved " + periodText(s.Since, s.Until), Lead: savingsLead(s), Tiles: savingsTiles(s),
	}
	addGroups(v, s)
	all := comparisonsOf(s)
	for i := range all {
		v.add(all[i].name, all[i].text()...)
	}
	var took []string
	if s.Time.Runs > 0 {
		took = append(took, "at chosen clocks "+s.Time.Words(heldOut))
	}
	v.add("Time", append(took, s.SlowdownWords())...)
	if c := s.Constant; c != nil {
		v.add("Constant, time", c.Time.Words(heldOut))
		v.add("Added, time", c.AddedTime.Longer().Words(atConstant))
	}
	if m := &s.Modelled; m.Runs > 0 {
		v.add("Modelled", modelledText(m))
	}
	if s.GPU.Runs > 0 {
		v.add("Worth", worthText(s))
	}
	v.Notices = savingsNotices(s)
	if figure := savingsFigure(s, all); figure != nil {
		v.addSection("measured", "Measured and modelled", figure)
	}
	if len(s.ByWorkload) > 0 {
		v.addSection("workloads", "By workload", workloadSavings(s)...)
	}
	v.addSection("how", "How it is measured", savingsMethod(s)...)
	return v
}

func modelledText(m *epdapi.ModelledUse) string {
	return fmt.Sprintf("%s of %s (%s) at the GPUs by %s: estimated by the models, not measured",
		report.EnergyText(m.SavedJ()), report.EnergyText(m.DefaultJ), report.FormatPercent(m.SavedJ()/m.DefaultJ),
		report.Plural(int(m.Runs), "run"))
}

// addGroups adds how many runs there are of each group, and how many of them are compared.
func addGroups(v *View, s *epdapi.Savings) {
	constant, drawn, ended := "", "", ""
	if c := s.Constant; c != nil {
		constant = fmt.Sprintf(", %s %s", report.FormatCount(int(c.Runs)), atConstant)
		drawn = fmt.Sprintf(", %s run %s", statedShare(c.Part), atConstant)
		ended = fmt.Sprintf(", %s %s", endedText(c.Ended), atConstant)
	}
	v.add("Runs", fmt.Sprintf("%s at chosen clocks%s, %s held out, %s", report.FormatCount(int(s.Treated)),
		constant, report.FormatCount(int(s.HeldOut)), periodText(s.Since, s.Until)),
		fmt.Sprintf("%s of the jobs are held out now%s, at random", statedShare(s.HoldOut), drawn))
	v.add("Completed", fmt.Sprintf("%s at chosen clocks%s, %s held out", endedText(s.TreatedEnded), ended,
		endedText(s.HeldOutEnded)))
	compared := []string{
		report.FormatCount(s.Workloads) + " of " + report.Plural(s.Workloads+s.Alone, "workload"),
	}
	if s.Alone > 0 {
		compared = append(compared, report.Plural(s.Alone, "workload has", "workloads have")+
			" no run in one of the groups: no saving is measured")
	}
	v.add("Compared", compared...)
	if s.Constant != nil {
		v.add("Constant", "saved at constant clocks, against default ones")
		v.add("Added", "saved by choosing clocks for each job, against constant ones")
	}
}

// text returns the saving in words, with its interval and how sure it is.
func (c *comparison) text() []string {
	e := c.saving
	if e.Runs == 0 {
		return []string{c.none}
	}
	text := []string{
		fmt.Sprintf("%s of %s (%s) saved by %s against %s %s", report.EnergyText(e.SavedJ),
			report.EnergyText(e.BaselineJ), shareText(e, e.SavedJ), report.Plural(int(e.Runs), "run"),
			report.FormatCount(int(e.Against)), c.against),
		fmt.Sprintf("between %s and %s (%s to %s) in 95 of 100 cases", report.EnergyText(e.LowJ),
			report.EnergyText(e.HighJ), shareText(e, e.LowJ), shareText(e, e.HighJ)),
	}
	if c.note != "" {
		text = append(text, c.note)
	}
	if unsure := c.unsureText(); unsure != "" {
		text = append(text, unsure)
	}
	return text
}

// shareText returns a part of what the runs of a saving would have used.
func shareText(e *epdapi.Saving, joules float64) string {
	return report.FormatPercent(joules / e.BaselineJ)
}

// unsureText says what it takes until the interval is clear of 0; empty: it is.
func (c *comparison) unsureText() string {
	if c.saving.IsCertain() {
		return ""
	}
	text, n := "may be chance: too few runs to be sure", int(c.saving.Needed)
	switch {
	case n == 0:
		return text
	case c.against == heldOut:
		return text + ": about " + report.Plural(n, "more held-out run") + " would do"
	}
	return text + ": about " + report.Plural(n, "more run "+c.against, "more runs "+c.against) + " would do"
}

// periodText says which runs count: by when they ended.
func periodText(since, until time.Time) string {
	ever, now := since.IsZero(), until.IsZero()
	since, until = since.Local(), until.Local()
	first := time.Date(since.Year(), since.Month(), 1, 0, 0, 0, 0, since.Location())
	switch {
	case ever && now:
		return "since the first record"
	case ever:
		return "before " + until.Format(time.DateTime)
	case now:
		return "since " + since.Format(time.DateTime)
	case since.Equal(first) && until.Equal(first.AddDate(0, 1, 0)):
		return "in " + since.Format("January 2006")
	}
	return "from " + since.Format(time.DateTime) + " until " + until.Format(time.DateTime)
}

func endedText(e epdapi.EndingCounts) string {
	return fmt.Sprintf("%s of %s", report.FormatCount(int(e.Completed)), report.FormatCount(int(e.Ended)))
}

func tooFewRunsText(s *epdapi.Savings) string {
	switch {
	case s.Treated == 0:
		return "No run had chosen clocks yet: workloads must be known, and the mode must be enforce."
	case s.HoldOut == 0 && s.HeldOut == 0:
		return "No run is held out (hold_out is 0 in [live]), so that there is nothing to compare with."
	case s.GPU.Needed > 0 && s.HeldOut == 0:
		return "Too little to compare: no run was held out yet of a workload that runs at chosen clocks."
	}
	return "Too little to compare: no workload has runs in both groups, and two in one of them."
}

// savingsLead returns the savings of GPUs and nodes, and their cost in time, in sentences.
func savingsLead(s *epdapi.Savings) string {
	if s.GPU.Runs == 0 {
		return tooFewRunsText(s)
	}
	best, _ := s.Best()
	text := "GPUs used " + shareText(&s.GPU, s.GPU.SavedJ) + " less energy"
	if s.Node.Runs > 0 {
		text = "Nodes used " + shareText(best, best.SavedJ) + " less energy, their GPUs " +
			shareText(&s.GPU, s.GPU.SavedJ) + " less"
	}
	if s.Time.Runs > 0 {
		text += "; jobs took " + s.Time.Words(heldOut)
	}
	if text += "."; !best.IsCertain() {
		text += " That may be chance."
	}
	return text
}

// savingsTiles returns the figures that matter most.
func savingsTiles(s *epdapi.Savings) page.Tiles {
	took := timeTile(&s.Time)
	if s.GPU.Runs > 0 {
		took.Note += fmt.Sprintf("; a job may take up to %v times as long", s.MostSlowdown())
	}
	gpus := savingTile("Saved at GPUs, measured", &s.GPU, "")
	nodes := savingTile("Saved of nodes, measured", &s.Node, "")
	tiles := page.Tiles{nodes, gpus, took}
	if s.Node.Runs == 0 {
		nodes.Note = "not measured"
		tiles = page.Tiles{gpus, nodes, took}
	}
	tiles[0].ID = "saved"
	if m := &s.Modelled; m.Runs > 0 {
		tiles = append(tiles, page.Tile{
			Label: "Saved by the models", Value: report.EnergyText(m.SavedJ()), ID: "modelled",
			Note: report.FormatPercent(m.SavedJ()/m.DefaultJ) + " by " + report.Plural(int(m.Runs), "run") +
				": estimated, not measured",
		})
	}
	const now = "of the jobs, at random, now"
	if c := s.Constant; c != nil {
		tiles = append(tiles,
			savingTile("Added by choosing", c.AddedGPU.Saving(), "over constant clocks, GPUs: "),
			page.Tile{Label: "At constant clocks", Value: statedShare(c.Part), Note: now})
	}
	tiles = append(tiles, page.Tile{Label: "Held out", Value: statedShare(s.HoldOut), Note: now})
	if best, of := s.Best(); best.Runs > 0 {
		if worth := FootprintText(&s.Factors, best.SavedJ); worth != "" {
			tiles = append(tiles, page.Tile{Label: "Worth", Value: worth, Note: "of the " + of})
		}
	}
	return tiles
}

// savingTile returns a saving with its interval, in parts of the baseline.
func savingTile(label string, e *epdapi.Saving, note string) page.Tile {
	t := page.Tile{Label: label, Value: "–", Note: note + "too little to compare"}
	if e.Runs == 0 {
		return t
	}
	t.Value, t.Kind = report.EnergyText(e.SavedJ), page.Good
	t.Note = note + shareText(e, e.SavedJ) + "; " + shareText(e, e.LowJ) + " to " + shareText(e, e.HighJ)
	if !e.IsCertain() {
		t.Kind, t.Note = page.Warn, t.Note+": too few runs to be sure"
	} else if e.SavedJ < 0 {
		t.Kind = page.Bad
	}
	return t
}

// timeTile returns by how much jobs took longer.
func timeTile(l *epdapi.Longer) page.Tile {
	t := page.Tile{Label: "Run time, measured", Value: "–", Note: "too little to compare", ID: "took"}
	if l.Runs == 0 {
		return t
	}
	share := func(s float64) string { return report.FormatPercent(l.Part(s)) }
	t.Value = fmt.Sprintf("%+.1f %%", 100*l.Part(l.LongerS))
	t.Note = "than held out; " + share(l.LowS) + " to " + share(l.HighS)
	if !l.IsCertain() {
		t.Kind, t.Note = page.Warn, t.Note+": may be chance"
	}
	return t
}

// savingsNotices warn where the completed jobs that are compared aren't a fair choice of all.
func savingsNotices(s *epdapi.Savings) []*page.Notice {
	var all []*page.Notice
	warn := func(text string, other epdapi.EndingCounts) {
		text = fmt.Sprintf(text, endedText(s.TreatedEnded), endedText(other)) +
			", more than chance explains, and only jobs that complete are compared"
		all = append(all, &page.Notice{Kind: page.Bad, Text: text})
	}
	if s.TreatedCompleteLess() {
		warn("fewer jobs complete at chosen clocks (%s) than held out (%s)", s.HeldOutEnded)
	}
	if s.ConstantCompletesUnlike() {
		warn("jobs at chosen clocks (%s) and at constant clocks (%s) don't complete alike", s.Constant.Ended)
	}
	return all
}

// savingsMethod says how savings are measured, and what isn't in them.
func savingsMethod(s *epdapi.Savings) []any {
	text := "A random part of each workload's jobs is held out: it runs at default clocks. Runs at " +
		"chosen clocks are compared with those, workload by workload on one GPU model, and the differences " +
		"are added up. The interval holds the true saving of the compared workloads in 95 of 100 cases. With " +
		"as many more runs as are said to do, it is clear of 0 in 4 of 5 cases."
	if s.Constant != nil {
		text += " Another part runs at the constant clocks of its GPU model, if it may: it is compared with " +
			"both."
	}
	const unsaid = "What this doesn't say:"
	return []any{page.Text(text), &page.Notice{Kind: page.Info, Text: unsaid, Items: []string{
		"nothing of workloads that lack a run in one of the groups;",
		"nothing of energy that idle GPUs use, and of jobs that don't complete;",
		"nothing of when jobs began: a longer run may have others wait longer.",
	}}}
}
