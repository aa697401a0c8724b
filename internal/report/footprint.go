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
	stated := f.StatedFootprint(energy)
	return StatedText(&stated, f.Currency)
}

// StatedText returns what is stated of a footprint.
func StatedText(f *config.StatedFootprint, currency string) string {
	const maxCurrency = 200 // bytes
	var parts []string
	if f.Cost != nil {
		cost := AmountText(*f.Cost)
		if math.Abs(*f.Cost) >= 1000 {
			cost = FormatCount(int(math.Round(*f.Cost))) // no cents
		}
		if len(currency) > maxCurrency {
			currency = currency[:maxCurrency]
		}
		parts = append(parts, cost+" "+queue.Printable(currency))
	}
	if f.Carbon != nil {
		parts = append(parts, largeText(*f.Carbon/1000, "kg", "t")+" of CO2")
	}
	if f.Water != nil {
		parts = append(parts, largeText(*f.Water, "l", "m³")+" of water")
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
