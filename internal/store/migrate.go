package store

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// newSchema is the script that makes a new database.
//
//go:embed schema.sql
var newSchema string

// firstSchema is the schema of v0.1.0, where upgrades begin.
const firstSchema = 20

// migrations lead from firstSchema to the newest schema. Each is a script that brings a
// database of the schema before to its own; schema.sql makes what all of them lead to.
var migrations []string

// newestSchema returns the schema of a new database.
func newestSchema() int { return firstSchema + len(migrations) }

// migrate gives a new database its schema, and brings an older one to it, in one
// transaction. One with records is copied beside itself first. Foreign keys are off
// meanwhile: else a table that is made anew would take what refers to it along
// (https://sqlite.org/lang_altertable.html, section 7).
func migrate(ctx context.Context, conn *sql.Conn, path string) (err error) {
	version, err := userVersion(ctx, conn)
	if err != nil || version == newestSchema() {
		return err
	}
	if _, err := conn.ExecContext(ctx, "PRAGMA foreign_keys = OFF"); err != nil {
		return err
	}
	defer func() {
		_, on := conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA foreign_keys = ON")
		err = errors.Join(err, on)
	}()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing after a commit
	version, err = userVersion(ctx, tx)
	if err != nil || version == newestSchema() { // another process was faster
		return err
	}
	if err := checkVersion(path, version); err != nil {
		return err
	}
	steps := []string{newSchema}
	if version > 0 {
		steps = migrations[version-firstSchema:]
		removeParts(path)
		options := CopyOptions{Replace: true, unchecked: true}
		if _, err := BackupWith(ctx, path, backupName(path, version), options); err != nil {
			return fmt.Errorf("backup before migrating: %w", err)
		}
	}
	for _, step := range append(slices.Clone(steps), "PRAGMA user_version = "+strconv.Itoa(newestSchema())) {
		if _, err := tx.ExecContext(ctx, step); err != nil {
			return fmt.Errorf("bring it to schema %d: %w", newestSchema(), err)
		}
	}
	return tx.Commit()
}

// removeParts removes what backups before a migration left that were killed.
func removeParts(path string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return // the backup says why
	}
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), filepath.Base(path)+".schema")
		if ours && (strings.HasSuffix(rest, ".part") || strings.HasSuffix(rest, ".part-journal")) {
			_ = os.Remove(filepath.Join(filepath.Dir(path), e.Name())) // the next one tries again
		}
	}
}

// checkVersion refuses a schema that this epd doesn't know, and says what to do.
func checkVersion(path string, version int) error {
	switch {
	case version == 0 || firstSchema <= version && version <= newestSchema():
		return nil
	case version < firstSchema:
		return fmt.Errorf("%w: schema %d, from before v0.1.0; this epd knows schema %d: the epd that made it "+
			"still reads it; to begin anew, stop epd and move %[4]s, %[4]s-wal and %[4]s-shm away",
			ErrSchema, version, newestSchema(), path)
	}
	back := "no copy from before lies beside it: restore a backup of your own"
	for schema := newestSchema(); schema >= firstSchema; schema-- {
		copied := backupName(path, schema)
		if info, err := os.Stat(copied); err == nil && info.Mode().IsRegular() {
			back = fmt.Sprintf("with epd stopped put %[1]s in its place, and remove %[2]s-wal and "+
				"%[2]s-shm; what was recorded since is lost", copied, path)
			break
		}
	}
	return fmt.Errorf("%w: schema %d, of a newer epd; this one knows schema %d: start the newer epd; or, to "+
		"go back, %s", ErrSchema, version, newestSchema(), back)
}

// backupName returns where a database is copied to before its schema is brought up to date.
func backupName(path string, schema int) string { return fmt.Sprintf("%s.schema%d.bak", path, schema) }

// userVersion returns the schema that a database has; 0 is an empty one.
func userVersion(ctx context.Context, db rowQuerier) (int, error) {
	var version int
	err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	return version, err
}

// rowQuerier is a database, a connection of it or a transaction.
type rowQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}
