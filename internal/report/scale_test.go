package report_test

import (
	"math"
	"slices"
	"testing"

	"github.com/epplan/epplan/internal/report"
)

func TestAColumnHasOnePrefixAndOneNumberOfDecimals(t *testing.T) {
	for _, c := range []struct {
		name   string
		unit   report.Unit
		digits int
		values []float64
		symbol string
		want   []string
	}{
		{
			"the smallest value gets its digits", report.Joules, 3,
			[]float64{1234, 56789},
			"kJ",
			[]string{"1.23", "56.79"},
		},
		{"zeros don't count", report.Joules, 3, []float64{0, 2e6}, "MJ", []string{"0.00", "2.00"}},
		{
			"the largest one limits the digits before the point", report.Joules, 3,
			[]float64{90, 150e6},
			"kJ",
			[]string{"0.09", "150,000.00"},
		},
		{"nothing but zeros", report.Joules, 3, []float64{0}, "J", []string{"0"}},
		{"nothing finite", report.Watts, 3, []float64{math.Inf(1), math.NaN()}, "W", []string{"–", "–"}},
		{
			"negative values count by magnitude", report.Joules, 3,
			[]float64{-1500, 2500},
			"kJ",
			[]string{"-1.50", "2.50"},
		},
		{"watts", report.Watts, 3, []float64{88.8, 1234.5}, "W", []string{"88.8", "1,234.5"}},
		{"many watts", report.Watts, 3, []float64{2e3, 4e6}, "kW", []string{"2.00", "4,000.00"}},
		{"short times in seconds", report.Seconds, 3, []float64{12.345, 599}, "s", []string{"12.3", "599.0"}},
		{
			"long times on a clock", report.Seconds, 3,
			[]float64{0, 59.6, 600, -3661},
			"h:mm:ss",
			[]string{"0:00:00", "0:01:00", "0:10:00", "-1:01:01"},
		},
		{"no minus before zero", report.Seconds, 3, []float64{-1e-13, 50}, "s", []string{"0.0", "50.0"}},
		{"fractions in per cent", report.Fraction, 2, []float64{.0012, .33}, "%", []string{"0.12", "33.00"}},
		{
			"rounding errors aren't small values", report.Fraction, 2,
			[]float64{1e-15, .33},
			"%",
			[]string{"0", "33"},
		},
		{"plain numbers have no unit", report.Plain, 3, []float64{12345.678}, "", []string{"12,346"}},
		{"beyond all prefixes", report.Joules, 3, []float64{2.5e21}, "TJ", []string{"2,500,000,000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := report.CommonScale(c.unit, c.digits, c.values...)
			got := make([]string, 0, len(c.values))
			for _, v := range c.values {
				got = append(got, s.Format(v))
			}
			if s.Symbol() != c.symbol || !slices.Equal(got, c.want) {
				t.Errorf("%v became %q in %q, want %q in %q", c.values, got, s.Symbol(), c.want, c.symbol)
			}
		})
	}
}

func TestSingleFiguresCarryTheirUnit(t *testing.T) {
	for _, c := range [...]struct{ got, want string }{
		{report.FormatJoules(0.0), "0 J"},
		{report.FormatJoules(950.0), "950.0 J"},
		{report.FormatJoules(1.5e6), "1.500 MJ"},
		{report.FormatJoules(-2e9), "-2.000 GJ"},
		{report.FormatKWh(3.6e6), "1.000 kWh"},
		{report.FormatKWh(3.6e13), "10,000,000 kWh"},
		{report.FormatWatts(215.26), "215.3 W"},
		{report.FormatWatts(45e3), "45.00 kW"},
		{report.FormatSeconds(59.99), "59.99 s"},
		{report.FormatSeconds(7322.4), "2:02:02"},
		{report.FormatSeconds(360000), "100:00:00"},
		{report.FormatSeconds(1e18), "1e+18"},
		{report.FormatSeconds(math.Inf(1)), "–"},
		{report.FormatPercent(.3346), "33.5 %"},
		{report.FormatPercent(.00091), "0.091 %"},
		{report.FormatCount(-1234567), "-1,234,567"},
		{report.FormatCount(999), "999"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
