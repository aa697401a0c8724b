package report

import (
	"math"
	"strconv"
	"strings"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/queue"
)

// FootprintText returns the cost, carbon and water of an energy; "" without factors.
func FootprintText(f *config.Factors, energy dvfsmodel.Joule) string {
	const maxCurrency = 200 // bytes
	all := f.Footprint(energy)
	var parts []string
	if f.CostPerKWh > 0 {
		cost := AmountText(all.Cost)
		if math.Abs(all.Cost) >= 1000 {
			cost = FormatCount(int(math.Round(all.Cost))) // no cents
		}
		currency := f.Currency
		if len(currency) > maxCurrency {
			currency = currency[:maxCurrency]
		}
		parts = append(parts, cost+" "+queue.Printable(currency))
	}
	if f.CarbonPerKWh > 0 {
		parts = append(parts, largeText(all.Carbon/1000, "kg", "t")+" of CO2")
	}
	if f.WaterPerKWh > 0 {
		parts = append(parts, largeText(all.Water, "l", "m³")+" of water")
	}
	return strings.Join(parts, ", ")
}

// largeText returns an amount in its unit, from 10,000 on in thousands of it.
func largeText(x float64, unit, thousands string) string {
	if math.Abs(x) >= 1e4 {
		x, unit = x/1000, thousands
	}
	return AmountText(x) + " " + unit
}

// AmountText returns a number with two decimals, or with two digits if it is small.
func AmountText(x float64) string {
	const small = 0.02
	if x != 0 && math.Abs(x) < small {
		return strconv.FormatFloat(x, 'g', 2, 64)
	}
	return GroupThousands(strconv.FormatFloat(x, 'f', 2, 64))
}
