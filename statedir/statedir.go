package statedir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"
)

// What a file of state may be beside what was written: none that this version wrote, or one of a later
// version, which is left to that.
var (
	ErrForeign = errors.New("not written by this version")
	ErrNewer   = errors.New("written by a newer epd")
)

// Check says by its error what keeps a folder from being used: an [InsecureError],
// or that it isn't there or isn't a folder.
func Check(path string) error { return CheckFor(path, effectiveUID()) }

// CheckFor is [Check] for a process of another user.
func CheckFor(path string, uid uint32) error {
	_, missing, err := walk(path, uid)
	if err == nil && len(missing) > 0 {
		err = &fs.PathError{Op: "open folder", Path: path, Err: fs.ErrNotExist}
	}
	return err
}

// Make makes a folder that only its owner can enter, and those above it, where they
// aren't there, and checks it as [Check] does. The folder's name is durable when
// Make returns: a power cut doesn't take it away with what was written below.
func Make(path string) error { return makeWith(path, os.Mkdir, Sync) }

// makeWith is Make by what makes a folder and what makes the names in one durable.
func makeWith(path string, mkdir func(string, fs.FileMode) error, sync func(string) error) error {
	at, missing, err := walk(path, effectiveUID())
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		// It may have been made just before a power cut that is still to come. Who can't
		// read the folder above didn't make it.
		if err := sync(filepath.Dir(at)); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		return nil
	}
	for _, name := range missing {
		above := at
		at = filepath.Join(above, name)
		if err := mkdir(at, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := sync(above); err != nil {
			return err
		}
	}
	return Check(path) // somebody else may have been faster
}

// Sync makes the names in a folder durable.
func Sync(dir string) error {
	folder, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// WriteFile replaces a file whole. After a power cut there is either the old file or the new one, and the
// new one once WriteFile has returned. It keeps the old file's mode; without one the mode is this one,
// whatever the umask is.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	dir := filepath.Dir(path)
	err := renameio.WriteFile(path, data, mode, renameio.WithTempDir(dir), renameio.WithStaticPermissions(mode))
	if err != nil {
		return err
	}
	return Sync(dir)
}

// OpenFile is [os.OpenFile] for a file in a folder that was checked: it follows no
// link, waits for nobody at a named pipe, and what isn't [CheckOwnFile] is refused, after the
// flags took effect.
func OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	path = filepath.Clean(path)
	f, err := os.OpenFile(path, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, perm)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) { // a link; a pipe, a socket
		if info, looking := os.Lstat(path); looking == nil {
			err = cmp.Or(CheckOwnFile(path, info), err)
		}
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = CheckOwnFile(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// OpenExclusive is [OpenFile] once no other process, and nobody else in this one, has the file open by it:
// it waits for them to close theirs, or to end.
func OpenExclusive(path string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := OpenFile(path, flag, perm)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// CheckFile says by its error what keeps a file from being opened by a program that
// follows links: the checks of its folder and of the file, which need not be there.
func CheckFile(path string) error {
	if err := Check(filepath.Dir(path)); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return CheckOwnFile(path, info)
}

// FreeName returns a name that nothing has yet: the one given, or with -1, -2 and so on
// behind it. What was moved aside under a name is never overwritten.
func FreeName(name string, taken func(string) (bool, error)) (string, error) {
	const most = 10_000
	free := name
	for i := 1; i < most; i++ {
		if there, err := taken(free); err != nil || !there {
			return free, err
		}
		free = name + "-" + strconv.Itoa(i)
	}
	return "", fmt.Errorf("%s: %w, as %d further names", name, fs.ErrExist, most)
}

// maxLinks is how many symbolic links are followed, as many as Linux follows.
const maxLinks = 40

// walk goes from the root to a folder, over links, and stops at the first thing that
// a user mustn't trust. Of a folder that isn't there it returns how far it came and
// which names are missing.
func walk(path string, me uint32) (at string, missing []string, err error) {
	if at, err = filepath.Abs(path); err != nil {
		return "", nil, err
	}
	rest := pathParts(at)
	own := len(rest) // so many of the rest are of the path itself, not of a link
	at = "/"
	for links := 0; ; {
		info, err := os.Lstat(at)
		if err == nil {
			err = checkWalked(at, info, me, len(rest) == 0)
		}
		if err != nil || len(rest) == 0 {
			return at, nil, err
		}
		next := filepath.Join(at, rest[0]) // one up, where a link says so
		info, err = os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist) && len(rest) > own:
			return "", nil, fmt.Errorf("open folder %s: a symbolic link leads to %s: %w", shellQuote(path),
				shellQuote(next), err)
		case errors.Is(err, fs.ErrNotExist):
			return at, rest, nil
		case err != nil:
			return "", nil, err
		}
		rest = rest[1:]
		own = min(own, len(rest))
		if info.Mode().Type()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if err := checkLink(next, info, me); err != nil {
			return "", nil, err
		}
		target, err := os.Readlink(next)
		if links++; err == nil && links > maxLinks {
			err = &fs.PathError{Op: "open folder", Path: path, Err: syscall.ELOOP}
		}
		if err != nil {
			return "", nil, err
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(pathParts(target), rest...)
	}
}

// checkWalked checks one folder of a walk, the last one as the one that was asked for.
func checkWalked(at string, info fs.FileInfo, me uint32, last bool) error {
	switch {
	case !info.IsDir():
		return &fs.PathError{Op: "open folder", Path: at, Err: syscall.ENOTDIR}
	case last:
		return checkFolder(at, info, me)
	}
	return checkPassedFolder(at, info, me)
}

// pathParts returns the parts of a path.
func pathParts(path string) []string {
	parts := strings.Split(path, string(filepath.Separator))
	return slices.DeleteFunc(parts, func(part string) bool { return part == "" || part == "." })
}
