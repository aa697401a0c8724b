package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// lookEvery is how often it is looked whether the database is at its path while
// nobody writes.
const lookEvery = 5 * time.Second

// openFiles are the files that SQLite has open: the database, its log, and the memory
// that processes share. In WAL mode SQLite goes on with them when they were removed
// or replaced, and what is written then is gone with the process
// (https://sqlite.org/howtocorrupt.html, section 2.4).
type openFiles struct {
	names []string
	infos []os.FileInfo
}

// filesOf returns those of a database that was just opened, and was the file that first
// tells before.
func filesOf(path string, first os.FileInfo) (*openFiles, error) {
	resolved, err := filepath.EvalSymlinks(path) // SQLite's other files lie beside it
	if err != nil {
		return nil, err
	}
	f := &openFiles{names: []string{path, resolved + "-wal", resolved + "-shm"}}
	for _, name := range f.names {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		f.infos = append(f.infos, info)
	}
	if !os.SameFile(first, f.infos[0]) {
		return nil, fmt.Errorf("%w: %s was replaced", ErrMoved, path)
	}
	return f, nil
}

// check is [ErrMoved] unless all of them are at their paths, and [ErrCorrupt] if one was cut, or the log
// overwritten.
func (f *openFiles) check() error {
	for i, name := range f.names {
		switch now, err := os.Stat(name); {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: %s was removed", ErrMoved, name)
		case err != nil:
			return fmt.Errorf("%w: %w", ErrMoved, err)
		case !os.SameFile(now, f.infos[i]):
			return fmt.Errorf("%w: %s was replaced", ErrMoved, name)
		case i == 0 && now.Size() == 0:
			return fmt.Errorf("%w: %s is empty", ErrCorrupt, name)
		}
	}
	return checkLog(f.names[1])
}

// checkFiles is [ErrMoved] if what is written now wouldn't be at the database's path. Then
// what was acknowledged goes from the log into the database, wherever that is, and
// the log is empty: another database at the path would take it for its own. It is [ErrCorrupt] if
// the files are damaged.
func (db *database) checkFiles(ctx context.Context) error {
	err := db.files.check()
	if err == nil {
		db.movedErr.Store(nil)
		db.emptied = false
		return nil
	}
	if db.noteDamage(err) {
		return err
	}
	db.movedErr.Store(&err)
	if !db.emptied {
		var busy, frames, done int
		row := db.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
		db.emptied = row.Scan(&busy, &frames, &done) == nil && busy == 0 // else the next time
	}
	return err
}

// WriteProblem is why nothing can be written now, as far as that is known: the database
// is damaged ([ErrCorrupt]), or isn't at its path ([ErrMoved]). It asks nobody.
func (s *Store) WriteProblem() error { return s.db.writeProblem() }

// WriteProblem is that of [Store.WriteProblem].
func (l *Learning) WriteProblem() error { return l.db.writeProblem() }

// noteDamage has nothing more written after an error of a damaged database.
func (db *database) noteDamage(err error) bool {
	err = typedError(err)
	damaged := errors.Is(err, ErrCorrupt)
	if damaged {
		db.damage.CompareAndSwap(nil, &err)
	}
	return damaged
}

func (db *database) writeProblem() error {
	for _, why := range []*error{db.damage.Load(), db.movedErr.Load()} {
		if why != nil {
			return *why
		}
	}
	return nil
}
