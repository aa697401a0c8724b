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
		d := NewAgentServer(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		for range 20 * 60 / 5 { // 20 min
			d.problems.note(errors.New("the controller is away"))
			d.problems.note(errors.New("the guard can't ask"))
			<-time.After(5 * time.Second)
		}
		shown, count := d.problems.latestProblems()
		if count != 2*240 || len(shown) != 2 || time.Since(shown[0].At) > 10*time.Second {
			t.Errorf("%d troubles, shown: %+v", count, shown)
		}
		if n := strings.Count(log.String(), "away"); n != 2 {
			t.Errorf("logged %d times in 20 min, want 2", n)
		}
		for i := range 2 * maxProblems {
			d.problems.note(errors.New(strings.Repeat("x", i+1)))
		}
		shown, _ = d.problems.latestProblems()
		if len(shown) != maxProblems || len(shown[maxProblems-1].Message) != 2*maxProblems {
			t.Errorf("%d are shown", len(shown))
		}
	})
}

func TestAHookStopsWaitingSoonWhateverItsClockSays(t *testing.T) {
	now := time.Now()
	for _, c := range []struct{ said, want time.Duration }{
		{-time.Hour, -time.Hour}, {time.Second, time.Second}, {time.Hour, maxHookTime},
	} {
		if got := hookDeadline(now, now.Add(c.said).Round(0)).Sub(now); (got - c.want).Abs() >
			time.Millisecond {
			t.Errorf("%v from now: %v, want %v", c.said, got, c.want)
		}
	}
}
