package view

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report/page"
)

func TestAReportWithoutASavingSaysWhyInOneLine(t *testing.T) {
	for _, s := range []*epdapi.Savings{
		{},
		{Treated: 1},
		{Treated: 1, HoldOut: 0.1, GPU: epdapi.Saving{Needed: 4}},
		{Treated: 3, HeldOut: 1},
	} {
		if lead := savingsLead(s); !strings.HasSuffix(lead, ".") || strings.Contains(lead, "\n") {
			t.Errorf("%+v: %q", s, lead)
		}
	}
}

func TestWithoutARunToCompareNoTileHasAFigure(t *testing.T) {
	for _, s := range []*epdapi.Savings{
		{}, {Treated: 3, HoldOut: 0.1, MaxSlowdown: 1.3}, {HeldOut: 2, Workloads: 0, Alone: 4},
	} {
		for _, tile := range savingsTiles(s) {
			measured := tile.Label != "Held out" // which the configuration says
			if measured && strings.ContainsAny(tile.Value+tile.Note, "0123456789") {
				t.Errorf("%+v: %+v", s, tile)
			}
		}
	}
}

func TestALossIsntShownInTheColourOfASaving(t *testing.T) {
	for kind, e := range map[page.Severity]epdapi.Saving{
		page.Good: {Runs: 9, BaselineJ: 100, SavedJ: 10, LowJ: 5, HighJ: 15},
		page.Warn: {Runs: 9, BaselineJ: 100, SavedJ: 10, LowJ: -5, HighJ: 25},
		page.Bad:  {Runs: 9, BaselineJ: 100, SavedJ: -10, LowJ: -15, HighJ: -5},
	} {
		if got := savingsTiles(&epdapi.Savings{GPU: e})[0]; got.Kind != kind {
			t.Errorf("%+v: %+v, want the kind %q", e, got, kind)
		}
	}
}

func TestAFootprintIsWrittenAtTheScaleThatSuitsIt(t *testing.T) {
	f := epdapi.Factors{CostPerKWh: 0.25, Currency: "EUR", CarbonPerKWh: 500, WaterPerKWh: 2}
	for kWh, want := range map[float64]string{
		0.01:    "0.0025 EUR, 0.005 kg of CO2, 0.02 l of water",
		12:      "3.00 EUR, 6.00 kg of CO2, 24.00 l of water",
		9000:    "2,250 EUR, 4,500.00 kg of CO2, 18.00 m³ of water",
		-60_000: "-15,000 EUR, -30.00 t of CO2, -120.00 m³ of water",
	} {
		if got := FootprintText(&f, kWh*3.6e6); got != want {
			t.Errorf("%v kWh: %q, want %q", kWh, got, want)
		}
	}
}
