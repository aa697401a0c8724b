package factors

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// TestExportsAreReadAsTheyAre reads the first rows of tables as their sources write them.
func TestExportsAreReadAsTheyAre(t *testing.T) {
	for name, c := range map[string]struct {
		text         string
		begin        string
		cost, carbon []float64
	}{
		"Electricity Maps": {
			"Datetime (UTC),Country,Zone name,Zone id,Carbon intensity gCO₂eq/kWh (direct)," +
				"Carbon intensity gCO₂eq/kWh (Life cycle),Carbon-free energy percentage (CFE%)," +
				"Renewable energy percentage (RE%),Data source,Data estimated,Data estimation method\n" +
				"2026-01-01 00:00:00,Sweden,Sweden,SE,2.54,30.02,99.42,60.13,s,false,\n" +
				"2026-01-01 01:00:00,Sweden,Sweden,SE,2.54,31.5,99.42,60.13,s,true,m\n",
			"2026-01-01T00:00:00Z", nil,
			[]float64{30.02, 31.5},
		},
		"Electricity Maps, older": {
			"Datetime (UTC),Country,Zone Name,Zone Id,Carbon Intensity gCO₂eq/kWh (direct)," +
				"Carbon Intensity gCO₂eq/kWh (LCA),Low Carbon Percentage,Renewable Percentage,Data Source\n" +
				"2026-07-01 00:00:00,Germany,Germany,DE,300,350,50,45,x\n" +
				"2026-07-01 01:00:00,Germany,Germany,DE,300,,50,45,x\n",
			"2026-07-01T00:00:00Z", nil,
			[]float64{350, math.NaN()},
		},
		"Ember": {
			"Country,ISO3 Code,Datetime (UTC),Datetime (Local),Price (EUR/MWhe)\n" +
				"Austria,AUT,2026-01-01 00:00:00,2026-01-01 01:00:00,22.34\n" +
				"Austria,AUT,2026-01-01 01:00:00,2026-01-01 02:00:00,-5.0\n",
			"2026-01-01T00:00:00Z",
			[]float64{0.02234, -0.005},
			nil,
		},
		"ENTSO-E": {
			"\"MTU (UTC)\",\"Area\",\"Sequence\",\"Day-ahead Price (EUR/MWh)\",\"Intraday Period (UTC)\"," +
				"\"Intraday Price (EUR/MWh)\"\n" +
				"\"01/02/2026 00:00:00 - 01/02/2026 00:15:00\",\"BZN|DE-LU\",\"\",\"84.10\",\"\",\"\"\n" +
				"\"01/02/2026 00:15:00 - 01/02/2026 00:30:00\",\"BZN|DE-LU\",\"\",\"-\",\"\",\"\"\n",
			"2026-02-01T00:00:00Z",
			[]float64{0.0841, math.NaN()},
			nil,
		},
		"ENTSO-E, older": {
			"\"MTU (CET/CEST)\",\"Day-ahead Price [EUR/MWh]\",\"Currency\",\"BZN|DE-LU\"\n" +
				"\"01.07.2026 00:00 - 01.07.2026 01:00\",\"84.10\",\"EUR\",\"\"\n" +
				"\"01.07.2026 01:00 - 01.07.2026 02:00\",\"80\",\"EUR\",\"\"\n",
			"2026-06-30T22:00:00Z",
			[]float64{0.0841, 0.08},
			nil,
		},
	} {
		s, err := Read(strings.NewReader(c.text), name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := s.times[0].UTC().Format(time.RFC3339); got != c.begin || len(s.factors) != 2 {
			t.Errorf("%s: begins at %s with %d rows, want %s", name, got, len(s.factors), c.begin)
		}
		for i, f := range s.factors {
			cost, carbon := math.NaN(), math.NaN()
			if c.cost != nil {
				cost = c.cost[i]
			}
			if c.carbon != nil {
				carbon = c.carbon[i]
			}
			if fmt.Sprintf("%.9g %.9g", f.cost, f.carbon) != fmt.Sprintf("%.9g %.9g", cost, carbon) {
				t.Errorf("%s, row %d: %v, want %v and %v", name, i, f, cost, carbon)
			}
		}
	}
}

// TestHoursThatClocksShowTwiceFollowEachOther reads a year of central European hours.
func TestHoursThatClocksShowTwiceFollowEachOther(t *testing.T) {
	for _, year := range []int{2024, 2025, 2026} {
		text := &strings.Builder{}
		text.WriteString("MTU (CET/CEST),Day-ahead Price [EUR/MWh]\n")
		begin := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		count := 0
		for at := begin; at.Year() == year; at = at.Add(time.Hour) {
			local := at.Add(offsetAt(at))
			const layout = "02.01.2006 15:04"
			fmt.Fprintf(text, "%s - %s,%d\n", local.Format(layout), local.Add(time.Hour).Format(layout), count)
			count++
		}
		s, err := Read(strings.NewReader(text.String()), "year.csv")
		if err != nil {
			t.Fatal(err)
		}
		for i := range count {
			if want := begin.Add(time.Duration(i) * time.Hour); !s.times[i].Equal(want) {
				t.Fatalf("row %d is at %s, want %s", i, s.times[i].UTC(), want)
			}
		}
	}
	for at, want := range map[string]time.Duration{ // of the EU's directive 2000/84/EC
		"2026-03-29T00:59:59Z": time.Hour, "2026-03-29T01:00:00Z": 2 * time.Hour,
		"2026-10-25T00:59:59Z": 2 * time.Hour, "2026-10-25T01:00:00Z": time.Hour,
		"2024-03-31T01:00:00Z": 2 * time.Hour, "2024-10-27T01:00:00Z": time.Hour,
	} {
		when, err := time.Parse(time.RFC3339, at)
		if got := offsetAt(when); err != nil || got != want {
			t.Errorf("at %s %v, want %v", at, got, want)
		}
	}
}

// TestAnExportOfSeveralZonesIsRefused with what is wanted.
func TestAnExportOfSeveralZonesIsRefused(t *testing.T) {
	const text = "Country,ISO3 Code,Datetime (UTC),Datetime (Local),Price (EUR/MWhe)\n" +
		"Austria,AUT,2026-01-01 00:00:00,2026-01-01 01:00:00,22.34\n" +
		"Belgium,BEL,2026-01-01 00:00:00,2026-01-01 01:00:00,22.34\n"
	_, err := Read(strings.NewReader(text), "all.csv")
	if err == nil || !strings.Contains(err.Error(), "one zone") {
		t.Error(err)
	}
}
