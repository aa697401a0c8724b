package view

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/slurm"
)

// widestSaving returns the saving of the nodes if they are measured, else that of the GPUs.
func widestSaving(s *epdapi.Savings) (saving *epdapi.Saving, of string) {
	if s.Node.Runs > 0 {
		return &s.Node, "nodes"
	}
	return &s.GPU, "GPUs"
}

// worthText says what a saving comes to beside energy, by the factors that are stated.
func worthText(s *epdapi.Savings) string {
	best, of := widestSaving(s)
	text := FootprintText(&s.Factors, best.SavedJ)
	if text == "" {
		return "unknown: epd's configuration states no [factors]"
	}
	text += fmt.Sprintf(", from %s of the %s with a PUE of %v", report.EnergyText(best.SavedJ), of,
		max(1, s.Factors.PUE))
	if !best.IsCertain() {
		text += "; may be chance"
	}
	return text
}

// FootprintText returns what an energy costs, as far as factors are stated.
func FootprintText(f *epdapi.Factors, joules float64) string {
	const maxCurrency = 200 // bytes
	all := f.FootprintOf(joules)
	var parts []string
	if f.CostPerKWh > 0 {
		cost := amountText(all.Cost)
		if math.Abs(all.Cost) >= 1000 {
			cost = report.FormatCount(int(math.Round(all.Cost))) // no cents
		}
		parts = append(parts, cost+" "+slurm.Printable(f.Currency, maxCurrency))
	}
	if f.CarbonPerKWh > 0 {
		parts = append(parts, largeText(all.Carbon/1000, "kg", "t")+" of CO2")
	}
	if f.WaterPerKWh > 0 {
		parts = append(parts, largeText(all.Water, "l", "m³")+" of water")
	}
	return strings.Join(parts, ", ")
}

// largeText returns an amount in a unit, or from 10,000 on in thousands of it.
func largeText(x float64, unit, thousands string) string {
	if math.Abs(x) >= 1e4 {
		x, unit = x/1000, thousands
	}
	return amountText(x) + " " + unit
}

// amountText returns a number with two decimals, or with two digits if it is small.
func amountText(x float64) string {
	const small = 0.02
	if x != 0 && math.Abs(x) < small {
		return strconv.FormatFloat(x, 'g', 2, 64)
	}
	return report.GroupThousands(strconv.FormatFloat(x, 'f', 2, 64))
}

// statedShare returns a part that somebody configured, no more exact than it was stated.
func statedShare(x float64) string { return strconv.FormatFloat(100*x, 'g', 4, 64) + " %" }
