package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/epplan/epplan/statedir"
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

// Copied is what a copy of a database has.
type Copied struct {
	File   string           `json:"file"`
	Bytes  int64            `json:"bytes"`
	Schema int              `json:"schema"`
	Rows   map[string]int64 `json:"rows"`            // by table
	Aside  string           `json:"aside,omitempty"` // where what it replaced is; "": nowhere
}

// CopyOptions change how a database is copied; the zero value is for a new file that nobody watches.
type CopyOptions struct {
	Replace bool // a file that is there
	// Progress, unless it is nil, hears now and then how many bytes were written, and how many
	// there are about; then that the copy is being checked: written is negative.
	Progress func(written, all int64)

	unchecked bool // it is made each time that the schema is brought up to date, and start waits for it
}

// Backup writes a copy of a database, as it is at one moment, to a file that must
// not exist. Writers go on meanwhile. The copy is there whole or not at all.
func Backup(ctx context.Context, path, dest string) error {
	_, err := BackupWith(ctx, path, dest, CopyOptions{})
	return err
}

// BackupWith is [Backup] with options, and says what the copy has. Nothing is in the file's place before
// all of the copy was read again and found sound.
func BackupWith(ctx context.Context, path, dest string, options CopyOptions) (Copied, error) {
	c, err := backup(ctx, path, dest, options)
	if err != nil {
		return Copied{}, fmt.Errorf("back up %s to %s: %w", path, dest, typedError(err))
	}
	return c, nil
}

func backup(ctx context.Context, path, dest string, options CopyOptions) (c Copied, err error) {
	if err := checkExists(path); err != nil {
		return c, err
	}
	if info, err := os.Lstat(dest); err == nil {
		source, err := os.Stat(path)
		switch {
		case !options.Replace:
			return c, os.ErrExist
		case err != nil || !info.Mode().IsRegular() || os.SameFile(info, source):
			return c, errors.Join(errors.New("what is there is no other regular file"), err)
		}
	}
	part, err := os.CreateTemp(filepath.Dir(dest), filepath.Base(dest)+".*.part") // mode 0600
	if err != nil {
		return c, err
	}
	defer func() {
		err = errors.Join(err, part.Close())
		if removed := os.Remove(part.Name()); !errors.Is(removed, os.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}()
	if c, err = copyChecked(ctx, path, part, &options); err != nil {
		return c, err
	}
	c.File = dest
	if options.Replace {
		err = os.Rename(part.Name(), dest)
	} else {
		err = os.Link(part.Name(), dest) // fails if dest came meanwhile
	}
	if err != nil {
		return c, err
	}
	return c, statedir.Sync(filepath.Dir(dest))
}

// copyChecked copies a database into an empty file, makes it durable, and reads all of it again.
func copyChecked(
	ctx context.Context, path string, part *os.File, options *CopyOptions,
) (c Copied, err error) {
	db, err := sql.Open("sqlite3", dsn(path, defaultBusy))
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	var all, first int64
	const size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
	if err := conn.QueryRowContext(ctx, size).Scan(&all); err != nil {
		return c, err
	}
	if err := conn.QueryRowContext(ctx, lastOutcome).Scan(&first); err != nil {
		return c, err
	}
	stop := watchSize(part, all, options.Progress)
	_, err = conn.ExecContext(ctx, "VACUUM INTO ?", part.Name())
	stop()
	if err != nil {
		return c, err
	}
	var last int64
	if err := conn.QueryRowContext(ctx, lastOutcome).Scan(&last); err != nil {
		return c, err
	}
	if err := part.Sync(); err != nil {
		return c, err
	}
	if options.unchecked {
		return c, nil
	}
	if options.Progress != nil {
		options.Progress(-1, all)
	}
	c, has, err := inspectCopy(ctx, part.Name())
	if err == nil && (has < first || has > last) {
		err = fmt.Errorf("%w: the copy has outcomes up to %d, the database had them up to %d, later %d",
			ErrCorrupt, has, first, last)
	}
	return c, err
}

// lastOutcome asks for the number of the last outcome that a database ever had.
const lastOutcome = "SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'outcomes'"

// inspectCopy reads all of a database that nobody writes. One that is damaged is [ErrCorrupt], one of
// another schema [ErrSchema]. It returns what the database has, and the number of its last outcome.
func inspectCopy(ctx context.Context, path string) (c Copied, last int64, err error) {
	if err := inspect(ctx, path, defaultBusy); err != nil {
		return c, 0, err
	}
	found, err := Check(ctx, path)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("%w: %s", ErrCorrupt, strings.Join(found, "; "))
	}
	if err != nil {
		return c, 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return c, 0, err
	}
	db, err := sql.Open("sqlite3", readOnly(path, defaultBusy))
	if err != nil {
		return c, 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c = Copied{File: path, Bytes: info.Size(), Rows: make(map[string]int64)}
	if c.Schema, err = userVersion(ctx, db); err == nil && c.Schema == 0 {
		err = errors.New("it has no records of epd")
	}
	if err != nil {
		return c, 0, err
	}
	for _, table := range tables {
		var there bool
		var rows int64
		err := db.QueryRowContext(ctx,
			"SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?)", table).Scan(&there)
		if err == nil && there { // else of an older schema
			err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table).Scan(&rows)
			c.Rows[table] = rows
		}
		if err != nil {
			return c, 0, err
		}
	}
	err = db.QueryRowContext(ctx, lastOutcome).Scan(&last)
	return c, last, err
}

// Restore puts a copy of a backup in a database's place; the backup stays. What is there is kept beside it as
// <database>.replaced-<time>, and at each moment one of the two is at the path, whole. Nothing else may have
// the database open: [ErrBusy] then, as far as SQLite can tell; the caller holds epd off.
func Restore(
	ctx context.Context, backup, path string, now time.Time, progress func(written, all int64),
) (Copied, error) {
	c, err := restore(ctx, backup, path, now, progress)
	if err != nil {
		return Copied{}, fmt.Errorf("restore %s from %s: %w", path, backup, typedError(err))
	}
	return c, nil
}

func restore(
	ctx context.Context, backup, path string, now time.Time, progress func(written, all int64),
) (c Copied, err error) {
	if err := checkTrusted(path); err != nil {
		return c, err
	}
	if is, err := isSameFile(backup, path); err != nil || is {
		return c, errors.Join(err, errors.New("the backup is what is there"))
	}
	fresh := path + ".restored"
	left, err := filepath.Glob(fresh + "*") // by one that was killed
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		return c, err
	}
	if c, err = BackupWith(ctx, backup, fresh, CopyOptions{Progress: progress}); err != nil {
		return c, err
	}
	c.File = path
	defer func() {
		if removed := os.Remove(fresh); !errors.Is(removed, os.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}()
	if c.Aside, err = keepAside(ctx, path, now); err != nil {
		return c, err
	}
	if err := os.Rename(fresh, path); err != nil {
		return c, err
	}
	return c, statedir.Sync(filepath.Dir(path))
}

// isSameFile reports whether two paths are of one file.
func isSameFile(backup, path string) (bool, error) {
	a, err := os.Stat(backup)
	if err != nil {
		return false, err
	}
	b, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(a, b), err
}

// keepAside gives a database a second name, under which it stays when another one takes its place, and leaves
// nothing beside it that the other one would take for its own. "" if there is none.
func keepAside(ctx context.Context, path string, now time.Time) (aside string, err error) {
	if taken, err := isTaken(path); err != nil || !taken {
		return "", err
	}
	err = mergeLog(ctx, path)
	damaged := errors.Is(typedError(err), ErrCorrupt)
	if err != nil && !damaged {
		return "", err
	}
	aside, err = statedir.FreeName(path+".replaced-"+now.UTC().Format("20060102T150405Z"), isTaken)
	if err != nil {
		return "", err
	}
	for _, ending := range sidecars { // the log of a damaged one stays with it
		if err := os.Link(path+ending, aside+ending); err != nil && !errors.Is(err, os.ErrNotExist) {
			return aside, err
		}
	}
	if err := statedir.Sync(filepath.Dir(path)); err != nil {
		return aside, err
	}
	for _, ending := range sidecars[:len(sidecars)-1] {
		if err := os.Remove(path + ending); err != nil && !errors.Is(err, os.ErrNotExist) {
			return aside, err
		}
	}
	return aside, statedir.Sync(filepath.Dir(path))
}

// mergeLog puts all of a database's log into it, if nobody else has it open.
func mergeLog(ctx context.Context, path string) (err error) {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return err
	}
	db, err := sql.Open("sqlite3", dsn(path, defaultBusy, "_locking_mode", "EXCLUSIVE", "_txlock", "exclusive"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	var busy, frames, done int
	row := conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	if err := row.Scan(&busy, &frames, &done); err != nil {
		return err
	}
	if busy != 0 {
		return ErrBusy
	}
	return nil
}

// watchSize has progress hear how large a file is, until it is stopped.
func watchSize(file *os.File, all int64, progress func(written, all int64)) (stop func()) {
	if progress == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		const every = 5 * time.Second
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				if info, err := file.Stat(); err == nil {
					progress(info.Size(), all)
				}
			}
		}
	}()
	return func() { close(done); <-ended }
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
