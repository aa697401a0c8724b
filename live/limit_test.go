package live_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/live"
)

func TestALimitIsUnsetUnlimitedOrADuration(t *testing.T) {
	for _, tc := range []struct {
		limit     live.Limit
		set       bool
		unlimited bool
		seconds   float64
		json      string
		words     string
	}{
		{live.Limit{}, false, false, math.Inf(1), "null", "not known"},
		{live.Unlimited(), true, true, math.Inf(1), `"unlimited"`, "unlimited"},
		{live.LimitOf(90 * time.Second), true, false, 90, "90", "1m30s"},
		{live.LimitOf(0), true, false, 1e-9, "1e-9", "1ns"},
		{live.LimitOf(-time.Hour), true, false, 1e-9, "1e-9", "1ns"},
		{live.LimitOfSeconds(math.Inf(1)), true, true, math.Inf(1), `"unlimited"`, "unlimited"},
		{live.LimitOfSeconds(1e300), true, true, math.Inf(1), `"unlimited"`, "unlimited"},
		{live.LimitOfSeconds(math.NaN()), false, false, math.Inf(1), "null", "not known"},
		{live.LimitOfSeconds(-1), false, false, math.Inf(1), "null", "not known"},
		{live.LimitOfSeconds(0.5), true, false, 0.5, "0.5", "500ms"},
	} {
		l := tc.limit
		text, err := json.Marshal(l)
		if err != nil || string(text) != tc.json || l.IsSet() != tc.set || l.IsUnlimited() != tc.unlimited ||
			l.Seconds() != tc.seconds || l.String() != tc.words {
			t.Errorf("%s (%v): set %v, unlimited %v, %v s, %s; want %+v", text, err, l.IsSet(),
				l.IsUnlimited(), l.Seconds(), l, tc)
		}
		var again live.Limit
		if err := json.Unmarshal(text, &again); err != nil || again != l {
			t.Errorf("%s is read as %v (%v), want %v", text, again, err, l)
		}
		if d, ok := l.Duration(); ok != !math.IsInf(tc.seconds, 1) || (ok && d.Seconds() != tc.seconds) {
			t.Errorf("%v lasts %v, %v", l, d, ok)
		}
		twice := l.Map(func(d time.Duration) time.Duration { return 2 * d })
		if twice.IsSet() != l.IsSet() || twice.IsUnlimited() != l.IsUnlimited() ||
			twice.Seconds() != 2*l.Seconds() {
			t.Errorf("twice %v is %v", l, twice)
		}
	}
}

func TestALimitComesBackFromJSONAndFromSeconds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := live.LimitOf(time.Duration(rapid.Int64Range(1,
			int64(1000*24*time.Hour/time.Microsecond)).Draw(rt, "limit")) * time.Microsecond)
		text, err := json.Marshal(l)
		if err != nil {
			rt.Fatal(err)
		}
		var again live.Limit
		if err := json.Unmarshal(text, &again); err != nil || again != l ||
			live.LimitOfSeconds(l.Seconds()) != l {
			rt.Fatalf("%v: %v (%v), %v", l, again, err, live.LimitOfSeconds(l.Seconds()))
		}
	})
}

func TestWhatIsNoLimitIsSaid(t *testing.T) {
	for _, text := range []string{`-1`, `"UNLIMITED"`, `"1:00"`, `{}`, `[1]`, `true`} {
		var l live.Limit
		if err := json.Unmarshal([]byte(text), &l); err == nil {
			t.Errorf("%s is read as %v", text, l)
		}
	}
}
