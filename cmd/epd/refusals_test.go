package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestStrangersCantFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log text
		r := refusalLog{log: slog.New(slog.NewTextHandler(&log, nil))}
		for i := range 1000 {
			r.note("10.0.0.9:4711", fmt.Errorf("no credential %d", i))
		}
		if lines := strings.Count(log.String(), "\n"); lines != refusalsLogged {
			t.Errorf("%d lines for 1000 refusals", lines)
		}
		<-time.After(refusalsTime)
		r.note("10.0.0.9:4711", errors.New("no credential"))
		if !strings.Contains(log.String(), fmt.Sprintf("count=%d", 1000-refusalsLogged)) {
			t.Errorf("what wasn't said isn't counted:\n%s", log.String())
		}
	})
}

func TestWhatOneMachineIsRefusedAgainAndAgainIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log text
		r := refusalLog{log: slog.New(slog.NewTextHandler(&log, nil))}
		for i := range 50 {
			r.note(fmt.Sprintf("10.0.0.9:%d", 4711+i), errors.New("node n1 speaks for itself alone"))
		}
		r.note("10.0.0.8:4711", errors.New("node n1 speaks for itself alone"))
		if lines := strings.Count(log.String(), "speaks for itself alone"); lines != 2 {
			t.Errorf("%d lines for what two machines were refused:\n%s", lines, log.String())
		}
		<-time.After(2 * refusalTold)
		r.note("10.0.0.9:4711", errors.New("node n1 speaks for itself alone"))
		if lines := strings.Count(log.String(), "speaks for itself alone"); lines != 3 {
			t.Errorf("an hour later it isn't said again:\n%s", log.String())
		}
	})
}

// One machine that is refused again and again, each time for another reason, hides none of what others are.
func TestWhatOneMachineIsRefusedLeavesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log text
		r := refusalLog{log: slog.New(slog.NewTextHandler(&log, nil))}
		for i := range 1000 {
			r.note("10.0.0.9:4711", fmt.Errorf("no credential %d", i))
		}
		r.note("10.0.0.8:4711", errors.New("node n1 speaks for itself alone"))
		if !strings.Contains(log.String(), "speaks for itself alone") {
			t.Errorf("it is hidden by what another machine sends:\n%s", log.String())
		}
	})
}
