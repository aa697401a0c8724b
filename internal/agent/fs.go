package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/epplan/epplan/statedir"
)

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
// isn't epd's alone is a [statedir.InsecureError].
func OpenFolder(path string) (*Folder, error) {
	if err := statedir.Make(path); err != nil {
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
	if err := ignoreMissing(f.Remove(name)); err != nil { // nothing that is there is written to
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
	if err := statedir.CheckOwnFile(path, info); err != nil {
		return nil, fmt.Errorf("%w: %w", statedir.ErrForeign, err)
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
	if err := statedir.CheckOwnFile(path, info); err != nil {
		return nil, fmt.Errorf("%w: %w", statedir.ErrForeign, err)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s: %w: %d bytes", name, statedir.ErrForeign, info.Size())
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
		err = errors.Join(setAside(f, to), f.root.Rename(from, to))
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
		err = setAside(f, name)
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

// Endings of file names: what is in force, what is being written, what is done
// with, what couldn't be read, and what another process gave back.
const (
	current        = ".json"
	draftSuffix    = ".tmp"
	doneSuffix     = ".done"
	asideSuffix    = ".aside"
	returnedSuffix = ".returned"
	baselineSuffix = ".baseline" // what GPUs are at without epd
)

// putFile writes a file so that a crash leaves either the old or the new one.
// After an error either may be there.
func putFile(folder FS, name string, data []byte) error {
	f, err := folder.Create(name + draftSuffix)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = folder.Rename(name+draftSuffix, name)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(folder.Remove(name+draftSuffix)))
	}
	return folder.Sync()
}

// retireFile takes a file out of force: renamed first, so that a crash leaves
// it in force or not, then removed. One that isn't there is no error.
func retireFile(folder FS, name string) error {
	if err := ignoreMissing(folder.Rename(name+current, name+doneSuffix)); err != nil {
		return err
	}
	if err := folder.Sync(); err != nil {
		return err
	}
	return ignoreMissing(folder.Remove(name + doneSuffix))
}

// setAside moves a file that can't be read out of the way and keeps it, beside those
// that were set aside before.
func setAside(folder FS, name string) error {
	names, err := folder.Names()
	if err != nil {
		return err
	}
	taken := func(name string) (bool, error) { return slices.Contains(names, name+asideSuffix), nil }
	free, err := statedir.FreeName(name, taken)
	if err != nil {
		return err
	}
	if err := ignoreMissing(folder.Rename(name, free+asideSuffix)); err != nil {
		return err
	}
	return folder.Sync()
}

// liveFiles names, without its ending, each file in force. Foreign names, which
// have no ending of ours, come back apart. With clean it removes the remains of
// interrupted writes, which it must not while somebody writes.
func liveFiles(folder FS, clean bool) (names, foreign []string, err error) {
	all, err := folder.Names()
	if err != nil {
		return nil, nil, err
	}
	for _, name := range all {
		switch {
		case strings.HasSuffix(name, draftSuffix), strings.HasSuffix(name, doneSuffix),
			strings.HasSuffix(name, returnedSuffix):
			if !clean {
				continue
			}
			err = errors.Join(err, ignoreMissing(folder.Remove(name)))
		case strings.HasSuffix(name, current):
			names = append(names, strings.TrimSuffix(name, current))
		case !strings.HasSuffix(name, asideSuffix) && !strings.HasSuffix(name, baselineSuffix):
			foreign = append(foreign, name)
		}
	}
	slices.Sort(names)
	if err != nil {
		return names, foreign, fmt.Errorf("remove what was left of a write: %w", err)
	}
	return names, foreign, nil
}

// ignoreMissing makes no error of removing what isn't there.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// isFileName reports whether an id is safe as a file's name.
func isFileName(id string) bool {
	const longest = 100
	return id != "" && len(id) <= longest && id[0] != '.' && id[0] != '-' &&
		!strings.ContainsFunc(id, func(r rune) bool {
			return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') &&
				r != '-' && r != '_'
		})
}

// decode reads one JSON value, and nothing behind it. It passes over fields that aren't known: a
// newer epd with the same schema may have written them, to which somebody goes back.
func decode(data []byte, into any) error {
	in := json.NewDecoder(bytes.NewReader(data))
	if err := in.Decode(into); err != nil {
		return err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more follows")
	}
	return nil
}
