package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnErrorThatGoesOnDoesntFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := newLog(&out)
		full := errors.New("no room")
		for i := range 1000 {
			log.Warn("a script can't be stored", "error", full, "job", i)
		}
		log.Warn("a script can't be stored", "error", errors.New("damaged"))
		log.Error("a decision can't be stored", "error", full)
		for range 3 {
			log.Warn("a login failed", "from", "n1")
			log.Info("ready", "error", full)
		}
		if n := strings.Count(out.String(), "\n"); n != 18 {
			t.Errorf("%d lines, want 18:\n%s", n, out.String())
		}
		out.Reset()
		<-time.After(repeatWindow)
		log.With("x", 1).Warn("a script can't be stored", "error", full)
		if text := out.String(); strings.Count(text, "left_out=990") != 1 {
			t.Errorf("after a while: %s", text)
		}
		for i := range 3 * maxKnownErrors {
			log.Warn("strange", "error", fmt.Errorf("%d", i))
		}
	})
}
