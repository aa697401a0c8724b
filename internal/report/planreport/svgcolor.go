package planreport

import (
	"fmt"
	"math"
)

type rgb struct{ r, g, b float64 }

// slowest and fastest are the core clocks, relative to the default, from which
// on colours no longer change.
const (
	slowest = 0.5
	fastest = 1.25
)

// clockColors are the fixed points of the colour scale, ascending: blue for
// slow, sand for default clocks, red for fast. They are told apart by people
// who see no difference between red and green.
var clockColors = []struct {
	clock float64
	color rgb
}{
	{slowest, rgb{33, 84, 153}},
	{0.75, rgb{103, 160, 205}},
	{1, rgb{240, 222, 166}},
	{fastest, rgb{205, 80, 56}},
}

// clockColor returns the colour of a core clock.
func clockColor(clock float64) rgb {
	clock = min(max(clock, slowest), fastest)
	i := 1
	for clockColors[i].clock < clock {
		i++
	}
	low, high := &clockColors[i-1], &clockColors[i]
	part := (clock - low.clock) / (high.clock - low.clock)
	mix := func(a, b float64) float64 { return a + part*(b-a) }
	return rgb{mix(low.color.r, high.color.r), mix(low.color.g, high.color.g), mix(low.color.b, high.color.b)}
}

func (c rgb) hex() string { return fmt.Sprintf("#%02x%02x%02x", int(c.r+.5), int(c.g+.5), int(c.b+.5)) }

// textClass returns the class of text that reads well on the colour.
func (c rgb) textClass() string {
	const same = 0.179 // white and black contrast alike with it
	if c.luminance() < same {
		return "w"
	}
	return "d"
}

// luminance returns the relative luminance, WCAG 2.2.
func (c rgb) luminance() float64 {
	linear := func(v float64) float64 {
		if v /= 255; v > 0.04045 {
			return math.Pow((v+0.055)/1.055, 2.4)
		}
		return v / 12.92
	}
	return 0.2126*linear(c.r) + 0.7152*linear(c.g) + 0.0722*linear(c.b)
}
