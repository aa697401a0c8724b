package savingsreport

import (
	"strings"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/report/page"
)

// armComparison is one of two arms, at the GPUs or for nodes.
type armComparison struct {
	name   string
	saving *epdapi.Saving
}

// withBothArms are those that have runs of both arms.
func withBothArms(all ...armComparison) []armComparison {
	var some []armComparison
	for _, m := range all {
		if m.saving.Runs > 0 {
			some = append(some, m)
		}
	}
	return some
}

// constantComparisons compare the constant arm with the held-out one, and addedComparisons the
// treated one with the constant one.
func constantComparisons(c *epdapi.ConstantArm) []armComparison {
	return withBothArms(armComparison{"GPUs", &c.GPU}, armComparison{"nodes", &c.Node})
}

func addedComparisons(c *epdapi.ConstantArm) []armComparison {
	return withBothArms(armComparison{"GPUs", c.AddedGPU.Saving()},
		armComparison{"nodes", c.AddedNode.Saving()})
}

// writeConstant is what came of the jobs at constant clocks, and what choosing for each
// job adds to that.
func writeConstant(b *strings.Builder, s *epdapi.Savings) {
	c := s.Constant
	if c == nil {
		return
	}
	report.WriteRow(b, "Constant", "%s at constant clocks, by lot; saved against default clocks:",
		report.Plural(int(c.Runs), "run"))
	compare := func(all []armComparison) {
		for _, m := range all {
			report.WriteRow(b, "", "%s: %s", m.name, savingText(m.saving))
		}
		if len(all) == 0 {
			report.WriteRow(b, "", "too little to compare")
		}
	}
	compare(constantComparisons(c))
	if c.Time.Runs > 0 {
		report.WriteRow(b, "", "time: %s", c.Time.Words("held out"))
	}
	report.WriteRow(b, "Added", "by choosing clocks for each job, against constant clocks:")
	added := addedComparisons(c)
	compare(added)
	if t := c.AddedTime.Longer(); t.Runs > 0 {
		report.WriteRow(b, "", "time: %s", t.Words("at constant clocks"))
	}
	if len(added) > 0 && !added[0].saving.IsCertain() {
		report.WriteRow(b, "", "%s", addedUncertaintyText(c))
	}
	if s.ConstantCompletesUnlike() {
		report.WriteRow(b, "", "beware: %s", unlikeEndsText(s))
	}
}

// addedUncertaintyText says what it takes until the interval of what choosing adds tells
// something.
func addedUncertaintyText(c *epdapi.ConstantArm) string {
	return uncertaintyTextBy(c.AddedGPU.Saving(), "more run at constant clocks",
		"more runs at constant clocks")
}

// unlikeEndsText says that treated jobs and those at constant clocks end in other ways.
func unlikeEndsText(s *epdapi.Savings) string {
	return "jobs at chosen clocks (" + endedText(s.TreatedEnded) + ") and at constant ones (" +
		endedText(s.Constant.Ended) + ") don't complete alike, and only those that complete are compared"
}

// constantTiles are what choosing for each job adds, and how many jobs run for that.
func constantTiles(c *epdapi.ConstantArm) page.Tiles {
	tile := page.Tile{
		Label: "Added by choosing", Value: "–", Note: "over constant clocks: too little to compare",
	}
	if added := addedComparisons(c); len(added) > 0 {
		tile = savingTile("Added by choosing", added[0].saving)
		tile.Note = "over constant clocks, GPUs: " + tile.Note
	}
	return page.Tiles{
		tile, {
			Label: "At constant clocks", Value: report.FormatPercent(c.Part), Note: "of jobs, by lot, now",
		},
	}
}

// constantFacts say which runs were compared with those at constant clocks, and what
// came of it.
func constantFacts(c *epdapi.ConstantArm) page.Facts {
	facts := page.Facts{{
		Name: "At constant clocks",
		Text: report.Plural(int(c.Runs), "run") + ", " + report.FormatCount(int(c.AddedGPU.Against)) +
			" of them compared with those at chosen clocks; " + endedText(c.Ended) + " completed",
	}}
	add := func(name string, all []armComparison) {
		for _, m := range all {
			facts = append(facts, page.Fact{Name: name + ", " + m.name, Text: savingText(m.saving)})
		}
	}
	add("Constant clocks against default ones", constantComparisons(c))
	facts = append(facts, page.Fact{Name: "Constant clocks, run time", Text: c.Time.Words("held out")})
	add("Chosen clocks against constant ones", addedComparisons(c))
	if t := c.AddedTime.Longer(); t.Runs > 0 {
		facts = append(facts, page.Fact{
			Name: "Chosen clocks against constant ones, run time", Text: t.Words("at constant clocks"),
		})
	}
	return facts
}
