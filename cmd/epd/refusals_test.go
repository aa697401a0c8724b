package main

import (
	"errors"
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
		for range 1000 {
			r.note("10.0.0.9:4711", errors.New("no credential"))
		}
		if lines := strings.Count(log.String(), "\n"); lines != refusalsLogged {
			t.Errorf("%d lines for 1000 refusals", lines)
		}
		<-time.After(refusalsTime)
		r.note("10.0.0.9:4711", errors.New("no credential"))
		if !strings.Contains(log.String(), "count=990") {
			t.Errorf("what wasn't said isn't counted:\n%s", log.String())
		}
	})
}
