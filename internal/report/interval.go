package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Interval is the median of some draws, and the bounds between which 90 % of them lie.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// IntervalOf returns that of a quantity over draws; a draw without one counts as 0.
func IntervalOf(draws int, quantity func(draw int) float64) Interval {
	values := make([]float64, draws)
	for i := range values {
		if values[i] = quantity(i); math.IsNaN(values[i]) {
			values[i] = 0
		}
	}
	slices.Sort(values)
	const low, middle, high = 0.05, 0.5, 0.95
	return Interval{Value: quantile(values, middle), Low: quantile(values, low), High: quantile(values, high)}
}

// quantile returns that of sorted values, between the two next to it.
func quantile(sorted []float64, part float64) float64 {
	at := part * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-math.Floor(at))*(sorted[i+1]-sorted[i])
}

// Text returns the value and its bounds, in a factor of its unit.
func (i Interval) Text(factor float64, decimals int) string {
	return i.text(func(x float64) string {
		if x *= factor; math.Abs(x) < 0.5*math.Pow(10, -float64(decimals)) {
			x = 0 // and not -0
		}
		return strconv.FormatFloat(x, 'f', decimals, 64)
	})
}

// Clock returns a time in seconds and its bounds as h:mm:ss.
func (i Interval) Clock() string { return i.text(FormatClock) }

func (i Interval) text(format func(float64) string) string {
	value, low, high := format(i.Value), format(i.Low), format(i.High)
	if low == high {
		return value
	}
	return value + " (" + low + " to " + high + ")"
}

// FormatClock is seconds as h:mm:ss.
func FormatClock(s float64) string {
	whole := int64(math.Round(s))
	return fmt.Sprintf("%d:%02d:%02d", whole/3600, whole/60%60, whole%60)
}
