package view

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
)

// Months are made of days, of months, or of months in another time zone; together they are the year.
func TestTheMonthsOfAYearAddUpToItAndThoseWithoutDataSaySo(t *testing.T) {
	const kWh = 3.6e6
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.Local)
	part := func(from, until time.Time, node, modelled, gpus, pruned float64) epdapi.UsagePart {
		p := epdapi.UsagePart{From: from, Until: until, PrunedJ: pruned * kWh}
		p.Runs, p.EnergyRuns = 2, 2
		p.NodeEnergyJ, p.NodeModelledJ, p.EnergyJ = (node+modelled)*kWh, modelled*kWh, (node+modelled+gpus)*kWh
		return p
	}
	march := begin.AddDate(0, 2, 0)
	u := &epdapi.Usage{
		Since: begin, Until: begin.AddDate(1, 0, 0), Factors: epdapi.Factors{PUE: 1.5},
		Over: []epdapi.UsagePart{
			part(begin, begin.AddDate(0, 0, 1), 1, 2, 4, 0),
			part(begin.AddDate(0, 0, 1), begin.AddDate(0, 0, 2), 8, 0, 0, 0),
			part(march, march.AddDate(0, 1, 0), 16, 32, 64, 128),
			{From: march.AddDate(0, 1, 0), Until: march.AddDate(0, 2, 0)},
			{From: march.AddDate(0, 2, 0), Until: march.AddDate(0, 3, 0), PrunedJ: 256 * kWh},
		},
	}
	for i := range u.Over {
		u.Total.Add(&u.Over[i].UsageSum)
	}
	now := begin.AddDate(0, 10, 20)
	var b bytes.Buffer
	if err := YearMonths(u, now).WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"2026-01": "4,9,2,4,0,15,22.5,0,until 2026-01-03", "2026-02": "0,,,,,,,0,no data",
		"2026-03": "2,16,32,64,128,240,360,0,", "2026-04": "0,,,,,,,0,no data",
		"2026-05": "0,0,0,0,256,256,384,0,",
		"2026-10": "0,,,,,,,0,no data", "2026-11": "0,,,,,,,0,so far", "2026-12": "0,,,,,,,0,to come",
	}
	lines, sum := strings.Split(strings.TrimSpace(b.String()), "\n")[1:], 0.
	for _, line := range lines {
		month, rest, _ := strings.Cut(line, ",")
		if w, ok := want[month]; ok && rest != w {
			t.Errorf("%s: %s, want %s", month, rest, w)
		}
		it, _ := strconv.ParseFloat(strings.Split(rest, ",")[5], 64)
		sum += it
	}
	if len(lines) != 12 || math.Abs(sum*kWh-u.Total.EnergyJ-384*kWh) > 1 {
		t.Errorf("%d months have %v kWh, the year %v", len(lines), sum, u.Total.EnergyJ/kWh+384)
	}
	b.Reset()
	v := Year(u, now)
	if err := v.Tables[0].WriteCSV(&b); err != nil ||
		!strings.Contains(b.String(), "\n2026,6,25,34,68,384,511,766.5,0,\n") {
		t.Errorf("%s, %v", &b, err)
	}
	if !strings.Contains(v.Text(), "Idle nodes") || !strings.Contains(v.Text(), "(EU) 2024/1364") {
		t.Errorf("nobody is told what isn't in it: %s", v.Text())
	}
}

// A cost is never said to be of all runs if the energy of some isn't known.
func TestACostSaysOfWhichRunsItIs(t *testing.T) {
	u := &epdapi.Usage{Factors: epdapi.Factors{CostPerKWh: 0.3, Currency: "EUR"}, Total: epdapi.UsageSum{
		Jobs: 1664, Runs: 1664, EnergyRuns: 1147, EnergyJ: 3.6e8, GPUS: 3.6e6, EnergyGPUS: 1.8e6,
	}}
	const part = "of the 68.9 % of the runs whose energy is known, with 500.00 of 1,000.00 GPU-hours"
	tiles := func() (notes []string) {
		for _, tile := range Usage(u).Tiles {
			notes = append(notes, tile.Label+": "+tile.Note)
		}
		return notes
	}
	got := strings.Join(tiles(), "\n")
	if strings.Count(got, part) != 2 || !strings.Contains(Usage(u).Text(), part) {
		t.Errorf("%s\n%s", got, Usage(u).Text())
	}
	u.Pruned = &epdapi.UsageSum{Runs: 517}
	if got := tiles()[1]; got != "Cost: of all that was used" {
		t.Errorf("beside pruned runs: %s", got)
	}
	var b bytes.Buffer
	u.By, u.Groups = "user", []epdapi.UsageSum{{Key: "ada", Runs: 1664, EnergyJ: 3.6e8, EnergyRuns: 1147}}
	if err := UsageTotal(u).WriteCSV(&b); err != nil || !strings.Contains(b.String(), ",cost,currency,") ||
		!strings.Contains(b.String(), "\ntotal,1664,1664,") || !strings.Contains(b.String(), ",30,EUR,") {
		t.Errorf("%s, %v", &b, err)
	}
}
