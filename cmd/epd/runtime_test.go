package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestOnOneCoreTwoGoroutinesRunAndHalfTheGarbageIsKeptUnlessGoIsToldOtherwise(t *testing.T) {
	cores, percent := runtime.GOMAXPROCS(1), debug.SetGCPercent(100)
	defer func() {
		runtime.GOMAXPROCS(cores)
		debug.SetGCPercent(percent)
	}()
	for _, c := range []struct {
		environment   string
		running, most int
	}{{"1", 1, 100}, {"", 2, 50}} {
		t.Setenv("GOMAXPROCS", c.environment)
		t.Setenv("GOGC", c.environment)
		useTwoProcs()
		halveGarbage()
		if got := runtime.GOMAXPROCS(0); got != c.running {
			t.Errorf("GOMAXPROCS=%s: %d goroutines run", c.environment, got)
		}
		if got := debug.SetGCPercent(100); got != c.most {
			t.Errorf("GOGC=%s: %d %% of garbage", c.environment, got)
		}
	}
}
