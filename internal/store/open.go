package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/epplan/epplan/internal/statedir"
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
)

// Store is an open database. Its methods may be called by many goroutines.
type Store struct {
	path  string
	now   func() time.Time
	write *sql.DB
	conn  *sql.Conn // the writer's only connection
	read  *sql.DB
	// urgent is a pool of its own for reads of one job's rows, which Slurm's hooks wait
	// for: long reads for people don't hold them up.
	urgent *sql.DB

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
// A damaged database is [ErrCorrupt] and isn't touched, one of a newer epd is
// [ErrNewer], one that another process holds [ErrBusy], one that is replaced in the
// same moment [ErrMoved].
func Open(ctx context.Context, path string, options *Options) (*Store, error) {
	settings := Options{}
	if options != nil {
		settings = *options
	}
	s := &Store{
		path: path, now: settings.Now,
		requests: make(chan *request, 4*maxBatch), done: make(chan struct{}),
	}
	if s.now == nil {
		s.now = time.Now
	}
	busy := cmp.Or(settings.BusyTimeout, defaultBusy)
	if err := s.open(ctx, busy); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", path, typedError(err)), s.release())
	}
	go s.writeLoop(context.WithoutCancel(ctx)) // it lives until Close, not as long as opening
	return s, nil
}

// open opens the writer's connection and the pools. What it has opened when it fails
// is closed by release.
func (s *Store) open(ctx context.Context, busy time.Duration) error {
	first, err := ensureFile(s.path)
	if err != nil {
		return err
	}
	if first.Size() > 0 {
		if err := inspect(ctx, s.path, busy); err != nil {
			return err
		}
	}
	if s.write, err = sql.Open("sqlite3",
		dsn(s.path, busy, "_journal_mode", "WAL", "_txlock", "immediate")); err != nil {
		return err
	}
	if s.conn, err = s.write.Conn(ctx); err != nil {
		return err
	}
	if err := migrate(ctx, s.conn, s.path); err != nil {
		return err
	}
	if s.read, err = s.openReaders(ctx, busy, readers); err != nil {
		return err
	}
	if s.urgent, err = s.openReaders(ctx, busy, urgentReaders); err != nil {
		return err
	}
	s.files, err = filesOf(s.path, first)
	return err
}

// openReaders opens so many connections that only read, all at once: one that is
// opened later might read another database at the path, with the log of this one.
func (s *Store) openReaders(ctx context.Context, busy time.Duration, most int) (*sql.DB, error) {
	db, err := sql.Open("sqlite3", dsn(s.path, busy, "_query_only", "true"))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	open := make([]*sql.Conn, 0, most)
	for range most {
		var conn *sql.Conn
		if conn, err = db.Conn(ctx); err != nil {
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
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
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

// inspect refuses a damaged database, and one of a newer epd, through a
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
	steps, err := migrations()
	if err != nil {
		return err
	}
	version, err := userVersion(ctx, db)
	if err != nil {
		return err
	}
	return knownVersion(path, version, newestSchema(steps))
}

// findings are what a check pragma has to say other than ok.
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
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.requests)
	s.mu.Unlock()
	<-s.done
	return s.release()
}

// release closes what is open, in reverse order.
func (s *Store) release() error {
	var errs []error
	for _, readers := range []*sql.DB{s.urgent, s.read} {
		if readers != nil {
			errs = append(errs, readers.Close())
		}
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.Close())
	}
	return errors.Join(errs...)
}
