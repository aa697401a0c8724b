package daemon

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTroubleThatGoesOnIsShownOnceAndLoggedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		d := NewNode(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		for range 20 * 60 / 5 { // 20 min
			d.trouble(errors.New("the controller is away"))
			d.trouble(errors.New("the guard can't ask"))
			<-time.After(5 * time.Second)
		}
		if d.troubled != 2*240 || len(d.troubles) != 2 || time.Since(d.troubles[0].At) > 10*time.Second {
			t.Errorf("%d troubles, shown: %+v", d.troubled, d.troubles)
		}
		if n := strings.Count(log.String(), "away"); n != 2 {
			t.Errorf("logged %d times in 20 min, want 2", n)
		}
		for i := range 2 * maxTroubles {
			d.trouble(errors.New(strings.Repeat("x", i+1)))
		}
		if len(d.troubles) != maxTroubles || len(d.troubles[maxTroubles-1].What) != 2*maxTroubles {
			t.Errorf("%d are shown", len(d.troubles))
		}
	})
}

func TestAHookStopsWaitingSoonWhateverItsClockSays(t *testing.T) {
	now := time.Now()
	for _, c := range []struct{ said, want time.Duration }{
		{-time.Hour, -time.Hour}, {time.Second, time.Second}, {time.Hour, hookMost},
	} {
		if got := deadline(now, now.Add(c.said).Round(0)).Sub(now); (got - c.want).Abs() > time.Millisecond {
			t.Errorf("%v from now: %v, want %v", c.said, got, c.want)
		}
	}
}
