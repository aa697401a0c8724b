// Package shareddata finds the measured tables and reference fixtures that are
// kept beside the project and never committed to it, and has tests make do with the
// machine that they run on. Only tests import it.
package shareddata

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
)

// RequireEnv names the environment variable that, set to 1, turns what is missing
// from a skipped test into a failed one. The continuous integration run sets it.
const RequireEnv = "EPPLAN_REQUIRE_SHARED"

// Path returns the path of a file or folder below the shared data folder, such as
// "edl/table3.csv". The test is skipped when the folder isn't there, as on a
// lone clone, and fails when [RequireEnv] is 1.
func Path(tb testing.TB, name string) string {
	tb.Helper()
	path := filepath.Join(Root(tb), "..", "shared", "data", filepath.FromSlash(name))
	_, err := os.Stat(path)
	Need(tb, err == nil, "shared data "+name+" is not beside this checkout")
	return path
}

// Need ends a test that can't run on this machine, and says what is missing: the
// test is skipped, and fails when [RequireEnv] is 1.
func Need(tb testing.TB, ok bool, missing string) {
	tb.Helper()
	switch {
	case ok:
	case os.Getenv(RequireEnv) == "1":
		tb.Fatalf("%s (%s=1)", missing, RequireEnv)
	default:
		tb.Skip(missing)
	}
}

// LongEnv names the environment variable that, when set, has tests draw as often as they
// did when their rules were found. make test-long sets it.
const LongEnv = "EPPLAN_LONG"

// Rounds returns how often a test draws: rarely with -short, often where [LongEnv] is set.
func Rounds[N int | uint64](few, usual, many N) N {
	switch {
	case os.Getenv(LongEnv) != "":
		return many
	case testing.Short():
		return few
	}
	return usual
}

// ShortTemp has a package's tests make their temporary folders in /tmp where TMPDIR
// is long: the path of a socket in one, which has a test's name in it, may have 107
// bytes. It is for TestMain.
func ShortTemp() {
	const room = len("/tmp/0123456789")
	if len(os.TempDir()) <= room {
		return
	}
	if err := os.Setenv("TMPDIR", "/tmp"); err != nil {
		panic(err) // not with this name
	}
}

// Root returns the project's folder.
func Root(tb testing.TB) string {
	tb.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		tb.Fatal("no caller information")
	}
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}

// Rows reads a CSV file: for each row its cells by the header's names.
func Rows(tb testing.TB, path string) []map[string]string {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		tb.Fatal(err)
	}
	rows := make([]map[string]string, 0, len(records)-1)
	for _, record := range records[1:] {
		row := make(map[string]string, len(record))
		for i, name := range records[0] {
			row[name] = record[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// Number returns a cell as a number; inf is one.
func Number(tb testing.TB, cell string) float64 {
	tb.Helper()
	x, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return x
}
