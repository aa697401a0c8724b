package live_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/epplan/epplan/live"
)

func TestAnUnknownNumberIsNullAndNeverZero(t *testing.T) {
	for _, c := range []struct {
		number live.Number
		json   string
	}{
		{live.Number{}, "null"},
		{live.Known(math.NaN()), "null"},
		{live.Known(math.Inf(-1)), "null"},
		{live.Known(0), "0"},
		{live.Known(-1.5e300), "-1.5e+300"},
	} {
		text, err := json.Marshal(c.number)
		if err != nil || string(text) != c.json {
			t.Errorf("%s is %s in JSON, %v", c.number, text, err)
		}
		back := live.Known(42)
		if err := json.Unmarshal(text, &back); err != nil || back != c.number {
			t.Errorf("%s comes back as %s, %v", text, back, err)
		}
	}
	var n live.Number
	if err := json.Unmarshal([]byte(`"12"`), &n); err == nil {
		t.Error("a text was read as a number")
	}
	if got := (live.Number{}).Or(3); got != 3 || live.Known(2).Or(3) != 2 {
		t.Errorf("or: %g", got)
	}
}

func TestANumberOfSecondsIsATimeSpan(t *testing.T) {
	for _, c := range []struct {
		number live.Number
		span   time.Duration
	}{
		{live.Number{}, 0},
		{live.Known(-1), 0},
		{live.Known(0.029), 29 * time.Millisecond},
		{live.Known(math.MaxFloat64), 876_000 * time.Hour},
	} {
		if got := c.number.Duration(); got != c.span {
			t.Errorf("%s s is %v, want %v", c.number, got, c.span)
		}
	}
}
