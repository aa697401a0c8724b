//go:build cgo

package store

import (
	"errors"

	"github.com/mattn/go-sqlite3"
)

// resultCode is SQLite's primary result code of an error, 0 if it has none.
func resultCode(err error) int {
	if failure, ok := errors.AsType[sqlite3.Error](err); ok {
		return int(failure.Code)
	}
	return 0
}
