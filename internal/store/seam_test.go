package store

import "testing"

// UseMigrations has databases be brought up to date by scripts, until the test ends. It
// returns the schemas from which and to which they lead.
func UseMigrations(tb testing.TB, scripts ...string) (from, to int) {
	tb.Helper()
	before := migrations
	migrations = scripts
	tb.Cleanup(func() { migrations = before })
	return firstSchema, newestSchema()
}
