package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
)

func savingsCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:  "savings",
		Usage: "what was saved, measured against held-out runs",
		Description: "Runs at chosen clocks are compared with runs of the same workload on the same GPU " +
			"model that a lot left at\n" +
			"default clocks. The interval holds the true saving of the compared workloads in 95 of 100 cases; those without a\n" +
			"held-out run are in none of it. What the models believe is stated beside it. Price, carbon and water follow\n" +
			"from [factors] in epd's configuration. Where the lot has jobs run at constant clocks (constant_arm in [live]),\n" +
			"what these saved is measured in the same way, and what it adds to choose clocks for each job.\n" +
			"Example: epplan savings --since 30d\n" +
			"Example: epplan savings --html savings.html",
		Flags: []cli.Flag{
			sinceFlag("runs"), anySocketFlag(publicFirst), jsonFlag(), htmlFlag(),
		},
		Action: t.runs(takesNone(runSavings)),
	}
}

type savingsReport struct {
	epdapi.Savings
	GPUCost  footprint `json:"gpu_footprint"`
	NodeCost footprint `json:"node_footprint"`
}

// footprint is what a saving comes to. What no factor was stated for is null.
type footprint struct {
	KWh      float64  `json:"kwh"`      // of the computers
	SiteKWh  float64  `json:"site_kwh"` // with the PUE
	Cost     *float64 `json:"cost"`
	Currency string   `json:"currency"`
	Carbon   *float64 `json:"carbon_g"`
	Water    *float64 `json:"water_l"`
}

func footprintOf(f *epdapi.Factors, joules float64) footprint {
	all := f.FootprintOf(joules)
	stated := func(factor, value float64) *float64 {
		if factor == 0 {
			return nil
		}
		return &value
	}
	return footprint{
		KWh: dvfsmodel.Joule(joules).KWh(), SiteKWh: all.KWh, Currency: f.Currency,
		Cost: stated(f.CostPerKWh, all.Cost), Carbon: stated(f.CarbonPerKWh, all.Carbon),
		Water: stated(f.WaterPerKWh, all.Water),
	}
}

func runSavings(t *terminal, c *cli.Context) error {
	if err := checkHTML(c); err != nil {
		return err
	}
	since, err := parseSince(c.String("since"), time.Now())
	if err != nil {
		return err
	}
	s, err := ask(c, publicFirst, func(epd *epdapi.Client, ctx context.Context) (*epdapi.Savings, error) {
		return epd.Savings(ctx, since)
	})
	if err != nil {
		return err
	}
	return t.withHTML(c, func(w io.Writer) error { return writeSavingsPage(t, w, s) }, func() error {
		if c.Bool("json") {
			return t.printJSON(savingsReport{
				Savings: *s, GPUCost: footprintOf(&s.Factors, s.GPU.SavedJ),
				NodeCost: footprintOf(&s.Factors, s.Node.SavedJ),
			})
		}
		return t.printText(savingsText(s))
	})
}

func sinceFlag(what string) cli.Flag {
	return &cli.StringFlag{
		Name: "since", DefaultText: "all that is known",
		Usage: "`TIME` from which " + what + " count: 30d, 12h, or a date such as 2026-01-31",
	}
}

func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		const most = 36_500
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= most {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usagef("--since %q, want a time such as 30d, 12h or 2026-01-31", text)
}

func savingsText(s *epdapi.Savings) string {
	var b strings.Builder
	writeRow(&b, "Runs", "%s", savingsRunsText(s))
	writeRow(&b, "Compared", "%s", comparedText(s))
	if s.GPU.Runs == 0 {
		b.WriteString(tooFewRunsText(s) + "\n")
		writeConstant(&b, s)
		writeModelled(&b, &s.Modelled)
		return b.String()
	}
	writeRow(&b, "GPUs", "%s", savingText(&s.GPU))
	if s.Node.Runs > 0 {
		writeRow(&b, "Nodes", "%s", savingText(&s.Node))
	} else {
		writeRow(&b, "Nodes", "not measured")
	}
	if !s.GPU.IsCertain() {
		writeRow(&b, "", "%s", uncertaintyText(&s.GPU))
	}
	if s.Time.Runs > 0 {
		writeRow(&b, "Time", "at chosen clocks %s", s.Time.Words("held out"))
		writeRow(&b, "", "%s", s.StretchWords())
	}
	if s.TreatedCompleteLess() {
		writeRow(&b, "", "beware: fewer jobs complete at chosen clocks (%s) than held out (%s), and only "+
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
	return "since " + dateTime(s.Since)
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
	text := report.FormatCount(s.Workloads) + " of " + plural(s.Workloads+s.Alone, "workload")
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
	writeRow(b, "Modelled", "%s (%s) at the GPUs by %s: believed, not measured", energyText(m.SavedJ()),
		report.FormatPercent(m.SavedJ()/m.DefaultJ), plural(int(m.Runs), "run"))
}

func savingText(s *epdapi.Saving) string {
	share := func(x float64) string { return report.FormatPercent(x / s.BaselineJ) }
	return fmt.Sprintf("%s (%s) saved by %s; between %s and %s, %s to %s", energyText(s.SavedJ),
		share(s.SavedJ),
		plural(int(s.Runs), "run"), energyText(s.LowJ), energyText(s.HighJ), share(s.LowJ), share(s.HighJ))
}

// uncertaintyText says what it takes until the interval tells something.
func uncertaintyText(s *epdapi.Saving) string {
	return uncertaintyTextBy(s, "more held-out run", "more held-out runs")
}

// uncertaintyTextBy says so of runs as one and several of them are called.
func uncertaintyTextBy(s *epdapi.Saving, one, several string) string {
	if s.Needed > 0 {
		return "too few runs to be sure: about " + plural(int(s.Needed), one, several) + " would do"
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
		writeRow(b, "Worth", "unknown: epd's configuration states no [factors]")
		return
	}
	all := f.FootprintOf(saved)
	writeRow(b, "Worth", "%s, from %s of the %s with a PUE of %v", footprintText(f, &all), energyText(saved),
		of, max(1, f.PUE))
}

func footprintText(f *epdapi.Factors, all *config.Footprint) string {
	var parts []string
	if f.CostPerKWh > 0 {
		parts = append(parts, amountText(all.Cost)+" "+printable(f.Currency))
	}
	if f.CarbonPerKWh > 0 {
		parts = append(parts, amountText(all.Carbon/1000)+" kg of CO2")
	}
	if f.WaterPerKWh > 0 {
		parts = append(parts, amountText(all.Water)+" l of water")
	}
	return strings.Join(parts, ", ")
}

// amountText is a number with two decimals, or with two digits if it is small.
func amountText(x float64) string {
	const small = 0.02
	if x != 0 && math.Abs(x) < small {
		return strconv.FormatFloat(x, 'g', 2, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}
