package terminal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/epplan/epplan/internal/textfile"
	"github.com/google/renameio/v2"
)

// Read opens the named file, or standard input for "-", hands over what is in it, which
// may be compressed by gzip, and closes it.
func (t *Terminal) Read(name string, f func(r io.Reader, name string) error) error {
	return t.ReadRaw(name, func(r io.Reader, name string) error {
		plain, err := textfile.Decompress(r, name)
		if err != nil {
			return err
		}
		return f(plain, name)
	})
}

// ReadRaw is read for a file's bytes as they are.
func (t *Terminal) ReadRaw(name string, f func(r io.Reader, name string) error) error {
	t.Sources = append(t.Sources, name)
	switch name {
	case "":
		return Usagef("the name of a file is empty")
	case "-":
		if file, ok := t.Stdin.(*os.File); ok {
			if err := t.checkInput(file); err != nil {
				return err
			}
		}
		return f(t.Stdin, "stdin")
	}
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, WithoutPath(err))
	}
	defer func() { _ = file.Close() }() // only read
	if IsDir(name) {
		return fmt.Errorf("%s: is a directory, want a file", name)
	}
	if err := t.checkInput(file); err != nil {
		return err
	}
	return f(file, name)
}

// ParseFile reads a file with one of the packages' readers, and passes on what these warn of.
func ParseFile[T any](
	t *Terminal, name string, reader func(io.Reader, string) (T, error),
) (parsed T, err error) {
	err = t.Read(name, func(r io.Reader, name string) error {
		parsed, err = reader(r, name)
		return err
	})
	if w, ok := any(parsed).(interface{ Warnings() []error }); ok && err == nil {
		t.Warn(w.Warnings())
	}
	return parsed, err
}

// Write puts a file in place as a whole or not at all; "-" is standard output.
// What is no regular file, such as a pipe, is written to; what the command has
// read is refused.
func (t *Terminal) Write(name string, f func(io.Writer) error) error {
	if err := t.checkOverwrite(name); err != nil {
		return err
	}
	var err error
	switch mode := FileMode(name); {
	case name == "-":
		return t.Print(f)
	case mode.IsDir():
		return fmt.Errorf("write %s: is a directory, want a file", name)
	case mode.IsRegular():
		err = replaceFile(name, f)
	default:
		err = writeInPlace(name, f)
	}
	return writeError(name, err)
}

// WriteText is [Terminal.Write] of a text.
func (t *Terminal) WriteText(name, text string) error {
	return t.Write(name, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// writeError is the error of a file that can't be written; nil of none.
func writeError(name string, err error) error {
	if err == nil {
		return nil
	}
	failed := fmt.Errorf("write %s: %w", name, WithoutPath(err))
	if errors.Is(err, fs.ErrNotExist) {
		return WithHint(failed, "make its folder first")
	}
	return failed
}

func replaceFile(name string, f func(io.Writer) error) (err error) {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target // a link stays one
	}
	file, err := renameio.NewPendingFile(name, renameio.WithPermissions(0o644),
		renameio.WithExistingPermissions())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Cleanup()) }()
	if err := f(file); err != nil {
		return err
	}
	return file.CloseAtomicallyReplace()
}

func writeInPlace(name string, f func(io.Writer) error) error {
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f(file), file.Close())
}

// FileMode returns the kind of file that a name leads to; what isn't there is going
// to be a regular one.
func FileMode(name string) fs.FileMode {
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	return info.Mode()
}

// IsDir reports whether a name is a folder's.
func IsDir(name string) bool { return FileMode(name).IsDir() }

func isSameFile(a, b string) bool {
	left, err := os.Stat(a)
	if err != nil || !left.Mode().IsRegular() {
		return false
	}
	right, err := os.Stat(b)
	return err == nil && os.SameFile(left, right)
}

// WithoutPath is what an operation on a file failed of, without the name of the
// file, which may be a temporary one.
func WithoutPath(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// IsSameTarget reports whether two names are of one file or folder, devices but.
func IsSameTarget(a, b string) bool {
	return a != "" && b != "" && FileMode(a)&fs.ModeDevice == 0 &&
		(filepath.Clean(a) == filepath.Clean(b) || isSameFile(a, b))
}
