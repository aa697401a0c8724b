package statedir

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// InsecureError tells that somebody else owns, or may write to, what epd is to
// trust.
type InsecureError struct {
	Path string // absolute; of what is wrong, which may be a folder above the one asked for
	What string // is wrong, and what was expected, such as "has mode 0775: …"
	Mend string // what to do, in general a command
}

// Error is in one line.
func (e *InsecureError) Error() string {
	return shellQuote(e.Path) + " " + e.What + "; to mend it: " + e.Mend
}

// Is reports whether another error is of the same path.
func (e *InsecureError) Is(other error) bool {
	o, ok := other.(*InsecureError)
	return ok && o.Path == e.Path
}

// writableByOthers are the permissions to write of others than the owner.
const writableByOthers fs.FileMode = 0o022

// ownerUID returns whose a file is.
func ownerUID(info fs.FileInfo) uint32 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Uid
	}
	return ^uint32(0) // nobody's: this system can't say
}

// effectiveUID is whom the process acts as.
func effectiveUID() uint32 { return uint32(max(0, os.Geteuid())) } //nolint:gosec // a uid

// CheckOwnFile says by its error, an [InsecureError], what keeps a file from being believed:
// it isn't a regular one, it belongs to another user than root and the process's
// own, or others may write to it. The info is of the file itself, not of what a
// link leads to.
func CheckOwnFile(path string, info fs.FileInfo) error {
	switch me, mode := effectiveUID(), info.Mode(); {
	case mode.Type()&fs.ModeSymlink != 0:
		return &InsecureError{path, "is a symbolic link, want a file of epd's own", "rm " + shellQuote(path)}
	case !mode.IsRegular():
		return &InsecureError{path, "isn't a file", "move it away"}
	case ownerUID(info) != 0 && ownerUID(info) != me:
		return &InsecureError{
			path, ownerText(info, me), fmt.Sprintf("chown %d %s, if you know what is in it", me,
				shellQuote(path)),
		}
	case mode.Perm()&writableByOthers != 0:
		return &InsecureError{
			path, modeText(mode, "others may write to it"), "chmod go-w " + shellQuote(path),
		}
	}
	return nil
}

// checkLink says what keeps a symbolic link from being followed.
func checkLink(path string, info fs.FileInfo, me uint32) error {
	if id := ownerUID(info); id != 0 && id != me {
		return &InsecureError{
			path, "is a symbolic link that " + ownerText(info, me), "rm " + shellQuote(path),
		}
	}
	return nil
}

// checkFolder says what keeps the folder from being used that was asked for.
func checkFolder(path string, info fs.FileInfo, me uint32) error {
	switch id := ownerUID(info); {
	case id != 0 && id != me:
		mend := fmt.Sprintf("chown -R %d %s, if you know what is in it, or run this as user %d", me,
			shellQuote(path), id)
		return &InsecureError{path, ownerText(info, me), mend}
	case info.Mode().Perm()&writableByOthers != 0:
		return &InsecureError{
			path, modeText(info.Mode(), "others may write to it"), "chmod go-w " + shellQuote(path),
		}
	}
	return nil
}

// checkPassedFolder says what keeps a folder on the way from being passed.
func checkPassedFolder(path string, info fs.FileInfo, me uint32) error {
	const elsewhere = "name a folder that lies below root's alone"
	switch id := ownerUID(info); {
	case id != 0 && id != me:
		mend := fmt.Sprintf("%s, or chown %d %s", elsewhere, me, shellQuote(path))
		return &InsecureError{path, ownerText(info, me), mend}
	case info.Mode().Perm()&writableByOthers != 0 && info.Mode()&fs.ModeSticky == 0:
		what := modeText(info.Mode(), "others may exchange what lies below")
		return &InsecureError{path, what, elsewhere + ", or chmod go-w " + shellQuote(path)}
	}
	return nil
}

// ownerText says whose something is, and whose it ought to be.
func ownerText(info fs.FileInfo, me uint32) string {
	want := "root"
	if me != 0 {
		want += " or user " + strconv.FormatUint(uint64(me), 10)
	}
	return fmt.Sprintf("belongs to user %d, want %s", ownerUID(info), want)
}

// modeText says which mode something has, and which it ought to have.
func modeText(mode fs.FileMode, so string) string {
	return fmt.Sprintf("has mode %04o, want %04o: %s", mode.Perm(), mode.Perm()&^writableByOthers, so)
}

// shellQuote makes a path a word of a shell's command.
func shellQuote(path string) string {
	if !strings.ContainsFunc(path, func(r rune) bool { return !strings.ContainsRune(shellSafe, r) }) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// shellSafe are the characters that mean nothing to a shell.
const shellSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-:,=@%+"
