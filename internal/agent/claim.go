package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/epplan/epplan/statedir"
)

// Claims keeps the processes of a machine apart: the clocks of a GPU are set by one
// of them, whatever its state folder.
type Claims interface {
	// Claim makes a GPU this process's own, until release or until the process ends.
	// The error is ErrSameJournal or ErrTaken, or says why nobody can tell whose it is.
	Claim(uuid string) (release func(), err error)
}

// Whose a GPU is that can't be claimed.
var (
	// ErrSameJournal tells that a process with the same journal has the GPU: an agent,
	// beside which clocks are to be given back.
	ErrSameJournal = errors.New("the agent of this journal has the GPU")
	// ErrTaken tells that a process with another journal has the GPU.
	ErrTaken = errors.New("another agent has the GPU")
)

// ClaimFolder is a folder with a file for each GPU, which its process holds locked. It
// is for root alone.
type ClaimFolder struct {
	root    *os.Root
	journal string // path and identity of the journal's folder
	wait    time.Duration
}

// journalLockWait is how long a process that is about to start waits for another one that
// gives back the clocks of the same journal.
const journalLockWait = time.Second

// OpenClaims opens a folder, and makes it where there is none, for a process whose
// journal is the named folder.
func OpenClaims(dir, journal string) (*ClaimFolder, error) {
	if err := statedir.Make(dir); err != nil {
		return nil, fmt.Errorf("claim GPUs: %w", err)
	}
	info, err := os.Stat(journal)
	if err != nil {
		return nil, fmt.Errorf("claim GPUs: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("claim GPUs: %w", err)
	}
	f := &ClaimFolder{root: root, journal: journal}
	if stat, ok := info.Sys().(*unix.Stat_t); ok {
		f.journal = fmt.Sprintf("%s (%d:%d)", journal, stat.Dev, stat.Ino)
	}
	return f, nil
}

// WithWait makes claims wait for a process of the same journal that only gives clocks
// back, as an agent does that starts.
func (f *ClaimFolder) WithWait() *ClaimFolder {
	f.wait = journalLockWait
	return f
}

// Claim is part of [Claims].
func (f *ClaimFolder) Claim(uuid string) (release func(), err error) {
	file, err := f.root.OpenFile(uuid+".lock", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w", uuid, err)
	}
	for last := time.Now().Add(f.wait); ; {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		owner, err := io.ReadAll(io.LimitReader(io.NewSectionReader(file, 0, maxOwner), maxOwner))
		twin := err == nil && bytes.HasSuffix(owner, []byte(f.journal+"\n"))
		if twin && time.Now().Before(last) {
			<-time.After(journalLockWait / 50)
			continue
		}
		kind := ErrTaken
		if twin {
			kind = ErrSameJournal
		}
		return nil, errors.Join(fmt.Errorf("%s: %w: %q", uuid, kind, bytes.TrimSpace(owner)), file.Close())
	}
	if err == nil {
		err = file.Truncate(0)
	}
	if err == nil {
		_, err = file.WriteAt(fmt.Appendf(nil, "process %d, journal %s\n", os.Getpid(), f.journal), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("claim %s in %s: %w", uuid, filepath.Base(f.root.Name()), err),
			file.Close())
	}
	return func() { _ = file.Close() }, nil // which unlocks it
}

// maxOwner is more than the line that says whose a GPU is.
const maxOwner = 8 << 10
