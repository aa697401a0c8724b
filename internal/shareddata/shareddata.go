// Package shareddata finds the measured tables and reference fixtures that are
// kept beside the project and never committed to it. Only tests import it.
package shareddata

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// RequireEnv names the environment variable that turns missing data from a
// skipped test into a failed one. The continuous integration run sets it.
const RequireEnv = "EPPLAN_REQUIRE_SHARED"

// Path is the path of a file or folder below the shared data folder, such as
// "edl/table3.csv". The test is skipped when the folder isn't there, as on a
// lone clone, and fails when [RequireEnv] is 1.
func Path(tb testing.TB, name string) string {
	tb.Helper()
	path := filepath.Join(root(tb), "..", "shared", "data", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		if os.Getenv(RequireEnv) == "1" {
			tb.Fatalf("shared data: %v (%s=1)", err, RequireEnv)
		}
		tb.Skipf("shared data %s is not beside this checkout", name)
	}
	return path
}

// root is the module's root folder: the nearest one above this file with go.mod.
func root(tb testing.TB) string {
	tb.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		tb.Fatal("shared data: no caller information")
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}
