// Package storetest makes databases with very many jobs, for tests and benchmarks
// of what is asked of them, and knows where there can be none.
package storetest

import (
	"runtime/debug"
	"slices"
	"testing"

	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// NeedSQLite ends a test where the program has no SQLite, which comes with cgo.
func NeedSQLite(tb testing.TB) {
	tb.Helper()
	info, ok := debug.ReadBuildInfo()
	cgo := ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "1"})
	shareddata.Need(tb, cgo, "records need SQLite, which needs a C compiler")
}
