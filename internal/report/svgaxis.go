package report

import (
	"math"
	"strconv"
)

// timeTicks says where the ticks of the time axis are, and how they are labelled.
type timeTicks struct {
	step  float64 // seconds between two ticks
	unit  string
	label func(t float64) string
}

const day = 86400.0

// clockSteps are the distances between ticks that read well on a clock,
// seconds.
var clockSteps = []float64{60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, day}

// newTimeTicks chooses the ruler for a plan that ends at a time, with ticks at least
// some seconds apart.
func newTimeTicks(end, apart float64) timeTicks {
	switch {
	case end < minClockTime:
		return timeTicks{decimalStep(apart), "s", func(t float64) string {
			return strconv.FormatFloat(t, 'g', 6, 64)
		}}
	case apart > day:
		return timeTicks{day * decimalStep(apart/day), "days", func(t float64) string {
			return strconv.FormatFloat(t/day, 'g', 6, 64)
		}}
	}
	step := day
	for _, s := range clockSteps {
		if s >= apart {
			step = s
			break
		}
	}
	if end < 3*3600 {
		return timeTicks{step, "h:mm:ss", clockTime}
	}
	return timeTicks{step, "h:mm", func(t float64) string {
		text := clockTime(t)
		return text[:len(text)-len(":ss")]
	}}
}

// decimalStep returns the least of 1, 2 and 5 times a power of ten that isn't below
// a number.
func decimalStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, factor := range [...]float64{1, 2, 5} {
		if factor*power >= least*(1-1e-9) {
			return factor * power
		}
	}
	return 10 * power
}

// tickDistance is how far apart ticks are at least, pixels.
const tickDistance = 80
