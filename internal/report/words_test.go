package report

import (
	"math"
	"testing"

	"github.com/epplan/epplan/planner"
)

// A reason that is unknown to planner gets its default words: that tells which
// ones are known.
func TestEveryReasonHasShortWords(t *testing.T) {
	unknown := planner.Reason{Clocks: 255, Place: 255}
	for code := range 255 {
		clocks := planner.Reason{Clocks: planner.ClockReason(code), Place: 255}
		if (code == 0 || clocks.String() != unknown.String()) && clockWords[clocks.Clocks] == "" {
			t.Errorf("no short words for %q", clocks)
		}
		place := planner.Reason{Clocks: 255, Place: planner.PlaceReason(code)}
		if (code == 0 || place.String() != unknown.String()) && placeWords[place.Place] == "" {
			t.Errorf("no short words for %q", place)
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
		r := newRuler(c.end, c.apart)
		if math.Abs(r.step/c.step-1) > 1e-9 || r.unit != c.unit || r.label(r.step) != c.label {
			t.Errorf("to %v s: a tick each %v in %s, the second is %q", c.end, r.step, r.unit, r.label(r.step))
		}
	}
}

func TestColoursFollowTheClock(t *testing.T) {
	for _, c := range []struct {
		clock float64
		want  string
	}{
		{0, "#215499"},
		{.5, "#215499"},
		{.625, "#447ab3"},
		{1, "#f0dea6"},
		{2, "#cd5038"},
	} {
		if got := clockColor(c.clock).hex(); got != c.want {
			t.Errorf("the colour of %v is %s, want %s", c.clock, got, c.want)
		}
	}
}
