package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/statedir"
)

// Options change how a store works; nil means defaults.
type Options struct {
	// BusyTimeout is how long a write waits for another process. 0 means 2 s.
	BusyTimeout time.Duration
	// Now is the clock for when records were received. nil is time.Now.
	Now func() time.Time
}

// Defaults, and the most connections of each pool of readers.
const (
	defaultBusy   = 2 * time.Second
	readers       = 4
	urgentReaders = 2
	// readerCache is how much of the file a reader keeps, 512 KiB as SQLite says it: the system keeps it for
	// all of them anyway.
	readerCache = "-512"
)

// Store is the records of jobs and runs in an open database: for who decides, for who
// looks at them, for who looks after them. Its methods may be called by many goroutines.
type Store struct {
	Learning *Learning
	db       *database
}

// Learning is the records that predictions come from: models of workloads, and what they
// are learnt from. It is a store's; its methods may be called by many goroutines.
type Learning struct{ db *database }

// database is the open file: one writer, and pools of readers.
type database struct {
	path  string
	now   func() time.Time
	write *sql.DB
	conn  *sql.Conn // the writer's only connection
	read  *sql.DB
	// hookRead is a pool of its own for reads of one job's rows, which Slurm's hooks wait
	// for: long reads for people don't hold them up.
	hookRead *sql.DB

	requests chan *request
	mu       sync.RWMutex          // guards closed; held for reading while a request is handed over
	closed   bool                  // requests takes no more
	done     chan struct{}         // closed when the writer has ended
	damage   atomic.Pointer[error] // why nothing is written any more; nil: nothing is damaged

	files    *openFiles
	movedErr atomic.Pointer[error] // why nothing is written now; nil: the files are at their paths
	emptied  bool                  // the writer's: since they aren't, their log is empty
}

// Open opens the database at a path, makes it if there is none, checks it
// (quick_check) and brings its schema up to date after a backup beside it.
// A damaged database is [ErrCorrupt] and isn't touched, nor is one with a schema that this
// epd doesn't know, [ErrSchema]; one that another process holds is [ErrBusy], one that is
// replaced in the same moment [ErrMoved].
func Open(ctx context.Context, path string, options *Options) (*Store, error) {
	settings := Options{}
	if options != nil {
		settings = *options
	}
	db := &database{
		path: path, now: settings.Now,
		requests: make(chan *request, 4*maxBatch), done: make(chan struct{}),
	}
	if db.now == nil {
		db.now = time.Now
	}
	busy := cmp.Or(settings.BusyTimeout, defaultBusy)
	if err := db.open(ctx, busy); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", path, typedError(err)), db.release())
	}
	go db.writeLoop(context.WithoutCancel(ctx)) // it lives until Close, not as long as opening
	return &Store{Learning: &Learning{db}, db: db}, nil
}

// open opens the writer's connection and the pools. What it has opened when it fails
// is closed by release.
func (db *database) open(ctx context.Context, busy time.Duration) error {
	first, err := ensureFile(db.path)
	if err != nil {
		return err
	}
	if first.Size() > 0 {
		if err := inspect(ctx, db.path, busy); err != nil {
			return err
		}
	} else if log, err := os.Stat(db.path + "-wal"); err == nil && log.Size() > 0 {
		return fmt.Errorf("%w: it is empty, and its log is not", ErrCorrupt)
	}
	pragmas := []string{"_journal_mode", "WAL", "_txlock", "immediate"}
	if first.Size() == 0 { // can't be had later without copying all of it
		pragmas = append(pragmas, "_auto_vacuum", "incremental")
	}
	if db.write, err = sql.Open("sqlite3", dsn(db.path, busy, pragmas...)); err != nil {
		return err
	}
	if db.conn, err = db.write.Conn(ctx); err != nil {
		return err
	}
	if err := migrate(ctx, db.conn, db.path); err != nil {
		return err
	}
	if db.read, err = db.openReaders(ctx, busy, readers); err != nil {
		return err
	}
	if db.hookRead, err = db.openReaders(ctx, busy, urgentReaders); err != nil {
		return err
	}
	db.files, err = filesOf(db.path, first)
	return err
}

// openReaders opens so many connections that only read, all at once: one that is
// opened later might read another database at the path, with the log of this one.
func (db *database) openReaders(ctx context.Context, busy time.Duration, most int) (*sql.DB, error) {
	name := dsn(db.path, busy, "_query_only", "true", "_cache_size", readerCache)
	pool, err := openWatched(name, func(err error) { db.noteDamage(err) })
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(most)
	pool.SetMaxIdleConns(most)
	open := make([]*sql.Conn, 0, most)
	for range most {
		var conn *sql.Conn
		if conn, err = pool.Conn(ctx); err != nil {
			break
		}
		open = append(open, conn)
		if _, err = userVersion(ctx, conn); err != nil { // which opens the log
			break
		}
	}
	for _, conn := range open {
		err = errors.Join(err, conn.Close()) // back into the pool
	}
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return pool, nil
}

// ensureFile makes an empty file that only its owner can read, unless there is one,
// and tells which it is. SQLite gives its other files the same mode.
func ensureFile(path string) (os.FileInfo, error) {
	if err := checkTrusted(path); err != nil {
		return nil, err
	}
	file, err := statedir.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	return info, errors.Join(err, file.Close())
}

// checkTrusted refuses a database that somebody else may have put there, or anything of it:
// SQLite follows links. It need not be there.
func checkTrusted(path string) error {
	for _, ending := range sidecars {
		if err := statedir.CheckFile(path + ending); err != nil {
			return err
		}
	}
	return nil
}

// dsn names a database with what holds for all connections, and further
// parameters as pairs.
func dsn(path string, busy time.Duration, pairs ...string) string {
	values := url.Values{}
	values.Set("_busy_timeout", strconv.FormatInt(busy.Milliseconds(), 10))
	values.Set("_foreign_keys", "true")
	values.Set("_synchronous", "FULL")
	values.Set("_stmt_cache_size", "64")
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + values.Encode()
}

// readOnly names a database for looking at it: nothing is written, not even
// what closing it would merge from its log. Only one that was interrupted while
// it had no log yet can't be looked at that way.
func readOnly(path string, busy time.Duration) string {
	if info, err := os.Stat(path + "-journal"); err == nil && info.Size() > 0 {
		return dsn(path, busy, "_query_only", "true")
	}
	return dsn(path, busy, "_query_only", "true", "mode", "ro")
}

// inspect refuses a damaged database, and one with another schema, through a
// connection of its own that writes nothing.
func inspect(ctx context.Context, path string, busy time.Duration) error {
	db, err := sql.Open("sqlite3", readOnly(path, busy))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	found, err := findings(ctx, db, "quick_check(1)")
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return fmt.Errorf("%w: %s", ErrCorrupt, strings.Join(found, "; "))
	}
	version, err := userVersion(ctx, db)
	if err != nil {
		return err
	}
	var tables int
	const question = "SELECT COUNT(*) FROM sqlite_schema"
	if err := db.QueryRowContext(ctx, question).Scan(&tables); err != nil {
		return err
	}
	if version == 0 && tables > 0 {
		return fmt.Errorf("%w: it has tables, and no number of a schema: another program made it", ErrSchema)
	}
	return checkVersion(path, version)
}

// findings returns what a check pragma has to say other than ok.
func findings(ctx context.Context, db *sql.DB, check string) ([]string, error) {
	rows, err := db.QueryContext(ctx, "PRAGMA "+check)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var found []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		if line != "ok" {
			found = append(found, line)
		}
	}
	return found, rows.Err()
}

// Close waits for the writes that were handed in, commits them and closes the
// database. Later calls are ErrClosed.
func (s *Store) Close() error {
	db := s.db
	db.mu.Lock()
	if db.closed {
		db.mu.Unlock()
		return nil
	}
	db.closed = true
	close(db.requests)
	db.mu.Unlock()
	<-db.done
	return db.release()
}

// release closes what is open, in reverse order. Of a damaged database the writer's connection stays open:
// closing the last one would merge its log, whatever that has become.
func (db *database) release() error {
	var errs []error
	for _, readers := range []*sql.DB{db.hookRead, db.read} {
		if readers != nil {
			errs = append(errs, readers.Close())
		}
	}
	if db.damage.Load() != nil {
		return errors.Join(errs...)
	}
	if db.conn != nil {
		errs = append(errs, db.conn.Close())
	}
	if db.write != nil {
		errs = append(errs, db.write.Close())
	}
	return errors.Join(errs...)
}

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
