// Package cputime says how long a test has had a processor: unlike the time by the clock, it is the same on a
// machine that is busy with something else.
package cputime

import (
	"syscall"
	"testing"
	"time"
)

// Used returns how long this process has had a processor.
func Used(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
