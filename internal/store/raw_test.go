package store_test

import (
	"database/sql"
	"net/url"
	"testing"
)

// raw opens a database as another program would.
func raw(tb testing.TB, path string) *sql.DB {
	tb.Helper()
	db, err := sql.Open("sqlite3", "file:"+(&url.URL{Path: path}).EscapedPath())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// tableNames returns the tables of a database.
func tableNames(tb testing.TB, path string) []string {
	tb.Helper()
	rows, err := raw(tb, path).QueryContext(tb.Context(),
		"SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			tb.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		tb.Fatal(err)
	}
	return names
}
