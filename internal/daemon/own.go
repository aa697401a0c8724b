package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/epplan/epplan/statedir"
)

// ErrTaken tells that another epd has what this one needs.
var ErrTaken = errors.New("another epd")

// StateLock is this process's lock on a state folder. Its methods may be called by many goroutines.
type StateLock struct {
	dir, role string

	mu   sync.Mutex
	file *os.File
}

// LockState makes a state folder this process's own in a role, until the lock is
// released or the process ends, however it ends. It is [ErrTaken] if another epd
// has it in that role: two would give back each other's clocks, and deliver
// each other's outcomes. The folder is one that [statedir.Make] made or found good.
func LockState(dir, role string) (*StateLock, error) {
	file, err := lockFile(dir, role)
	if err != nil {
		return nil, err
	}
	return &StateLock{dir: dir, role: role, file: file}, nil
}

// Release lets go of the folder.
func (l *StateLock) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.file.Close() // which unlocks it
}

// Renew locks the folder again where somebody removed the lock's file, or put another one in its place: the
// next epd would lock that one. It is [ErrTaken] if one has.
func (l *StateLock) Renew() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	own, err := l.file.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Lstat(lockPath(l.dir, l.role)); err == nil && os.SameFile(own, now) {
		return nil
	}
	again, err := lockFile(l.dir, l.role)
	if err != nil {
		return err
	}
	err = l.file.Close()
	l.file = again
	return err
}

func lockPath(dir, role string) string { return filepath.Join(dir, role+".lock") }

// lockFile opens the lock's file and locks it.
func lockFile(dir, role string) (*os.File, error) {
	path := lockPath(dir, role)
	f, err := statedir.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, unix.EROFS) { // clocks can be given back still
		f, err = statedir.OpenFile(path, os.O_RDONLY, 0)
	}
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		err = fmt.Errorf("%w has the state folder %s as %s: stop it, or name another folder by --state",
			ErrTaken, dir, role)
	case err != nil:
		err = fmt.Errorf("lock %s: %w", path, err)
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}
