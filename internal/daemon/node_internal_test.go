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
		if d.problems.count != 2*240 || len(d.problems.latest) != 2 || time.Since(d.problems.latest[0].At) > 10*time.Second {
			t.Errorf("%d troubles, shown: %+v", d.problems.count, d.problems.latest)
		}
		if n := strings.Count(log.String(), "away"); n != 2 {
			t.Errorf("logged %d times in 20 min, want 2", n)
		}
		for i := range 2 * maxProblems {
			d.problems.note(errors.New(strings.Repeat("x", i+1)))
		}
		if len(d.problems.latest) != maxProblems || len(d.problems.latest[maxProblems-1].Message) != 2*maxProblems {
			t.Errorf("%d are shown", len(d.problems.latest))
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
