package savingsreport

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/slurm"
)

// Text is what was saved, as lines for people.
func Text(s *epdapi.Savings) string {
	var b strings.Builder
	report.WriteRow(&b, "Runs", "%s", savingsRunsText(s))
	report.WriteRow(&b, "Compared", "%s", comparedText(s))
	if s.GPU.Runs == 0 {
		b.WriteString(tooFewRunsText(s) + "\n")
		writeConstant(&b, s)
		writeModelled(&b, &s.Modelled)
		return b.String()
	}
	report.WriteRow(&b, "GPUs", "%s", savingText(&s.GPU))
	if s.Node.Runs > 0 {
		report.WriteRow(&b, "Nodes", "%s", savingText(&s.Node))
	} else {
		report.WriteRow(&b, "Nodes", "not measured")
	}
	if !s.GPU.IsCertain() {
		report.WriteRow(&b, "", "%s", uncertaintyText(&s.GPU))
	}
	of := "Time"
	if s.Time.Runs > 0 {
		report.WriteRow(&b, of, "at chosen clocks %s", s.Time.Words("held out"))
		of = ""
	}
	report.WriteRow(&b, of, "%s", s.SlowdownWords())
	if s.TreatedCompleteLess() {
		report.WriteRow(&b, "", "beware: fewer jobs complete at chosen clocks (%s) than held out (%s), and only "+
			"these are compared",
			endedText(s.TreatedEnded), endedText(s.HeldOutEnded))
	}
	writeConstant(&b, s)
	writeModelled(&b, &s.Modelled)
	best, of := widestSaving(s)
	writeFootprint(&b, s, best.SavedJ, of)
	return b.String()
}

// periodText says from when on runs count.
func periodText(s *epdapi.Savings) string {
	if s.Since.IsZero() {
		return "since the first record"
	}
	return "since " + s.Since.Local().Format(time.DateTime)
}

func savingsRunsText(s *epdapi.Savings) string {
	return fmt.Sprintf("%s at chosen clocks, %s held out, %s", report.FormatCount(int(s.Treated)),
		report.FormatCount(int(s.HeldOut)), periodText(s))
}

// widestSaving is that of the nodes where they are measured, else that of the GPUs.
func widestSaving(s *epdapi.Savings) (saving *epdapi.Saving, of string) {
	if s.Node.Runs > 0 {
		return &s.Node, "nodes"
	}
	return &s.GPU, "GPUs"
}

func comparedText(s *epdapi.Savings) string {
	text := report.FormatCount(s.Workloads) + " of " + report.Plural(s.Workloads+s.Alone, "workload")
	if s.Workloads > 0 && s.Alone > 0 {
		text += "; the others have no run in one of the arms, and what they saved isn't measured"
	}
	return text + s.ModuleWords()
}

func endedText(e epdapi.EndingCounts) string {
	return fmt.Sprintf("%s of %s", report.FormatCount(int(e.Completed)), report.FormatCount(int(e.Ended)))
}

func writeModelled(b *strings.Builder, m *epdapi.ModelledUse) {
	if m.Runs == 0 {
		return
	}
	report.WriteRow(b, "Modelled", "%s (%s) at the GPUs by %s: believed, not measured",
		report.EnergyText(m.SavedJ()),
		report.FormatPercent(m.SavedJ()/m.DefaultJ), report.Plural(int(m.Runs), "run"))
}

func savingText(s *epdapi.Saving) string {
	share := func(x float64) string { return report.FormatPercent(x / s.BaselineJ) }
	return fmt.Sprintf("%s (%s) saved by %s; between %s and %s, %s to %s", report.EnergyText(s.SavedJ),
		share(s.SavedJ),
		report.Plural(int(s.Runs), "run"), report.EnergyText(s.LowJ), report.EnergyText(s.HighJ),
		share(s.LowJ), share(s.HighJ))
}

// uncertaintyText says what it takes until the interval tells something.
func uncertaintyText(s *epdapi.Saving) string {
	return uncertaintyTextBy(s, "more held-out run", "more held-out runs")
}

// uncertaintyTextBy says so of runs as one and several of them are called.
func uncertaintyTextBy(s *epdapi.Saving, one, several string) string {
	if s.Needed > 0 {
		return "too few runs to be sure: about " + report.Plural(int(s.Needed), one, several) + " would do"
	}
	return "too few runs to be sure"
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
	return "Too little to compare: no workload has runs in both arms, and two in one of them."
}

// writeFootprint is what a saving comes to by the factors that are stated.
func writeFootprint(b *strings.Builder, s *epdapi.Savings, saved float64, of string) {
	f := &s.Factors
	if f.CostPerKWh == 0 && f.CarbonPerKWh == 0 && f.WaterPerKWh == 0 {
		report.WriteRow(b, "Worth", "unknown: epd's configuration states no [factors]")
		return
	}
	all := f.FootprintOf(saved)
	report.WriteRow(b, "Worth", "%s, from %s of the %s with a PUE of %v",
		FootprintText(f, &all), report.EnergyText(saved),
		of, max(1, f.PUE))
}

// FootprintText is what an energy costs, as far as factors are stated.
func FootprintText(f *epdapi.Factors, all *config.Footprint) string {
	var parts []string
	if f.CostPerKWh > 0 {
		parts = append(parts, amountText(all.Cost)+" "+slurm.Printable(f.Currency, maxCurrency))
	}
	if f.CarbonPerKWh > 0 {
		parts = append(parts, amountText(all.Carbon/1000)+" kg of CO2")
	}
	if f.WaterPerKWh > 0 {
		parts = append(parts, amountText(all.Water)+" l of water")
	}
	return strings.Join(parts, ", ")
}

// maxCurrency is how many bytes of a currency's name are shown.
const maxCurrency = 200

// amountText is a number with two decimals, or with two digits if it is small.
func amountText(x float64) string {
	const small = 0.02
	if x != 0 && math.Abs(x) < small {
		return strconv.FormatFloat(x, 'g', 2, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}
