package main

import "testing"

// Whatever the cells of a file have in them: what is printed of it, or said of what is wrong, is plain text.
func TestNoTextOfAFileDoesAnything(t *testing.T) {
	underTest().HostileFiles(t, map[string]string{
		"consolidate FILE":        "utilisation.csv",
		"consolidate FILE --json": "utilisation.csv",
		"correlate FILE":          "utilisation.csv",
		"correlate FILE --csv":    "utilisation.csv",
		"contention FILE":         "coruns.csv",
	})
}
