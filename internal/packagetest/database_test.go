package packagetest

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	_ "github.com/mattn/go-sqlite3" // the driver
)

// previousDatabase makes a database as the epd before this one left it: records
// of the first schema, brought to the last one but one. It returns that schema's
// number, and the runs whose outcomes it has.
func previousDatabase(t *testing.T, path string) (schema int, runs []string) {
	t.Helper()
	folder := filepath.Join(root(t), "internal", "store")
	steps, err := filepath.Glob(filepath.Join(folder, "migrations", "*.sql"))
	if err != nil || len(steps) < 2 {
		t.Fatalf("%q: %v", steps, err)
	}
	slices.Sort(steps)
	schema = len(steps) - 1
	scripts := append([]string{filepath.Join(folder, "testdata", "schema1.sql")}, steps[1:schema]...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // the test ends
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), string(text)); err != nil {
			t.Fatalf("%s: %v", script, err)
		}
	}
	if _, err := db.ExecContext(t.Context(), "PRAGMA user_version = "+strconv.Itoa(schema)); err != nil {
		t.Fatal(err)
	}
	return schema, runsOf(t, db)
}

// runsOf are the runs whose outcomes a database has.
func runsOf(t *testing.T, db *sql.DB) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT run_id FROM outcomes")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // read only
	var runs []string
	for rows.Next() {
		var run string
		if err := rows.Scan(&run); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	if err := rows.Err(); err != nil || len(runs) == 0 {
		t.Fatalf("%d runs: %v", len(runs), err)
	}
	return runs
}
