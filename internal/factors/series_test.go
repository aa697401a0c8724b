package factors

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"pgregory.net/rapid"
)

const someText = `time,carbon_g_per_kwh,cost_per_kwh
2026-01-31T10:00:00Z,100,0.20
2026-01-31T11:00:00Z,300,
2026-01-31T12:00:00Z,500,-0.10
`

func TestFactorsAreMeansOverTheHoursOfARun(t *testing.T) {
	s, err := Read(strings.NewReader(someText), "f.csv")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)
	constant := &config.Factors{CarbonPerKWh: 1000, CostPerKWh: 1, WaterPerKWh: 2, PUE: 1.2, Currency: "EUR"}
	for _, c := range []struct {
		from         time.Time
		long         time.Duration
		carbon, cost float64
	}{
		{at, time.Hour, 100, 0.2},
		{at.Add(30 * time.Minute), time.Hour, 200, 0.6}, // for half an hour no price is stated
		{at.Add(2 * time.Hour), time.Hour, 500, -0.1},
		{at.Add(2 * time.Hour), 2 * time.Hour, 750, 0.45}, // the series ends
		{at.Add(-time.Hour), 2 * time.Hour, 550, 0.6},
		{at.Add(-2 * time.Hour), time.Hour, 1000, 1},
		{at.Add(9 * time.Hour), time.Hour, 1000, 1},
		{at, 0, 100, 0.2},
	} {
		got := s.MeanFactors(c.from, c.long, constant)
		if math.Abs(got.CarbonPerKWh-c.carbon) > 1e-9 || math.Abs(got.CostPerKWh-c.cost) > 1e-9 ||
			got.WaterPerKWh != 2 || got.PUE != 1.2 {
			t.Errorf("%v for %v: %+v, want %g g and %g", c.from, c.long, got, c.carbon, c.cost)
		}
	}
	var none *Series
	if got := none.MeanFactors(at, time.Hour, constant); got != *constant {
		t.Errorf("without a series: %+v", got)
	}
}

func TestMeansOfFactorsLieBetweenThem(t *testing.T) {
	s, err := Read(strings.NewReader(someText), "f.csv")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		from := time.Unix(1769850000+rapid.Int64Range(-9e4, 9e4).Draw(t, "from"), 0)
		long := time.Duration(rapid.Int64Range(0, 2e5).Draw(t, "s")) * time.Second
		if got := s.MeanFactors(from, long, &config.Factors{CarbonPerKWh: 50}).CarbonPerKWh; got < 50-1e-9 ||
			got > 500+1e-9 {
			t.Fatalf("%g", got)
		}
	})
}

func TestABadSeriesIsAnErrorWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "f.csv: is empty, want a header",
		"time\n":             "f.csv:1:1: no column of factors",
		"time,price\n":       `f.csv:1:6: unknown column "price", want time, carbon_g_per_kwh`,
		"carbon_g_per_kwh\n": "f.csv:1:1: no column time",
		someText +
			"2026-01-31T12:00:00Z,1,1\n": `f.csv:5:1: time "2026-01-31T12:00:00Z" isn't after the row before`,
		someText + "soon,1,1\n":                        `f.csv:5:1: time is "soon", want one such as`,
		someText + "2026-02-01T12:00:00Z,-1,1\n":       `f.csv:5:22: carbon_g_per_kwh is "-1", want a number`,
		someText + "2026-02-01T12:00:00Z,NaN,1\n":      `f.csv:5:22: carbon_g_per_kwh is "NaN"`,
		someText + "2026-02-01T12:00:00Z,1\n":          "f.csv:5:22: cells in this row: 2, want 3 as in the header",
		someText + "\"" + strings.Repeat("x\n", 1<<20): "f.csv:5:1: record is longer than 1 MiB",
		"time,cost_per_kwh\n2026-01-31T12:00:00Z,1\n":  "f.csv: 1 rows, want two or more",
	} {
		if _, err := Read(strings.NewReader(text), "f.csv"); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Whatever a file of factors says: it is refused with its line, or the factors of any time can be.
func FuzzReadSeries(f *testing.F) {
	const head = "time,carbon_g_per_kwh,water_l_per_kwh,cost_per_kwh\n"
	for _, s := range []string{
		head + "2026-01-01T00:00:00Z,100,,0.3\n2026-01-01T01:00:00Z,90,1,\n", head, "time\n", "", "time,cost_per_kwh\nx,1\n",
		head + "2026-01-01T00:00:00Z,-1,1e999,NaN\n", "time,cost_per_kwh\n9999-12-31T23:59:59Z,1\n0001-01-01T00:00:00Z,1\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := Read(strings.NewReader(s), "fuzz.csv"); err != nil &&
			!strings.Contains(err.Error(), "fuzz.csv") {
			t.Fatalf("the error names no file: %v", err)
		}
	})
}
