package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/google/renameio/v2"
)

// read opens the named file, or standard input for "-", hands it over, and
// closes it.
func (t *terminal) read(name string, f func(r io.Reader, name string) error) error {
	if name == "-" {
		return f(t.stdin, "stdin")
	}
	file, err := os.Open(name) //nolint:gosec // the user names the file to read
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: no such file", name)
		}
		return fmt.Errorf("read: %w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if info.IsDir() {
		return fmt.Errorf("%s: is a directory, want a file", name)
	}
	return f(file, name)
}

// write puts a file in place as a whole or not at all; "-" is standard output.
func (t *terminal) write(name string, f func(io.Writer) error) (err error) {
	if name == "-" {
		return t.print(f)
	}
	file, err := renameio.NewPendingFile(name, renameio.WithPermissions(0o644))
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, file.Cleanup()) }()
	if err := f(file); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := file.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
