package config

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/epplan/epplan/queue"
)

// FactorSeries are factors that change over time. Each holds from its time until the next
// one's; the last one as long as the one before it.
type FactorSeries struct {
	times   []time.Time // ascending; one more than there are factors: the end
	factors []factorValues
}

// factorValues are the factors of a time; NaN is not stated.
type factorValues struct{ carbon, water, cost float64 }

// maxSeries is how many rows a series may have: ten years of quarters of an hour.
const maxSeries = 400_000

// The columns of a series beside time.
var seriesColumns = []string{"carbon_g_per_kwh", "water_l_per_kwh", "cost_per_kwh"}

// ReadSeries reads factors over time from CSV with the column time (RFC 3339) and one
// or more of carbon_g_per_kwh, water_l_per_kwh and cost_per_kwh. An empty cell is not
// stated. The first bad row is an error with its line.
func ReadSeries(r io.Reader, name string) (*FactorSeries, error) {
	rows, err := queue.NewCSVTable(r, name, "time and factors")
	if err != nil {
		return nil, err
	}
	known := 0
	for _, c := range seriesColumns {
		if rows.Has(c) {
			known++
		}
	}
	if !rows.Has("time") || known != len(rows.Header)-1 || known == 0 {
		return nil, fmt.Errorf("%s:1: columns %q, want time and some of %q", queue.Printable(name), rows.Header,
			seriesColumns)
	}
	s := &FactorSeries{}
	err = rows.Each(func() error {
		if err := s.add(rows); err != nil {
			return fmt.Errorf("%s:%d: %w", queue.Printable(name), rows.Line, err)
		}
		return nil
	})
	if err != nil {
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

// ReadSeriesFile is [ReadSeries] of a file.
func ReadSeriesFile(path string) (*FactorSeries, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("factors over time: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	return ReadSeries(f, path)
}

func (s *FactorSeries) add(row *queue.CSVTable) error {
	text := row.Text("time")
	when, err := time.Parse(time.RFC3339, text)
	switch n := len(s.times); {
	case err != nil:
		return fmt.Errorf("time is %s, want one such as 2026-01-31T13:00:00Z", quoteName(text))
	case n > 0 && !when.After(s.times[n-1]):
		return fmt.Errorf("time %s isn't after the row before", quoteName(text))
	case n == maxSeries:
		return fmt.Errorf("more than %d rows", maxSeries)
	}
	var values [3]float64
	for i, c := range seriesColumns {
		values[i] = math.NaN()
		text := row.Text(c)
		if text == "" {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		// Prices are below 0 at times.
		if err != nil || !(v >= -maxFactor && v <= maxFactor) || v < 0 && c != "cost_per_kwh" {
			return fmt.Errorf("%s is %s, want a number from 0 to %g", c, quoteName(text), maxFactor)
		}
		values[i] = v
	}
	s.times, s.factors = append(s.times, when), append(s.factors, factorValues{
		values[0], values[1], values[2],
	})
	return nil
}

// maxFactor bounds factors, as those of a configuration.
const maxFactor = 1e6

// MeanFactors is the mean of factors from a time on for as long, by the series where it states
// them, else by constant ones.
func (s *FactorSeries) MeanFactors(from time.Time, long time.Duration, constant *Factors) Factors {
	out := *constant
	if s == nil {
		return out
	}
	long = max(long, time.Second)
	until := from.Add(long)
	first := max(0, s.index(from))
	for _, one := range []struct {
		to *float64
		of func(*factorValues) float64
	}{
		{&out.CarbonPerKWh, func(m *factorValues) float64 { return m.carbon }},
		{&out.WaterPerKWh, func(m *factorValues) float64 { return m.water }},
		{&out.CostPerKWh, func(m *factorValues) float64 { return m.cost }},
	} {
		sum, stated := 0.0, 0.0
		for i := first; i < len(s.factors) && s.times[i].Before(until); i++ {
			begin, end := s.times[i], s.times[i+1]
			if begin.Before(from) {
				begin = from
			}
			if end.After(until) {
				end = until
			}
			if v := one.of(&s.factors[i]); !math.IsNaN(v) && end.After(begin) {
				sum += v * end.Sub(begin).Seconds()
				stated += end.Sub(begin).Seconds()
			}
		}
		if stated > 0 {
			*one.to = (sum + *one.to*(long.Seconds()-stated)) / long.Seconds()
		}
	}
	return out
}

// index is the row that holds at a time; -1 before the first.
func (s *FactorSeries) index(at time.Time) int {
	i, exact := slices.BinarySearchFunc(s.times, at, time.Time.Compare)
	if exact {
		return i
	}
	return i - 1
}
