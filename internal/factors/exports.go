package factors

import (
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/textfile"
)

// export is a table as its source writes it: which of its columns are ours, and what its numbers are divided
// by.
type export struct {
	columns map[string]string // ours by its name
	each    float64           // kWh that a price is for; 1 of grams
	utc     bool              // times without an offset are UTC; else they are those of central Europe
}

// exports are the tables that are read as they are: hourly and shorter ones of Electricity Maps (life-cycle
// emissions), Ember and ENTSO-E. What else stands in them is passed over.
func exports() []export {
	const utc, central, mwh = "MTU (UTC)", "MTU (CET/CEST)", 1000
	of := func(time, factor, ours string, each float64) export {
		return export{map[string]string{time: "time", factor: ours}, each, time != central}
	}
	return []export{
		of("Datetime (UTC)", "Carbon intensity gCO₂eq/kWh (Life cycle)", "carbon_g_per_kwh", 1),
		of("Datetime (UTC)", "Carbon Intensity gCO₂eq/kWh (LCA)", "carbon_g_per_kwh", 1),
		of("Datetime (UTC)", "Price (EUR/MWhe)", "cost_per_kwh", mwh),
		of(utc, "Day-ahead Price (EUR/MWh)", "cost_per_kwh", mwh),
		of(utc, "Day-ahead Price [EUR/MWh]", "cost_per_kwh", mwh),
		of(central, "Day-ahead Price (EUR/MWh)", "cost_per_kwh", mwh),
		of(central, "Day-ahead Price [EUR/MWh]", "cost_per_kwh", mwh),
	}
}

// exportOf returns the export whose columns a header has; nil: it is none.
func exportOf(header []string) *export {
	for _, e := range exports() {
		has := 0
		for name := range e.columns {
			if slices.Contains(header, name) {
				has++
			}
		}
		if has == len(e.columns) {
			return &e
		}
	}
	return nil
}

// numberCell returns a cell of a number; "" where the export says that there is none.
func (e *export) numberCell(cell string) string {
	if e != nil && slices.Contains([]string{"-", "n/e", "N/A"}, cell) {
		return ""
	}
	return cell
}

// rowTime returns when a row begins, which may be written as a time until another one, day first. In
// the hour that a clock shows twice it is the first time that is after the row before.
func (e *export) rowTime(cell string, before time.Time) (at time.Time, ok bool) {
	begin, _, _ := strings.Cut(cell, " - ")
	begin, _, _ = strings.Cut(begin, " (") // "(CET)"
	at, zoned, ok := textfile.Moment(begin)
	for _, layout := range []string{"02.01.2006 15:04", "02/01/2006 15:04:05", "02/01/2006 15:04"} {
		if !ok {
			var err error
			at, err = time.Parse(layout, begin)
			ok = err == nil
		}
	}
	if !ok || zoned || e.utc {
		return at, ok
	}
	for _, offset := range []time.Duration{2 * time.Hour, time.Hour} {
		if utc := at.Add(-offset); offsetAt(utc) == offset && utc.After(before) {
			return utc, true
		}
	}
	return at.Add(-offsetAt(at.Add(-time.Hour))), true
}

// offsetAt returns by how much clocks of central Europe are ahead of UTC: two hours from the last Sunday of
// March, 01:00 UTC, to that of October.
func offsetAt(at time.Time) time.Duration {
	at = at.UTC()
	change := func(month time.Month) time.Time {
		last := time.Date(at.Year(), month, 31, 1, 0, 0, 0, time.UTC)
		return last.AddDate(0, 0, -int(last.Weekday()))
	}
	if at.Before(change(time.March)) || !at.Before(change(time.October)) {
		return time.Hour
	}
	return 2 * time.Hour
}
