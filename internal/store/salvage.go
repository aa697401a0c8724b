package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/epplan/epplan/statedir"
)

// sidecars are the endings of the files that SQLite keeps beside a database,
// and at last the database's own. In this order a stop half-way leaves nothing
// that a new database would take for its own.
var sidecars = []string{"-shm", "-wal", "-journal", ""}

// Salvage moves a database that [Open] refuses as [ErrCorrupt] out of the way,
// with what SQLite keeps beside it, so that a new one can begin. Nothing is
// deleted: the files go to <path>.damaged-<time>, from which much can often be
// recovered. It returns where the database is now. The database must not be
// open.
func Salvage(path string, now time.Time) (moved string, err error) {
	if _, err := os.Lstat(path); err != nil {
		return "", fmt.Errorf("move the damaged database aside: %w", err)
	}
	if moved, err = statedir.FreeName(damagedName(path, now), isTaken); err != nil {
		return "", fmt.Errorf("move the damaged database aside: %w", err)
	}
	for _, ending := range sidecars {
		err := os.Rename(path+ending, moved+ending)
		if err != nil && (ending == "" || !errors.Is(err, os.ErrNotExist)) {
			return "", fmt.Errorf("move the damaged database aside: %w", err)
		}
	}
	if err := statedir.Sync(filepath.Dir(path)); err != nil {
		return moved, fmt.Errorf("move the damaged database aside: %w", err)
	}
	return moved, nil
}

// damagedName returns where a damaged database goes.
func damagedName(path string, now time.Time) string {
	return path + ".damaged-" + now.UTC().Format("20060102T150405Z")
}

// isTaken reports whether a file of a database has a name.
func isTaken(name string) (bool, error) {
	for _, ending := range sidecars {
		_, err := os.Lstat(name + ending)
		if !errors.Is(err, os.ErrNotExist) {
			return err == nil, err
		}
	}
	return false, nil
}
