package factors

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/planner"
)

// TestPricesAreThoseOfTheSeriesThenOfItsLastDay reads two days, of which an hour states nothing.
func TestPricesAreThoseOfTheSeriesThenOfItsLastDay(t *testing.T) {
	begin := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	text := &strings.Builder{}
	text.WriteString("time,cost_per_kwh\n")
	want := make([]float64, 48)
	for h := range want {
		text.WriteString(begin.Add(time.Duration(h) * time.Hour).Format(time.RFC3339))
		if want[h] = 0.1 + float64(h*h%17)/10; h == 30 {
			want[h] = 0.25
			text.WriteString(",\n")
			continue
		}
		text.WriteString("," + strconv.FormatFloat(want[h], 'f', -1, 64) + "\n")
	}
	s, err := Read(strings.NewReader(text.String()), "hours.csv")
	if err != nil {
		t.Fatal(err)
	}
	if !s.States(Money) || s.States(Carbon) {
		t.Error("it states money, and no carbon")
	}
	constant := &config.Factors{CostPerKWh: 0.25, CarbonPerKWh: 400, PUE: 1.5}
	prices, known := s.Prices(Money, begin.Add(3*time.Hour), 40*24*time.Hour, constant)
	if known != 45*3600 {
		t.Errorf("known for %v s", known)
	}
	for h := -10; h < 45+24*30; h++ {
		at := h + 3
		expect := want[max(0, min(at, 47))]
		if at >= 48 {
			expect = want[24+(at-48)%24]
		}
		during := planner.Interval{From: float64(h) * 3600, To: float64(h+1) * 3600}
		if got := prices.Integral(during) * 1000 / 1.5; math.Abs(got-expect) > 1e-9 { // a kilowatt for an hour
			t.Errorf("hour %d: %v a kWh, want %v", h, got, expect)
		}
	}
	// From long after the series it is the same day that goes on.
	const hoursLater = 66*24 + 5
	prices, known = s.Prices(Money, begin.Add(hoursLater*time.Hour), 2*24*time.Hour, constant)
	for h := range 48 {
		during := planner.Interval{From: float64(h) * 3600, To: float64(h+1) * 3600}
		expect := want[24+(hoursLater+h)%24]
		if got := prices.Integral(during) * 1000 / 1.5; math.Abs(got-expect) > 1e-9 || known >= 0 {
			t.Errorf("hour %d after 66 days: %v a kWh, want %v", h, got, expect)
		}
	}
	carbon, _ := s.Prices(Carbon, begin, 0, constant)
	if got := carbon.Integral(planner.Interval{From: 7200, To: 10800}) * 1000; math.Abs(got-600) > 1e-9 {
		t.Errorf("%v g a kWh where the series says nothing, want the constant 600", got)
	}
}
