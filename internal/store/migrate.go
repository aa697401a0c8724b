package store

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// newSchema is what a new database is made by.
//
//go:embed schema.sql
var newSchema string

//go:embed migrations/*.sql
var migrationFiles embed.FS

// oldestSchema is the first schema that an epd ever wrote.
const oldestSchema = 1

// migration is a step to a schema: from the one before it, or from an empty database.
type migration struct {
	version int
	script  string
}

// migrations are the steps from the oldest schema to the newest, in order. They are
// part of the program, so that a wrong one is a fault that every test meets.
func migrations() ([]migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	steps := make([]migration, 0, len(names))
	for _, name := range names {
		number, _, _ := strings.Cut(strings.TrimPrefix(name, "migrations/"), "_")
		version, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("migration %s has no number: %w", name, err)
		}
		script, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		steps = append(steps, migration{version, string(script)})
	}
	slices.SortFunc(steps, func(a, b migration) int { return cmp.Compare(a.version, b.version) })
	for i, step := range steps {
		if want := oldestSchema + 1 + i; step.version != want {
			return nil, fmt.Errorf("migration %d is missing", want)
		}
	}
	return steps, nil
}

// newestSchema is the schema that steps lead to.
func newestSchema(steps []migration) int { return oldestSchema + len(steps) }

// migrate gives a new database its schema, and brings an old one to it, each step in
// a transaction. One with records is copied beside itself first.
func migrate(ctx context.Context, conn *sql.Conn, path string) error {
	steps, err := migrations()
	if err != nil {
		return err
	}
	version, err := userVersion(ctx, conn)
	if err != nil {
		return err
	}
	if err := knownVersion(path, version, newestSchema(steps)); err != nil {
		return err
	}
	if version == newestSchema(steps) {
		return nil
	}
	if version < oldestSchema {
		return apply(ctx, conn, []migration{{newestSchema(steps), newSchema}})
	}
	dropParts(path)
	_, err = BackupWith(ctx, path, backupName(path, version), CopyOptions{unchecked: true})
	if errors.Is(err, os.ErrExist) {
		err = renewBackup(ctx, path, version)
	}
	if err != nil {
		return fmt.Errorf("backup before migrating: %w", err)
	}
	return apply(ctx, conn, steps[version-oldestSchema:])
}

// apply runs steps one after the other. Foreign keys are off meanwhile: else a table
// that is made anew would take what refers to it along
// (https://sqlite.org/lang_altertable.html, section 7).
func apply(ctx context.Context, conn *sql.Conn, steps []migration) (err error) {
	if _, err := conn.ExecContext(ctx, "PRAGMA foreign_keys = OFF"); err != nil {
		return err
	}
	defer func() {
		_, on := conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA foreign_keys = ON")
		err = errors.Join(err, on)
	}()
	for _, step := range steps {
		if err := step.apply(ctx, conn); err != nil {
			return fmt.Errorf("bring it to schema %d: %w", step.version, err)
		}
	}
	return nil
}

// renewBackup replaces the backup of an earlier upgrade, after which somebody went back
// to an older epd. One of a try that didn't get through is as good as a new one: the
// database wasn't written since.
func renewBackup(ctx context.Context, path string, version int) error {
	copied := backupName(path, version)
	before, err := os.Stat(copied)
	if err != nil {
		return err
	}
	written, err := lastWrite(path)
	if err != nil || !written.After(before.ModTime()) {
		return err
	}
	fresh := copied + ".again.part"
	if _, err := BackupWith(ctx, path, fresh, CopyOptions{unchecked: true}); err != nil {
		return err
	}
	defer func() { _ = os.Remove(fresh) }() // where it isn't in its place
	if got, err := versionOf(ctx, fresh); err != nil || got != version {
		return err // another process has migrated it meanwhile, and made a backup
	}
	return os.Rename(fresh, copied)
}

// lastWrite is when a database was written last: what is written goes to its log first.
func lastWrite(path string) (time.Time, error) {
	now, err := os.Stat(path)
	if err != nil {
		return time.Time{}, err
	}
	log, err := os.Stat(path + "-wal")
	if err == nil && log.Size() > 0 && log.ModTime().After(now.ModTime()) {
		return log.ModTime(), nil
	}
	return now.ModTime(), nil
}

// versionOf is the schema of a database that nobody writes.
func versionOf(ctx context.Context, path string) (version int, err error) {
	db, err := sql.Open("sqlite3", readOnly(path, defaultBusy))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return userVersion(ctx, db)
}

// dropParts removes what backups before a migration left that were killed. Only one
// that opens the database in the same moment would miss its own, and it tries again.
func dropParts(path string) {
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

// apply runs a step in a transaction of its own; another process may have been
// faster, which is no error.
func (m migration) apply(ctx context.Context, conn *sql.Conn) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing after a commit
	if version, err := userVersion(ctx, tx); err != nil || version >= m.version {
		return err
	}
	if _, err := tx.ExecContext(ctx, m.script); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "PRAGMA user_version = "+strconv.Itoa(m.version)); err != nil {
		return err
	}
	return tx.Commit()
}

// knownVersion refuses the schema of a newer epd, and says how to go back.
func knownVersion(path string, version, known int) error {
	if version <= known {
		return nil
	}
	back := "no copy from before lies beside it: restore a backup of your own"
	for schema := known; schema > 0; schema-- {
		if copied := backupName(path, schema); isFile(copied) {
			back = fmt.Sprintf("with epd stopped put %[1]s in its place, and remove %[2]s-wal and "+
				"%[2]s-shm; what was recorded since is lost", copied, path)
			break
		}
	}
	return fmt.Errorf("%w: it has schema %d, this epd knows up to %d: start the newer epd; or, to "+
		"go back, %s", ErrNewer, version, known, back)
}

// backupName is where a database is copied to before its schema is brought up to date.
func backupName(path string, schema int) string { return fmt.Sprintf("%s.schema%d.bak", path, schema) }

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// userVersion is the schema that a database has; 0 is an empty one.
func userVersion(ctx context.Context, db rowQuerier) (int, error) {
	var version int
	err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	return version, err
}

// rowQuerier is a database, a connection of it or a transaction.
type rowQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}
