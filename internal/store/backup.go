package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/epplan/epplan/internal/statedir"
)

// Check examines the whole database, and returns what is wrong with it, one
// finding each; none means sound. It works beside a running epd, and on what
// Open refuses.
func Check(ctx context.Context, path string) ([]string, error) {
	if err := checkExists(path); err != nil {
		return nil, fmt.Errorf("check database: %w", err)
	}
	db, err := sql.Open("sqlite3", readOnly(path, defaultBusy))
	if err != nil {
		return nil, fmt.Errorf("check database %s: %w", path, err)
	}
	defer func() { _ = db.Close() }()
	found, err := findings(ctx, db, "integrity_check")
	if err := typedError(err); errors.Is(err, ErrCorrupt) {
		return append(found, err.Error()), nil
	} else if err != nil {
		return found, fmt.Errorf("check database %s: %w", path, err)
	}
	orphans, err := foreignKeyFindings(ctx, db)
	if err != nil {
		return found, fmt.Errorf("check database %s: %w", path, typedError(err))
	}
	return append(found, orphans...), nil
}

// foreignKeyFindings names rows that refer to what isn't there.
func foreignKeyFindings(ctx context.Context, db *sql.DB) ([]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT \"table\", rowid, parent FROM pragma_foreign_key_check")
	return collect(rows, err, func(row scanner) (string, error) {
		var table, parent string
		var id sql.NullInt64
		err := row.Scan(&table, &id, &parent)
		return fmt.Sprintf("row %d of %s has no row in %s", id.Int64, table, parent), err
	})
}

// Backup writes a copy of a database, as it is at one moment, to a file that must
// not exist. Writers go on meanwhile. The copy is there whole or not at all.
func Backup(ctx context.Context, path, dest string) error {
	if err := backup(ctx, path, dest); err != nil {
		return fmt.Errorf("back up %s to %s: %w", path, dest, typedError(err))
	}
	return nil
}

func backup(ctx context.Context, path, dest string) (err error) {
	if err := checkExists(path); err != nil {
		return err
	}
	if _, err := os.Lstat(dest); err == nil {
		return os.ErrExist
	}
	part, err := os.CreateTemp(filepath.Dir(dest), filepath.Base(dest)+".*.part") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, part.Close())
		if removed := os.Remove(part.Name()); !errors.Is(removed, os.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}()
	db, err := sql.Open("sqlite3", dsn(path, defaultBusy))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", part.Name()); err != nil {
		return err
	}
	if err := part.Sync(); err != nil {
		return err
	}
	if err := os.Link(part.Name(), dest); err != nil { // fails if dest came meanwhile
		return err
	}
	return statedir.Sync(filepath.Dir(dest))
}

// checkExists refuses a database that isn't there, which SQLite would make, or not to be
// trusted.
func checkExists(path string) error {
	if err := checkTrusted(path); err != nil {
		return err
	}
	_, err := os.Stat(path)
	return err
}
