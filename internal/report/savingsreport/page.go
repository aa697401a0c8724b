package savingsreport

import (
	"fmt"
	"io"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
)

// WritePage writes what was saved as a report in HTML. Its foot says in facts where that comes from.
func WritePage(w io.Writer, s *epdapi.Savings, facts page.Facts) error {
	r := &page.Report{
		Title: "What was saved " + periodText(s), Lead: savingsLead(s), Parts: []any{savingsTiles(s)},
		Foot: append(page.Facts{{Name: "Runs", Text: savingsRunsText(s)}}, facts...),
	}
	r.Parts = append(r.Parts, savingsNotices(s)...)
	if all := savingsEstimates(s); len(all) > 0 {
		figure := report.EstimateFigure("saved", "What was saved. Measured savings have a line from "+
			"the lower to the upper bound of their 95 % interval; what models believe is "+
			"hollow and has none.",
			"saved", report.KilowattHours, all)
		r.Sections = append(r.Sections, page.Section{
			ID: "measured", Heading: "Measured, and believed", Parts: []any{figure},
		})
	}
	if len(s.ByWorkload) > 0 {
		r.Sections = append(r.Sections,
			page.Section{ID: "workloads", Heading: "By workload", Parts: workloadSavings(s)})
	}
	r.Sections = append(r.Sections,
		page.Section{ID: "compared", Heading: "What is compared", Parts: []any{comparedFacts(s)}},
		page.Section{ID: "how", Heading: "How it is measured", Parts: savingsMethod()})
	return page.WriteReport(w, r)
}

func savingsLead(s *epdapi.Savings) string {
	if s.GPU.Runs == 0 {
		return tooFewRunsText(s)
	}
	text := "At the GPUs: " + savingText(&s.GPU) + "."
	if s.Node.Runs > 0 {
		text += " Of whole nodes: " + savingText(&s.Node) + "."
	}
	if s.Time.Runs > 0 {
		text += " Jobs took " + s.Time.Words("held out") + "."
	}
	if !s.GPU.IsCertain() {
		text += " That may be chance."
	}
	return text
}

// savingsTiles are the figures that the text output has.
func savingsTiles(s *epdapi.Savings) page.Tiles {
	var tiles page.Tiles
	for _, e := range []struct {
		label  string
		saving *epdapi.Saving
	}{{"GPUs, measured", &s.GPU}, {"Nodes, measured", &s.Node}} {
		tile := page.Tile{Label: e.label, Value: "–", Note: "too little to compare"}
		if e.saving.Runs > 0 {
			tile = savingTile(e.label, e.saving)
		} else if e.saving == &s.Node {
			tile.Note = "not measured"
		}
		tiles = append(tiles, tile)
	}
	tiles = append(tiles, timeTile(&s.Time))
	if s.Modelled.Runs > 0 {
		tiles = append(tiles, page.Tile{
			Label: "GPUs, believed", Value: report.EnergyText(s.Modelled.SavedJ()),
			Note: report.FormatPercent(s.Modelled.SavedJ()/s.Modelled.DefaultJ) +
				" by " + report.Plural(int(s.Modelled.Runs), "run") + ", not measured",
		})
	}
	if s.Constant != nil {
		tiles = append(tiles, constantTiles(s.Constant)...)
	}
	tiles = append(tiles, page.Tile{
		Label: "Held out", Value: report.FormatPercent(s.HoldOut), Note: "of jobs, by lot, now",
	})
	best, of := widestSaving(s)
	if f := &s.Factors; best.Runs > 0 && (f.CostPerKWh > 0 || f.CarbonPerKWh > 0 || f.WaterPerKWh > 0) {
		all := f.FootprintOf(best.SavedJ)
		tiles = append(tiles, page.Tile{Label: "Worth", Value: FootprintText(f, &all), Note: "of the " + of})
	}
	return tiles
}

// savingTile is a saving with its interval, in parts of the baseline.
func savingTile(label string, e *epdapi.Saving) page.Tile {
	share := func(x float64) string { return report.FormatPercent(x / e.BaselineJ) }
	t := page.Tile{
		Label: label, Value: report.EnergyText(e.SavedJ), Note: share(e.SavedJ) + "; " + share(e.LowJ) +
			" to " + share(e.HighJ), Kind: page.Good,
	}
	if !e.IsCertain() {
		t.Kind, t.Note = page.Warn, t.Note+": too few runs to be sure"
	} else if e.SavedJ < 0 {
		t.Kind = page.Bad
	}
	return t
}

// timeTile is what was paid in time.
func timeTile(l *epdapi.Longer) page.Tile {
	t := page.Tile{Label: "Run time, measured", Value: "–", Note: "too little to compare"}
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

// savingsNotices are what must not be overlooked.
func savingsNotices(s *epdapi.Savings) []any {
	var parts []any
	add := func(kind page.Severity, text string) {
		parts = append(parts, &page.Notice{Kind: kind, Text: text})
	}
	if s.TreatedCompleteLess() {
		add(page.Bad,
			"fewer jobs complete at chosen clocks ("+endedText(s.TreatedEnded)+
				") than held out ("+endedText(s.HeldOutEnded)+"), and only those that complete are compared.")
	}
	if s.GPU.Runs > 0 && !s.GPU.IsCertain() {
		add(page.Warn, uncertaintyText(&s.GPU)+". What was measured may be chance.")
	}
	if c := s.Constant; c != nil && c.AddedGPU.Runs > 0 && !c.AddedGPU.Saving().IsCertain() {
		add(page.Warn, "What choosing clocks for each job adds to constant ones may "+
			"be chance: "+addedUncertaintyText(c)+".")
	}
	if s.ConstantCompletesUnlike() {
		add(page.Bad, unlikeEndsText(s)+".")
	}
	if s.Alone > 0 {
		add(page.Info, report.Plural(s.Alone, "workload has", "workloads have")+" no run in one of the arms: what "+
			"they saved isn't measured, and is in none of these figures but what is believed.")
	}
	return parts
}

func savingsEstimates(s *epdapi.Savings) []report.Estimate {
	var all []report.Estimate
	estimates := func(what string, some []armComparison) {
		for _, m := range some {
			all = append(all, report.Estimate{
				Name: m.name + what, Value: m.saving.SavedJ, Low: m.saving.LowJ, High: m.saving.HighJ,
				Note: report.FormatCount(int(m.saving.Runs)) +
					" against " + report.Plural(int(m.saving.Against), "run"),
			})
		}
	}
	estimates(", measured", withBothArms(armComparison{"GPUs", &s.GPU}, armComparison{"nodes", &s.Node}))
	if s.Constant != nil {
		estimates(", added to constant clocks", addedComparisons(s.Constant))
		estimates(", at constant clocks", constantComparisons(s.Constant))
	}
	if s.Modelled.Runs > 0 {
		all = append(all, report.Estimate{
			Name: "GPUs, believed", Value: s.Modelled.SavedJ(), Note: report.Plural(int(s.Modelled.Runs), "run"),
			Believed: true,
		})
	}
	return all
}

const maxEstimates = 12

func workloadSavings(s *epdapi.Savings) []any {
	all := make([]report.Estimate, min(len(s.ByWorkload), maxEstimates))
	for i := range all {
		w := &s.ByWorkload[i]
		all[i] = report.Estimate{
			Name: w.LastJob.WordsOf(w.Workload), Note: w.GPUModel + ", " + epdapi.ShortWorkload(w.Workload),
			Value: w.SavedJ / w.BaselineJ, Low: w.LowJ / w.BaselineJ, High: w.HighJ / w.BaselineJ,
		}
	}
	figure := report.EstimateFigure("by-workload",
		"What each workload saved of its energy at default clocks, measured at the GPUs, with its 95 "+
			"% interval. Those with the most energy come first.",
		"saved", report.Fraction, all)
	t := report.TableOf(s.ByWorkload, func(row *report.Row, w *epdapi.WorkloadSaving) {
		certain := "may be chance"
		if w.IsCertain() {
			certain = "sure"
		} else if w.Needed > 0 {
			certain = "may be chance: about " + report.Plural(int(w.Needed), "more held-out run")
		}
		row.Add(report.Column{Head: "workload", Left: true, Max: 80},
			report.Text(w.LastJob.WordsOf(w.Workload)))
		row.Add(report.Column{Head: "key", Left: true}, report.Text(epdapi.ShortWorkload(w.Workload)))
		row.Add(report.Column{Head: "GPU model", Left: true}, report.Text(w.GPUModel))
		row.Add(report.Column{Head: "runs"}, report.Count(int(w.Runs)))
		row.Add(report.Column{Head: "held out"}, report.Count(int(w.Against)))
		row.Add(report.Column{Head: "at default", Unit: report.KilowattHours, Group: 1}, report.Number(w.BaselineJ))
		row.Add(report.Column{Head: "saved", Unit: report.KilowattHours, Group: 1}, report.Number(w.SavedJ))
		row.Add(report.Column{Head: "saved", Unit: report.Fraction, Digits: 2, Group: 2},
			report.Number(w.SavedJ/w.BaselineJ))
		row.Add(report.Column{Head: "low", Unit: report.Fraction, Digits: 2, Group: 2},
			report.Number(w.LowJ/w.BaselineJ))
		row.Add(report.Column{Head: "high", Unit: report.Fraction, Digits: 2, Group: 2},
			report.Number(w.HighJ/w.BaselineJ))
		row.Add(report.Column{Head: "longer", Unit: report.Fraction, Digits: 2, Group: 3},
			report.Number(w.Time.Part(w.Time.LongerS)))
		row.Add(report.Column{Head: "low", Unit: report.Fraction, Digits: 2, Group: 3},
			report.Number(w.Time.Part(w.Time.LowS)))
		row.Add(report.Column{Head: "high", Unit: report.Fraction, Digits: 2, Group: 3},
			report.Number(w.Time.Part(w.Time.HighS)))
		row.Add(report.Column{Head: "how sure", Left: true}, report.Text(certain))
	})
	note := "Only workloads with runs in both arms."
	if t.Len == epdapi.MaxWorkloads {
		note += " Those with less energy than these " + report.FormatCount(t.Len) + " aren't listed."
	}
	return []any{figure, t.Page("Measured at the GPUs, by workload", note, -1)}
}

func comparedFacts(s *epdapi.Savings) page.Facts {
	facts := page.Facts{
		{Name: "Workloads", Text: comparedText(s)},
		{
			Name: "At chosen clocks", Text: report.Plural(int(s.Treated), "run") + ", " +
				report.FormatCount(int(s.GPU.Runs)) + " of them compared",
		},
		{
			Name: "Held out", Text: report.Plural(int(s.HeldOut), "run") +
				" at default clocks, " + report.FormatCount(int(s.GPU.Against)) + " of them compared",
		},
		{
			Name: "Completed", Text: endedText(s.TreatedEnded) +
				" at chosen clocks, " + endedText(s.HeldOutEnded) + " held out",
		},
	}
	if s.Constant != nil {
		facts = append(facts, constantFacts(s.Constant)...)
	}
	if s.GPU.BaselineJ > 0 {
		facts = append(facts, page.Fact{
			Name: "Baseline", Text: report.EnergyText(s.GPU.BaselineJ) +
				" is what the compared runs would have used at default clocks",
		})
	}
	facts = append(facts, page.Fact{
		Name: "Run time", Text: "at chosen clocks " + s.Time.Words("held out") + "; " + s.SlowdownWords(),
	})
	needed := "no more: the interval is clear of 0"
	switch {
	case s.GPU.Needed > 0:
		needed = "about " + report.Plural(int(s.GPU.Needed), "more held-out run") +
			", after which the interval is clear of 0 in four of five cases"
	case s.GPU.Runs == 0 || !s.GPU.IsCertain():
		needed = "not known yet"
	}
	return append(facts, page.Fact{Name: "Still to hold out", Text: needed})
}

func savingsMethod() []any {
	return []any{
		page.Text("A lot leaves some jobs of each workload at default clocks. Runs at chosen clocks are " +
			"compared with those, workload by workload on one GPU model, and the differences are added up. " +
			"The interval holds the true saving of the compared workloads in 95 of 100 cases."),
		&page.Notice{Kind: page.Info, Text: "What this doesn't say:", Items: []string{
			"nothing of workloads that lack a run in one of the arms;",
			"nothing of energy that idle GPUs use, and of jobs that don't complete;",
			"nothing of when jobs began: a longer run may have others wait longer.",
		}},
	}
}
