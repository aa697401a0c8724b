package report

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestTheTitleOfAVerticalAxisStandsBesideItsLabels(t *testing.T) {
	for largest, want := range map[float64]float64{9: 58, 5e10: 17 + 14*letterWidth} { // "50,000,000,000"
		axis := plainAxis(newAxisRange(6, func(yield func([]float64)) { yield([]float64{0, largest}) }),
			"kWh")
		if got := axis.titleOffset(); math.Abs(got-want) > 1e-9 {
			t.Errorf("up to %v the title is %v from the plot, want %v", largest, got, want)
		}
	}
}

func TestOneValueAloneIsNotShownMoreExactlyThanItIs(t *testing.T) {
	for value, want := range map[float64]axisRange{
		1110: {980, 1240, 20}, 409: {360, 450, 10},
		0: {-.5, .5, .1},
	} {
		got := newAxisRange(14, func(yield func([]float64)) { yield([]float64{value, value}) })
		if math.Abs(got.from-want.from) > 1e-9 || math.Abs(got.to-want.to) > 1e-9 ||
			math.Abs(got.Step-want.Step) > 1e-9 {
			t.Errorf("an axis of %v alone goes from %v to %v in steps of %v, want %v", value, got.from,
				got.to, got.Step, want)
		}
	}
}

func TestTicksAreFewAndRound(t *testing.T) {
	for _, c := range []struct {
		end, apart, step float64
		unit, label      string // of the second tick
	}{
		{1e-3, 7e-5, 1e-4, "s", "0.0001"},
		{10, .7, 1, "s", "1"},
		{599, 44, 50, "s", "50"},
		{700, 52, 60, "h:mm:ss", "0:01:00"},
		{3600, 270, 300, "h:mm:ss", "0:05:00"},
		{4 * 3600, 1100, 1800, "h:mm", "0:30"},
		{86400, 6800, 7200, "h:mm", "2:00"},
		{7 * 86400, 50000, 86400, "h:mm", "24:00"},
		{30 * 86400, 200000, 5 * 86400, "days", "5"},
	} {
		r := newTimeTicks(c.end, c.apart)
		if math.Abs(r.step/c.step-1) > 1e-9 || r.unit != c.unit || r.label(r.step) != c.label {
			t.Errorf("to %v s: a tick each %v in %s, the second is %q", c.end, r.step, r.unit,
				r.label(r.step))
		}
	}
}

func TestTheFrontIsWhatNoOtherChoiceBeats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cost := rapid.IntRange(0, 6) // few values, so that some are the same
		spots := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) TradeOffPoint {
			return TradeOffPoint{
				X: float64(cost.Draw(t, "x")), Y: float64(cost.Draw(t, "y")),
				Late: rapid.Bool().Draw(t, "late"),
			}
		}), 1, 12).Draw(t, "spots")
		front := (&tradeOff{points: spots}).paretoFront()
		for i, s := range spots {
			beaten := slices.ContainsFunc(spots, func(o TradeOffPoint) bool {
				return !o.Late && o.X <= s.X && o.Y <= s.Y && (o.X < s.X || o.Y < s.Y)
			})
			if on := slices.Contains(front, i); on != (!s.Late && !beaten) {
				t.Fatalf("%v of %v is on the front: %v", s, spots, on)
			}
		}
	})
}
