package factors

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/planner"
)

func seriesFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "prices.csv")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestNothingIsUnpricedInSilence: what is constant is priced in any case; what a series states is priced by
// the hour, or the error names it and says why it isn't.
func TestNothingIsUnpricedInSilence(t *testing.T) {
	at := time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)
	constant := &config.Factors{
		CarbonPerKWh: 400, WaterPerKWh: 2, CostPerKWh: 0.4, Currency: "EUR", PUE: 1.2, Series: "prices.csv",
	}
	prices := seriesFile(t, "time,cost_per_kwh\n2026-01-31T10:00:00Z,0.20\n2026-01-31T11:00:00Z,\n"+
		"2026-01-31T12:00:00Z,-0.10\n")
	for name, c := range map[string]struct {
		file  string
		begin time.Time
		last  float64
		cost  float64 // of a kilowatt-hour in the first three hours
		want  string
	}{
		"no series":        {"", time.Time{}, 0, 0.4, ""},
		"dated":            {prices, at, 3600, (0.2 + 0.4 - 0.1) / 3, ""},
		"no date":          {prices, time.Time{}, 3600, 0, "no money stated, which [factors] series has by the"},
		"another year":     {prices, at.AddDate(-1, 0, 0), 3600, 0, "jobs arrive from 2025-01-31T10:00:00Z to "},
		"another year now": {prices, at.AddDate(1, 0, 0), 3600, 0, "no money stated"},
		"no file":          {prices + ".old", at, 3600, 0, "no money and no CO2 and no water stated"},
	} {
		r, err := NewRates(constant, c.file, c.begin, c.last)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		got := r.During(planner.Interval{To: 3 * 3600})
		carbon := 400.0
		if name == "no file" { // nobody knows whether it is constant
			carbon = 0
		}
		if math.Abs(got.CostPerKWh-c.cost) > 1e-9 || got.CarbonPerKWh != carbon || got.PUE != 1.2 {
			t.Errorf("%s: %+v, want %v", name, got, c.cost)
		}
	}
}

// TestAnHourWithoutAPriceIsNotFree: without a constant price the row before holds, and the first before it.
func TestAnHourWithoutAPriceIsNotFree(t *testing.T) {
	at := time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)
	file := seriesFile(t, "time,cost_per_kwh\n2026-01-31T10:00:00Z,\n2026-01-31T11:00:00Z,0.2\n"+
		"2026-01-31T12:00:00Z,\n2026-01-31T13:00:00Z,0.6\n")
	r, err := NewRates(&config.Factors{Currency: "EUR"}, file, at, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.During(planner.Interval{To: 4 * 3600}).CostPerKWh; math.Abs(got-0.3) > 1e-9 {
		t.Errorf("%v, want 0.3", got)
	}
}
