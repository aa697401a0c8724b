// Package factors reads what a kWh costs, emits and uses of water over time, and sums it over runs.
package factors

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/textfile"
	"github.com/epplan/epplan/planner/hours"
	"github.com/epplan/epplan/planner/steps"
	"github.com/epplan/epplan/queue"
)

// Series are factors that change over time. Each holds from its time until the next
// one's; the last one as long as the one before it.
type Series struct {
	times   []time.Time // ascending; one more than there are factors: the end
	factors []factorValues
}

// factorValues are the factors of a time; NaN is not stated.
type factorValues struct{ carbon, water, cost float64 }

// maxSeries is how many rows a series may have: ten years of quarters of an hour.
const maxSeries = 400_000

// seriesColumns are the columns of a series: the time, then those of factorValues.
var seriesColumns = []textfile.Column{
	{Name: "time", Aliases: []string{"timestamp", "datetime"}, Required: true},
	{Name: "carbon_g_per_kwh"},
	{Name: "water_l_per_kwh"},
	{Name: "cost_per_kwh"},
}

// Read reads factors over time from a table with the column time (a date with a time of day and
// an offset) and one or more of carbon_g_per_kwh, water_l_per_kwh and cost_per_kwh. An empty cell is
// not stated. Exports of Electricity Maps, Ember and ENTSO-E are read as they are. The first bad cell is an
// error with its place.
func Read(r io.Reader, name string) (*Series, error) {
	rows, err := textfile.OpenTable(r, name, "time and factors", textfile.OnlyText)
	if err != nil {
		return nil, err
	}
	s := &Series{}
	in := &seriesReader{Table: rows, series: s}
	var options *textfile.Options
	if in.export = exportOf(rows.Header); in.export != nil {
		options = &textfile.Options{Columns: in.export.columns, Ignore: true}
	}
	if in.at, _, err = rows.Arrange(seriesColumns, options); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(in.at[1:], func(f textfile.Found) bool { return f.At >= 0 }) {
		return nil, &textfile.SyntaxError{
			Pos: rows.CellAt(0), Msg: "no column of factors",
			Want: "one of carbon_g_per_kwh, water_l_per_kwh and cost_per_kwh",
		}
	}
	if err := rows.Each(in.add); err != nil {
		return nil, err
	}
	const fewest = 2
	if n := len(s.times); n < fewest {
		return nil, fmt.Errorf("%s: %d rows, want two or more", queue.Printable(name), n)
	}
	n := len(s.times)
	s.times = append(s.times, s.times[n-1].Add(s.times[n-1].Sub(s.times[n-2])))
	return s, nil
}

// ReadFile is [Read] of a file.
func ReadFile(path string) (*Series, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("factors over time: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	return Read(f, path)
}

// seriesReader reads the rows of a series.
type seriesReader struct {
	*textfile.Table
	at     []textfile.Found // as seriesColumns
	series *Series
	export *export // nil: the table is as epplan has it
}

func (r *seriesReader) add() error {
	s, at := r.series, r.at[0].At
	text := r.Cell(at)
	when, zoned, ok := textfile.Moment(text)
	if r.export != nil {
		before := time.Time{}
		if n := len(s.times); n > 0 {
			before = s.times[n-1]
		}
		when, ok = r.export.rowTime(text, before)
		zoned = true
	}
	fault := &textfile.SyntaxError{Pos: r.CellAt(at), Msg: "time is " + textfile.Quoted(text)}
	switch n := len(s.times); {
	case !ok:
		fault.Want = "one such as 2026-01-31T13:00:00Z"
		return fault
	case !zoned:
		fault.Msg += ", without an offset"
		fault.Want = "one such as 2026-01-31T13:00:00Z or 2026-01-31 14:00+01:00"
		return fault
	case n > 0 && !when.After(s.times[n-1]):
		fault.Msg = "time " + textfile.Quoted(text) + " isn't after the row before"
		if r.export != nil {
			fault.Want = "the rows of one zone, by time"
		}
		return fault
	case n == maxSeries:
		fault.Msg = fmt.Sprintf("more than %d rows", maxSeries)
		return fault
	}
	var values [3]float64
	for i := range values {
		var err error
		if values[i], err = r.factor(1 + i); err != nil {
			return err
		}
	}
	s.times, s.factors = append(s.times, when), append(s.factors, factorValues{
		values[0], values[1], values[2],
	})
	return nil
}

// factor returns a number of the current row; NaN where it states none.
func (r *seriesReader) factor(column int) (float64, error) {
	at, name := r.at[column].At, seriesColumns[column].Name
	if r.export.numberCell(r.Cell(at)) == "" {
		return math.NaN(), nil
	}
	plain, err := r.Number(at)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(plain, 64)
	// Prices are below 0 at times.
	if err != nil || !(v >= -maxFactor && v <= maxFactor) || v < 0 && name != "cost_per_kwh" {
		return 0, &textfile.SyntaxError{
			Pos: r.CellAt(at), Msg: name + " is " + textfile.Quoted(r.Cell(at)),
			Want: fmt.Sprintf("a number from 0 to %g", maxFactor),
		}
	}
	if r.export != nil {
		v /= r.export.each
	}
	return v, nil
}

// maxFactor bounds factors, as those of a configuration.
const maxFactor = 1e6

// Begin returns when the first row's time begins.
func (s *Series) Begin() time.Time { return s.times[0] }

// End returns when the last row's time is over.
func (s *Series) End() time.Time { return s.times[len(s.factors)] }

// MeanFactors returns the mean of factors from a time on for as long, by the series where it states
// them, else by constant ones.
func (s *Series) MeanFactors(from time.Time, long time.Duration, constant *config.Factors) config.Factors {
	out := *constant
	if s == nil {
		return out
	}
	long = max(long, time.Second)
	until := from.Add(long)
	first := max(0, s.index(from))
	for kind := range kinds {
		to := factorOf(&out, Kind(kind))
		sum, stated := 0.0, 0.0
		for i := first; i < len(s.factors) && s.times[i].Before(until); i++ {
			begin, end := s.times[i], s.times[i+1]
			if begin.Before(from) {
				begin = from
			}
			if end.After(until) {
				end = until
			}
			if v := s.factors[i].of(Kind(kind)); !math.IsNaN(v) && end.After(begin) {
				sum += v * end.Sub(begin).Seconds()
				stated += end.Sub(begin).Seconds()
			}
		}
		if stated > 0 {
			*to = (sum + *to*(long.Seconds()-stated)) / long.Seconds()
		}
	}
	return out
}

// Kind is what a kilowatt-hour is reckoned in over time.
type Kind int

// Money, in the currency of the factors, and grams of CO2.
const (
	Money Kind = iota
	Carbon
	water // litres
)

// kinds names them for people.
var kinds = [...]string{Money: "money", Carbon: "CO2", water: "water"}

func factorOf(f *config.Factors, kind Kind) *float64 {
	switch kind {
	case Carbon:
		return &f.CarbonPerKWh
	case water:
		return &f.WaterPerKWh
	default:
		return &f.CostPerKWh
	}
}

// States reports whether some row states the factor.
func (s *Series) States(kind Kind) bool {
	return slices.ContainsFunc(s.factors, func(v factorValues) bool { return !math.IsNaN(v.of(kind)) })
}

func (v factorValues) of(kind Kind) float64 {
	switch kind {
	case Carbon:
		return v.carbon
	case water:
		return v.water
	default:
		return v.cost
	}
}

// Prices returns what a joule of the computers costs over time, seconds from a moment on, the site's overhead
// included; where a row doesn't state it, by the constant factor, else by the row before. Before the first row
// its price holds, behind the last one those of the 24 hours before, until so long after it and after the
// moment; known is until when they are the series' own.
func (s *Series) Prices(
	kind Kind, from time.Time, long time.Duration, constant *config.Factors,
) (prices hours.Prices, known float64) {
	const joules, day = 3.6e6, 24 * time.Hour
	usual := *factorOf(constant, kind)
	carried := usual == 0
	states := func(v factorValues) bool { return !math.IsNaN(v.of(kind)) }
	if i := slices.IndexFunc(s.factors, states); carried && i >= 0 {
		usual = s.factors[i].of(kind)
	}
	add := func(at time.Time, value float64) {
		switch {
		case math.IsNaN(value):
			value = usual
		case carried:
			usual = value
		}
		prices.Function = append(prices.Function, steps.Step[float64]{
			From: at.Sub(from).Seconds(), Value: value / joules * max(1, constant.PUE),
		})
	}
	for i := range s.factors {
		add(s.times[i], s.factors[i].of(kind))
	}
	end := s.End()
	again := min(day, end.Sub(s.times[0])).Truncate(time.Second)
	begin, until := end, end.Add(long)
	if secs := int64(again.Seconds()); secs > 0 && from.After(end) { // those before it are of no use
		begin = from.Truncate(time.Second).Add(-time.Duration((from.Unix()-end.Unix())%secs) * time.Second)
		until = from.Add(long)
	}
	for ; again > 0 && begin.Before(until); begin = begin.Add(again) {
		first := max(0, s.index(end.Add(-again)))
		for i := first; i < len(s.factors); i++ {
			add(begin.Add(max(0, s.times[i].Sub(end.Add(-again)))), s.factors[i].of(kind))
		}
	}
	return prices, end.Sub(from).Seconds()
}

// index returns the row that holds at a time; -1 before the first.
func (s *Series) index(at time.Time) int {
	i, exact := slices.BinarySearchFunc(s.times, at, time.Time.Compare)
	if exact {
		return i
	}
	return i - 1
}
