//go:build !cgo

package store

import (
	"database/sql"

	_ "github.com/mattn/go-sqlite3" // a driver that says that it needs cgo
)

// resultCode is 0: without cgo there is no SQLite.
func resultCode(error) int { return 0 }

// openWatched is [sql.Open].
func openWatched(dsn string, _ func(error)) (*sql.DB, error) { return sql.Open("sqlite3", dsn) }
