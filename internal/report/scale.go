package report

import (
	"math"
	"strconv"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
)

// Unit is what the numbers of a column measure.
type Unit uint8

// The units that values come in. Plain has none. Fraction is shown to people
// in per cent. KilowattHours are joules that are shown as such.
const (
	Plain Unit = iota
	Joules
	Watts
	Seconds
	Fraction
	KilowattHours
)

// prefix is a multiple of a unit.
type prefix struct {
	symbol string
	factor float64
}

var (
	joulePrefixes = []prefix{{"J", 1}, {"kJ", 1e3}, {"MJ", 1e6}, {"GJ", 1e9}, {"TJ", 1e12}}
	wattPrefixes  = []prefix{{"W", 1}, {"kW", 1e3}, {"MW", 1e6}}
)

// minClockTime is the number of seconds from which times are shown as h:mm:ss.
const minClockTime = 600

// Scale writes the numbers of one column: all with the same prefix and the
// same number of decimals, so that they can be compared at a glance.
type Scale struct {
	unit     Unit
	symbol   string
	factor   float64 // of the shown unit
	decimals int
}

// CommonScale returns the scale that suits all the values. The prefix is that of
// the smallest one that isn't 0, unless the largest one would need seven digits
// before the point; the smallest one has the given number of significant
// digits, as far as three decimals allow. Infinite and NaN values don't count.
func CommonScale(unit Unit, significant int, values ...float64) Scale {
	smallest, largest := magnitudes(values)
	s := Scale{unit: unit, factor: 1}
	switch unit {
	case Joules:
		s.choose(joulePrefixes, smallest, largest)
	case Watts:
		s.choose(wattPrefixes, smallest, largest)
	case Fraction:
		s.symbol, s.factor = "%", 0.01
	case KilowattHours:
		s.symbol, s.factor = "kWh", dvfsmodel.JoulesPerKWh
	case Seconds:
		s.symbol = "s"
		switch {
		case largest >= minClockTime:
			s.symbol = "h:mm:ss"
			return s
		case 0 < largest && largest < 1:
			s.symbol, s.factor = "ms", 1e-3
		}
	case Plain:
	}
	if largest > 0 {
		s.decimals = decimalPlaces(significant, smallest/s.factor, largest/s.factor)
	}
	return s
}

// RelativeTolerance is the part of the largest value below which another one is taken
// for 0 up to rounding.
const RelativeTolerance = 1e-9

// magnitudes returns the smallest and the largest magnitude of the values that aren't
// 0; the largest is 0 when there are none.
func magnitudes(values []float64) (smallest, largest float64) {
	smallest = math.Inf(1)
	for _, v := range values {
		if v = math.Abs(v); v > largest && !math.IsInf(v, 0) {
			largest = v
		}
	}
	for _, v := range values {
		if v = math.Abs(v); v > RelativeTolerance*largest && v < smallest {
			smallest = v
		}
	}
	return smallest, largest
}

// choose sets the prefix. Zeros alone get the unit without one.
func (s *Scale) choose(prefixes []prefix, smallest, largest float64) {
	chosen := prefixes[0]
	for _, p := range prefixes[1:] {
		if largest > 0 && (smallest >= p.factor || largest >= 1e6*chosen.factor) {
			chosen = p
		}
	}
	s.symbol, s.factor = chosen.symbol, chosen.factor
}

// maxDecimals and maxDigits bound how long a number gets.
const (
	maxDecimals = 3
	maxDigits   = 8
)

func decimalPlaces(significant int, smallest, largest float64) int {
	magnitude := func(x float64) int { return int(math.Floor(math.Log10(x))) }
	want := significant - 1 - magnitude(smallest)
	room := maxDigits - 1 - max(0, magnitude(largest))
	return max(0, min(want, room, maxDecimals))
}

// Symbol returns the unit that Format leaves out; empty for plain numbers.
func (s Scale) Symbol() string { return s.symbol }

// Format writes one value without its unit; "–" for one that isn't finite.
func (s Scale) Format(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return missingText
	}
	if s.symbol == "h:mm:ss" {
		return clockTime(v)
	}
	text := strconv.FormatFloat(v/s.factor, 'f', s.decimals, 64)
	if strings.Trim(text, "-0.") == "" {
		text = strings.TrimPrefix(text, "-")
	}
	return GroupThousands(text)
}

// FormatWithUnit writes one value with its unit.
func (s Scale) FormatWithUnit(v float64) string {
	text := s.Format(v)
	if text == missingText || s.symbol == "" || s.symbol == "h:mm:ss" {
		return text
	}
	return text + " " + s.symbol
}

// missingText stands for a value that there isn't.
const missingText = "–"

// SignificantDigits of a number that stands alone.
const SignificantDigits = 4

// FormatJoules writes an energy with the prefix that suits it, as in "1.234 MJ".
func FormatJoules[T ~float64](e T) string {
	return CommonScale(Joules, SignificantDigits, float64(e)).FormatWithUnit(float64(e))
}

// FormatKWh writes an energy in kilowatt-hours, as in "0.343 kWh".
func FormatKWh[T ~float64](e T) string {
	return CommonScale(KilowattHours, SignificantDigits, float64(e)).FormatWithUnit(float64(e))
}

// EnergyText returns an energy in kilowatt-hours, or in joules if it is small.
func EnergyText(joules float64) string {
	const small = 0.01 * dvfsmodel.JoulesPerKWh
	if math.Abs(joules) < small {
		return FormatJoules(joules)
	}
	return FormatKWh(joules)
}

// FormatWatts writes a power with the prefix that suits it.
func FormatWatts[T ~float64](p T) string {
	return CommonScale(Watts, SignificantDigits, float64(p)).FormatWithUnit(float64(p))
}

// FormatSeconds writes a time: milliseconds below a second, seconds below ten
// minutes, h:mm:ss from there.
func FormatSeconds(s float64) string {
	return CommonScale(Seconds, SignificantDigits, s).FormatWithUnit(s)
}

// FormatPercent writes a fraction in per cent, as in "33.5 %".
func FormatPercent(fraction float64) string {
	return CommonScale(Fraction, 3, fraction).FormatWithUnit(fraction)
}

// FormatCount writes a whole number with its thousands apart: "12,345".
func FormatCount(n int) string { return GroupThousands(strconv.Itoa(n)) }

// Plural returns a number with what it counts, which gets an s unless its plural is given: "1 job",
// "2,000 jobs".
func Plural[T int | int64](n T, one string, many ...string) string {
	if n != 1 {
		one += "s"
		if len(many) > 0 {
			one = many[0]
		}
	}
	return FormatCount(int(n)) + " " + one
}

// clockTime returns a time as h:mm:ss, rounded to seconds.
func clockTime(seconds float64) string {
	s := math.Round(math.Abs(seconds))
	if s >= 1e15 {
		return strconv.FormatFloat(seconds, 'g', 6, 64)
	}
	sign := ""
	if seconds < 0 && s > 0 {
		sign = "-"
	}
	whole := int64(s)
	return sign + strconv.FormatInt(whole/3600, 10) + ":" + twoDigits(whole/60%60) + ":" + twoDigits(whole%60)
}

func twoDigits(n int64) string {
	if n < 10 {
		return "0" + strconv.FormatInt(n, 10)
	}
	return strconv.FormatInt(n, 10)
}

// GroupThousands sets the thousands of a decimal number apart.
func GroupThousands(number string) string {
	whole, fraction, _ := strings.Cut(number, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	return sign + whole + fraction
}
