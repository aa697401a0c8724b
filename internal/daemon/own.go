package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/epplan/epplan/internal/statedir"
)

// ErrTaken tells that another epd has what this one needs.
var ErrTaken = errors.New("another epd")

// LockState makes a state folder this process's own in a role, until release is
// called or the process ends, however it ends. It is [ErrTaken] if another epd
// has it in that role: two would give back each other's clocks, and deliver
// each other's outcomes. The folder is one that [statedir.Make] made or found good.
func LockState(dir, role string) (release func(), err error) {
	path := filepath.Join(dir, role+".lock")
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
		return func() { _ = f.Close() }, nil // which unlocks it
	}
	return nil, errors.Join(err, f.Close())
}
