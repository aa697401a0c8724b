package web

import (
	"fmt"
	"math"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
)

// savedTile is what was saved at the GPUs, as far as it was measured.
func savedTile(s *epdapi.Savings) page.Tile {
	t := page.Tile{Label: "Saved, measured", Value: dash, ID: "saved"}
	g := &s.GPU
	energy := energyFormatter(g)
	switch {
	case g.Runs == 0:
		t.Note = "no workload has both treated and held-out runs yet"
	case !g.IsCertain():
		t.Value = energy(g.SavedJ)
		t.Note = fmt.Sprintf("from %s to %s (95 %%): not told from chance yet", energy(g.LowJ),
			energy(g.HighJ))
		t.Kind = page.Warn
	default:
		t.Value = energy(g.SavedJ)
		t.Note = shareText(g.SavedJ, g.BaselineJ) + fmt.Sprintf("from %s to %s (95 %%)", energy(g.LowJ),
			energy(g.HighJ))
		t.Kind = page.Good
		if g.SavedJ < 0 {
			t.Kind = page.Bad
		}
	}
	if l := &s.Time; l.Runs > 0 {
		t.Note += fmt.Sprintf("; run time %+.1f %%", 100*l.Part(l.LongerS))
	}
	if g.Runs > 0 {
		t.Note += fmt.Sprintf("; a job may take up to %v times as long", s.MostSlowdown())
	}
	return t
}

// savingsParts is what was saved, with how sure that is.
func savingsParts(s *epdapi.Savings) []any {
	facts := page.Facts{
		{Name: "Measured at the GPUs", Text: savingSentence(&s.GPU, "held out")},
		{Name: "Measured for nodes", Text: savingSentence(&s.Node, "held out")},
	}
	switch {
	case s.EnergyOf == epdapi.OfModules:
		facts[0].Name = "Measured of the GPUs' modules, CPUs included"
	case s.Module != nil:
		facts = append(facts, page.Fact{
			Name: "Measured of modules, CPUs included", Text: savingSentence(s.Module, "held out"),
		})
	}
	bound := page.Fact{Name: "Run time", Text: s.SlowdownWords()}
	if s.Time.Runs > 0 {
		bound.Text = "at chosen clocks " + s.Time.Words("held out") + "; " + bound.Text
	}
	facts = append(facts, bound)
	facts = append(facts, constantFacts(s)...)
	if s.Modelled.Runs > 0 {
		facts = append(facts, page.Fact{
			Name: "By the models",
			Text: fmt.Sprintf("%s of %s over %s; nothing measured stands behind what default clocks "+
				"would have taken",
				joulesText(s.Modelled.SavedJ()), joulesText(s.Modelled.DefaultJ),
				report.Plural(s.Modelled.Runs, "run")),
		})
	}
	facts = append(facts,
		page.Fact{
			Name: "Compared", Text: report.Plural(s.Workloads, "workload") + "; " + report.FormatCount(s.Alone) +
				" without runs in both arms",
		},
		page.Fact{Name: "Runs", Text: fmt.Sprintf("%s treated, %s held out; %s of the jobs are held out now",
			report.FormatCount(int(s.Treated)), report.FormatCount(int(s.HeldOut)), statedShare(s.HoldOut))},
	)
	if s.GPU.Runs > 0 && s.GPU.IsCertain() {
		facts = append(facts, footprintFacts(s)...)
	}
	parts := []any{facts}
	if picture := savingsPicture(s); picture != nil {
		parts = append(parts, picture)
	}
	if s.TreatedCompleteLess() {
		parts = append(parts, &page.Notice{
			Kind: page.Warn, Text: "Fewer treated jobs than held-out ones completed, more than chance " +
				"explains: what is compared here is a choice of the jobs.",
		})
	}
	if s.ConstantCompletesUnlike() {
		parts = append(parts, &page.Notice{
			Kind: page.Warn, Text: "Treated jobs and those at constant clocks don't complete alike, more " +
				"than chance explains: what is compared of them is a choice of the jobs.",
		})
	}
	text := "Jobs that a lot held out ran at default clocks; treated ones of the same workloads are " +
		"compared with them."
	if s.Constant != nil {
		text += " Others it had run at the constant clocks of their GPU model, where they may be at those: " +
			"they are compared with both."
	}
	return append(parts, page.Text(text))
}

// constantFacts are what came of the jobs at constant clocks, and what choosing for
// each job adds; none without such jobs.
func constantFacts(s *epdapi.Savings) page.Facts {
	c := s.Constant
	if c == nil {
		return nil
	}
	facts := page.Facts{
		{
			Name: "Added by choosing", Text: "at the GPUs, over constant clocks: " +
				savingSentence(c.AddedGPU.Saving(), "at constant clocks"),
		},
		{Name: "At constant clocks", Text: "at the GPUs: " + savingSentence(&c.GPU, "held out")},
	}
	if c.AddedNode.Runs > 0 {
		facts = append(facts, page.Fact{
			Name: "Added, of nodes", Text: savingSentence(c.AddedNode.Saving(), "at constant clocks"),
		})
	}
	if t := c.AddedTime.Longer(); t.Runs > 0 {
		facts = append(facts, page.Fact{Name: "Added, run time", Text: t.Words("at constant clocks")})
	}
	if c.Node.Runs > 0 {
		facts = append(facts, page.Fact{
			Name: "At constant clocks, of nodes", Text: savingSentence(&c.Node, "held out"),
		})
	}
	if c.Time.Runs > 0 {
		facts = append(facts, page.Fact{Name: "At constant clocks, run time", Text: c.Time.Words("held out")})
	}
	return append(facts, page.Fact{
		Name: "Runs of the constant arm", Text: report.FormatCount(int(c.Runs)) + "; " + statedShare(c.Part) +
			" of the jobs are drawn for it now",
	})
}

// energyFormatter writes a saving and its bounds, all of them in one unit.
func energyFormatter(s *epdapi.Saving) func(float64) string {
	return report.CommonScale(report.Joules, 3, s.SavedJ, s.LowJ, s.HighJ).With
}

// savingSentence is one saving in words, against runs that are called so.
func savingSentence(s *epdapi.Saving, against string) string {
	if s.Runs == 0 {
		return "nothing to compare yet"
	}
	share := ""
	if s.BaselineJ > 0 {
		share = " (" + report.FormatPercent(s.SavedJ/s.BaselineJ) + ")"
	}
	energy := energyFormatter(s)
	text := fmt.Sprintf("%s%s, from %s to %s in 95 of 100 cases, by %s against %s %s",
		energy(s.SavedJ), share, energy(s.LowJ), energy(s.HighJ), report.Plural(s.Runs, "run"),
		report.FormatCount(int(s.Against)), against)
	if !s.IsCertain() && s.Needed > 0 {
		text += fmt.Sprintf("; about %s more runs %s tell it from chance",
			report.FormatCount(int(s.Needed)), against)
	}
	return text
}

// savingsPicture shows what was saved with its bounds; nil where there is nothing
// to show.
func savingsPicture(s *epdapi.Savings) any {
	var all []report.Estimate
	add := func(name, note string, of *epdapi.Saving) {
		if of.Runs > 0 {
			all = append(all, report.Estimate{
				Name: name, Note: note, Value: of.SavedJ, Low: of.LowJ, High: of.HighJ,
			})
		}
	}
	add("at the GPUs", "measured", &s.GPU)
	add("for nodes", "measured", &s.Node)
	if c := s.Constant; c != nil {
		add("added, at the GPUs", "measured, over constant clocks", c.AddedGPU.Saving())
		add("constant clocks, at the GPUs", "measured", &c.GPU)
	}
	if len(all) == 0 {
		return nil
	}
	if s.Modelled.Runs > 0 {
		all = append(all, report.Estimate{
			Name: "at the GPUs", Note: "by the models, not measured", Value: s.Modelled.SavedJ(),
			Believed: true,
		})
	}
	return report.EstimateFigure("savings", "What was saved: the line is where the truth lies in "+
		"95 of 100 cases. Left of 0 more was used than at default clocks.", "energy saved",
		report.Joules, all)
}

// footprintFacts is what the measured saving comes to beside energy.
func footprintFacts(s *epdapi.Savings) page.Facts {
	f, from := s.Factors.FootprintOf(s.GPU.SavedJ), "at the GPUs"
	facts := page.Facts{}
	add := func(name string, stated bool, text string) {
		if stated {
			facts = append(facts, page.Fact{Name: name, Text: text + ", " + from})
		}
	}
	grams, mass := unitChooser([]displayUnit{{1e7, 1e6, "t"}, {0, 1e3, "kg"}})(math.Abs(f.Carbon))
	add("CO₂ equivalent", s.Factors.CarbonPerKWh > 0, threeDigits(f.Carbon/grams)+" "+mass)
	litres, volume := unitChooser([]displayUnit{{1e4, 1e3, "m³"}, {0, 1, "l"}})(math.Abs(f.Water))
	add("Water", s.Factors.WaterPerKWh > 0, threeDigits(f.Water/litres)+" "+volume)
	cost := fmt.Sprintf("%.2f", f.Cost)
	const centsBelow = 1000
	if math.Abs(f.Cost) >= centsBelow {
		cost = report.FormatCount(int(math.Round(f.Cost)))
	}
	add("Cost", s.Factors.CostPerKWh > 0, cost+" "+s.Factors.Currency)
	return facts
}

// threeDigits is a number with three digits at least.
func threeDigits(x float64) string { return report.CommonScale(report.Plain, 3, x).With(x) }
