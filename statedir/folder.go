package statedir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// AsideSuffix ends the names of files that couldn't be read.
const AsideSuffix = ".aside"

// FS is one folder of files, without folders below it.
type FS interface {
	// Create opens a new or emptied file for writing.
	Create(name string) (File, error)
	ReadFile(name string) ([]byte, error)
	// Rename replaces what is at the new name.
	Rename(from, to string) error
	Remove(name string) error
	// Names are the files of the folder, in order.
	Names() ([]string, error)
	// Sync makes creations, renames and removals so far durable.
	Sync() error
}

// File is a file being written.
type File interface {
	Write(data []byte) (int, error)
	Sync() error
	Close() error
}

// maxFile is more than any file of this package holds; what is larger isn't
// ours and isn't read whole.
const maxFile = 1 << 20

// Folder is a folder of the machine's file system. What is in it is for root
// alone.
type Folder struct {
	root    *os.Root
	refused error // why nothing may be changed; nil: it may
}

// OpenFolder opens a folder, and makes it, durably, where there is none. One that
// isn't epd's alone is a [InsecureError].
func OpenFolder(path string) (*Folder, error) {
	if err := Make(path); err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	return openRoot(path, nil)
}

// OpenToGiveBack opens a folder that isn't epd's alone, to give clocks back: nothing in
// it is changed, and each try fails. Of files that somebody else may have written
// the names alone count.
func OpenToGiveBack(path string) (*Folder, error) {
	return openRoot(path, errors.New("nothing is changed in a folder that isn't epd's alone"))
}

func openRoot(path string, refused error) (*Folder, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	return &Folder{root, refused}, nil
}

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Create is part of [FS].
func (f *Folder) Create(name string) (File, error) {
	if f.refused != nil {
		return nil, f.refused
	}
	if err := IgnoreMissing(f.Remove(name)); err != nil { // nothing that is there is written to
		return nil, err
	}
	return f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// ReadFile is part of [FS]. What isn't a file that epd alone can have written is
// foreign.
func (f *Folder) ReadFile(name string) ([]byte, error) {
	path := filepath.Join(f.root.Name(), name)
	info, err := f.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if err := CheckOwnFile(path, info); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // read only
	if info, err = file.Stat(); err != nil {
		return nil, err
	}
	// In a foreign folder it may be another one by now.
	if err := CheckOwnFile(path, info); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s: %w: %d bytes", name, ErrForeign, info.Size())
	}
	return io.ReadAll(io.LimitReader(file, maxFile))
}

// Rename is part of [FS]. A folder in the new name's place is set aside.
func (f *Folder) Rename(from, to string) error {
	if f.refused != nil {
		return f.refused
	}
	err := f.root.Rename(from, to)
	if err != nil && f.isFolder(to) {
		err = errors.Join(SetAside(f, to), f.root.Rename(from, to))
	}
	return err
}

// Remove is part of [FS]. A folder that has something in it is set aside.
func (f *Folder) Remove(name string) error {
	if f.refused != nil {
		return f.refused
	}
	err := f.root.Remove(name)
	if err != nil && f.isFolder(name) {
		err = SetAside(f, name)
	}
	return err
}

// isFolder reports whether somebody made a folder of that name.
func (f *Folder) isFolder(name string) bool {
	info, err := f.root.Lstat(name)
	return err == nil && info.IsDir()
}

// Names is part of [FS].
func (f *Folder) Names() ([]string, error) {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, nil
}

// Sync is part of [FS].
func (f *Folder) Sync() error {
	folder, err := f.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// SetAside moves a file that can't be read out of the way and keeps it, beside those
// that were set aside before.
func SetAside(folder FS, name string) error {
	names, err := folder.Names()
	if err != nil {
		return err
	}
	taken := func(name string) (bool, error) { return slices.Contains(names, name+AsideSuffix), nil }
	free, err := FreeName(name, taken)
	if err != nil {
		return err
	}
	if err := IgnoreMissing(folder.Rename(name, free+AsideSuffix)); err != nil {
		return err
	}
	return folder.Sync()
}

// IgnoreMissing makes no error of removing what isn't there.
func IgnoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
