package spool

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/epplan/epplan/statedir"
)

// Errors of a spool, wrapped with what was being done.
var (
	// ErrFull tells that an entry doesn't fit: into the spool's bound, or onto
	// the disk. What is in the spool stays, and the entry isn't in it.
	ErrFull = errors.New("the spool is full")
	// ErrID tells that an id can't be a file name.
	ErrID = errors.New("an id is 1 to 100 letters, digits, dots, dashes and underscores")
	// ErrRejected is what a receiver wraps to refuse an entry for good: it is
	// moved aside instead of being delivered again.
	ErrRejected = errors.New("rejected")
	// ErrLater is what a receiver wraps when it can't take an entry yet but may
	// take others.
	ErrLater = errors.New("too early")
)

const (
	defaultMaxBytes = 64 << 20
	asideDir        = "aside"
)

// Options change how a spool works; nil means defaults.
type Options struct {
	// MaxBytes bounds the sum of the files' sizes, those aside not counted.
	// 0 means 64 MiB.
	MaxBytes int64
	// FS is the file system. nil is the operating system's.
	FS FS
}

// Spool is an open spool. Its methods may be called by many goroutines.
type Spool struct {
	dir string
	max int64
	fs  FS

	delivering sync.Mutex // one delivery at a time keeps the order

	mu      sync.Mutex // guards what follows and the folder's names
	loaded  bool       // the folder was read
	entries []entry    // in order
	bytes   int64
	next    uint64
}

// Open opens the spool in a folder, which is made if there is none. What a
// crash left half-written is removed: nobody was told that it is in. A folder that
// the disk doesn't let be read, made or cleaned now, as one that is full or read-only,
// is an error beside a spool that tries again whenever it is used; one that isn't epd's alone
// is a [statedir.InsecureError] and no spool.
func Open(dir string, options *Options) (*Spool, error) {
	settings := Options{}
	if options != nil {
		settings = *options
	}
	s := &Spool{dir: dir, max: cmp.Or(settings.MaxBytes, defaultMaxBytes), fs: settings.FS}
	if s.fs == nil {
		s.fs = disk{}
	}
	err := s.load()
	if _, insecure := errors.AsType[*statedir.InsecureError](err); insecure {
		return nil, err
	}
	return s, err
}

// load reads the folder, once. The caller holds mu, or is the only one.
func (s *Spool) load() error {
	if s.loaded {
		return nil
	}
	s.entries, s.bytes = nil, 0
	if err := s.readFolder(); err != nil {
		return fmt.Errorf("open spool %s: %w", s.dir, wrapFull(err))
	}
	s.loaded = true
	return nil
}

// readFolder finds the entries. A name may not be durable after a crash; but then
// Add promised nothing, and makes it durable when it is asked again.
func (s *Spool) readFolder() error {
	if err := s.fs.MakeDir(filepath.Join(s.dir, asideDir)); err != nil {
		return err
	}
	files, err := s.fs.List(s.dir)
	if err != nil {
		return err
	}
	for name, size := range files {
		if strings.HasSuffix(name, partSuffix) {
			if err := s.fs.Remove(filepath.Join(s.dir, name)); err != nil {
				return err
			}
			continue
		}
		if e, ok := parseName(name); ok {
			e.size = size
			s.entries = append(s.entries, e)
			s.bytes += size
			s.next = max(s.next, e.sequence+1)
		}
	}
	slices.SortFunc(s.entries, func(a, b entry) int { return cmp.Compare(a.sequence, b.sequence) })
	return nil
}

// Add puts an entry at the end of the spool, and returns once it is on disk.
// Adding the same entry again is no error and changes nothing. After an error
// the entry may be in the spool or not; adding it again is safe.
func (s *Spool) Add(id string, body []byte) error {
	if !idPattern().MatchString(id) {
		return fmt.Errorf("spool entry %q: %w", id, ErrID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.load()
	if err == nil {
		err = wrapFull(s.add(id, addChecksum(body)))
	}
	if err != nil {
		return fmt.Errorf("spool entry %s: %w", id, err)
	}
	return nil
}

// wrapFull makes the system's errors of a full disk [ErrFull].
func wrapFull(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

func (s *Spool) add(id string, data []byte) error {
	if s.hasSame(id, data) {
		return s.syncDir()
	}
	e := entry{sequence: s.next, id: id, size: int64(len(data))}
	if s.bytes+e.size > s.max {
		return fmt.Errorf("%w: %d of %d bytes are taken by %d entries, %d more don't fit",
			ErrFull, s.bytes, s.max, len(s.entries), e.size)
	}
	part := filepath.Join(s.dir, e.name()+partSuffix)
	err := s.write(part, data)
	if err == nil {
		err = s.fs.Rename(part, filepath.Join(s.dir, e.name()))
	}
	if err != nil {
		_ = s.fs.Remove(part) // what can't be removed now is removed by Open
		s.next++              // and is in nobody's way
		return err
	}
	s.next++
	s.entries = append(s.entries, e)
	s.bytes += e.size
	return s.syncDir()
}

// Holds reports whether an entry of an id is in the spool, whole and durably: whoever was killed before
// it knew need not add it again.
func (s *Spool) Holds(id string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return false, err
	}
	if !slices.ContainsFunc(s.entries, func(e entry) bool {
		if e.id != id {
			return false
		}
		_, err := s.read(e)
		return err == nil
	}) {
		return false, nil
	}
	if err := s.syncDir(); err != nil {
		return false, fmt.Errorf("spool %s: %w", s.dir, err)
	}
	return true, nil
}

// hasSame reports whether the same entry is in the spool already.
func (s *Spool) hasSame(id string, data []byte) bool {
	for _, e := range s.entries {
		if e.id != id || e.size != int64(len(data)) {
			continue
		}
		if there, err := s.fs.Read(filepath.Join(s.dir, e.name())); err == nil && bytes.Equal(there, data) {
			return true
		}
	}
	return false
}

// write makes a file and its contents durable, but not yet its name.
func (s *Spool) write(path string, data []byte) error {
	file, err := s.fs.Create(path)
	if err != nil {
		return err
	}
	if _, err := file.Write(data); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := file.Sync(); err != nil {
		return errors.Join(err, file.Close())
	}
	return file.Close()
}

// syncDir makes names durable.
func (s *Spool) syncDir() error { return s.fs.SyncDir(s.dir) }

// Len returns the number of entries that wait.
func (s *Spool) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}

// Aside lists the files that were moved aside.
func (s *Spool) Aside() ([]string, error) {
	dir := filepath.Join(s.dir, asideDir)
	files, err := s.fs.List(dir)
	if err != nil {
		return nil, fmt.Errorf("list spool %s: %w", dir, err)
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, filepath.Join(dir, name))
	}
	slices.Sort(names)
	return names, nil
}

// remove takes an entry out of the spool. A file that is gone is removed.
func (s *Spool) remove(e entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fs.Remove(filepath.Join(s.dir, e.name())); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	s.dropEntry(e)
	return s.syncDir()
}

// setAside moves an entry out of the way, to a name that nothing has: numbers begin
// anew with a spool that is empty when it is opened, and one outcome may be refused twice.
func (s *Spool) setAside(e entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	aside := filepath.Join(s.dir, asideDir)
	there, err := s.fs.List(aside)
	if err != nil {
		return err
	}
	name, err := statedir.FreeName(e.name(), func(name string) (bool, error) {
		_, taken := there[name]
		return taken, nil
	})
	if err == nil {
		err = s.fs.Rename(filepath.Join(s.dir, e.name()), filepath.Join(aside, name))
	}
	if err != nil {
		return err
	}
	s.dropEntry(e)
	return errors.Join(s.fs.SyncDir(aside), s.syncDir())
}

// dropEntry drops an entry from the list.
func (s *Spool) dropEntry(e entry) {
	s.entries = slices.DeleteFunc(s.entries, func(other entry) bool { return other.sequence == e.sequence })
	s.bytes -= e.size
}
