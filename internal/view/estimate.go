package view

import (
	"fmt"
	"strings"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
)

// Points returns by which model clocks were chosen, and what it says of default and chosen ones.
func Points(m *epdapi.Model, gpuModel string, standard, chosen *epdapi.Point) Facts {
	var facts Facts
	if m != nil {
		facts = append(facts, Fact{"Model", []string{ModelText(m, gpuModel)}})
	}
	if standard == nil {
		return facts
	}
	facts = append(facts, Fact{"Default", []string{pointText(standard)}})
	if chosen == nil || chosen.Setting == standard.Setting {
		return facts
	}
	against := fmt.Sprintf("%s of the time, %s of the GPUs' energy, %s with their share of the node",
		report.FormatPercent(chosen.TimeS/standard.TimeS), report.FormatPercent(chosen.EnergyJ/standard.EnergyJ),
		report.FormatPercent((chosen.EnergyJ+chosen.HostJ)/(standard.EnergyJ+standard.HostJ)))
	return append(facts, Fact{"Chosen", []string{pointText(chosen), against}})
}

func pointText(p *epdapi.Point) string {
	return fmt.Sprintf("%s: %s (%s to %s) at %s = %s", p.Words(), report.FormatSeconds(p.TimeS),
		report.FormatSeconds(p.LowerS), report.FormatSeconds(p.UpperS), report.FormatWatts(p.PowerW),
		report.FormatJoules(p.EnergyJ))
}

// Forecast returns what a job is expected to take, time first; nil: nothing is expected.
func Forecast(f *epdapi.Forecast, factors *epdapi.Factors) Facts {
	if f == nil {
		return nil
	}
	text := func(p *epdapi.PredictedRange, format func(float64) string, of string) []string {
		return []string{fmt.Sprintf("%s (%s to %s)%s, by %s", format(p.Value), format(p.Low), format(p.High), of,
			RungText(p.Rung))}
	}
	facts := Facts{
		{"Expected", text(&f.Time, report.FormatSeconds, "")},
		{"Energy", text(&f.Energy, report.FormatJoules[float64], " of its GPUs")},
		{"Power", text(&f.Power, report.FormatWatts[float64], " of a GPU")},
	}
	if costs := forecastFootprint(f, factors); costs != "" {
		facts = append(facts, Fact{"Costs", []string{costs}})
	}
	if f.Strange {
		facts = append(facts, Fact{"Strange", []string{
			fmt.Sprintf("it is unlike all that was learnt from (%.1f times as far as usual)", f.Score),
		}})
	}
	return facts
}

// forecastFootprint returns what a forecast comes to, by factors over time or by constant ones.
func forecastFootprint(f *epdapi.Forecast, factors *epdapi.Factors) string {
	if p := f.Footprint; p != nil {
		var parts []string
		for _, one := range []struct {
			of   *epdapi.PredictedRange
			unit string
		}{{&p.Cost, p.Currency}, {&p.Carbon, "g of CO2"}, {&p.Water, "l of water"}} {
			if one.of.High > 0 {
				parts = append(parts,
					fmt.Sprintf("%.2f %s (%.2f to %.2f)", one.of.Value, one.unit, one.of.Low, one.of.High))
			}
		}
		return strings.Join(parts, ", ")
	}
	at := func(j float64) string { return FootprintText(factors, j) }
	text := at(f.Energy.Value)
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%s (%s to %s)", text, at(f.Energy.Low), at(f.Energy.High))
}
