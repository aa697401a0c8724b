package spooltest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Fill takes all room of the disk on which a new file is.
func Fill(tb testing.TB, file string) {
	tb.Helper()
	f, err := os.Create(filepath.Clean(file))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // what was written counts
	for size := 1 << 16; size > 0; {
		if _, err := f.Write(make([]byte, size)); err == nil {
			continue
		} else if !errors.Is(err, syscall.ENOSPC) {
			tb.Fatal(err)
		}
		size /= 2
	}
}
