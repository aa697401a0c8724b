package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
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
type Folder struct{ root *os.Root }

// OpenFolder opens a folder, and makes it where there is none.
func OpenFolder(path string) (*Folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	return &Folder{root}, nil
}

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Create is part of [FS].
func (f *Folder) Create(name string) (File, error) {
	return f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

// ReadFile is part of [FS].
func (f *Folder) ReadFile(name string) ([]byte, error) {
	info, err := f.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s: %w", name, errForeign)
	}
	return f.root.ReadFile(name)
}

// Rename is part of [FS].
func (f *Folder) Rename(from, to string) error { return f.root.Rename(from, to) }

// Remove is part of [FS].
func (f *Folder) Remove(name string) error { return f.root.Remove(name) }

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
	live     = ".json"
	draft    = ".tmp"
	done     = ".done"
	aside    = ".aside"
	returned = ".returned"
)

// putFile writes a file so that a crash leaves either the old or the new one.
// After an error either may be there.
func putFile(folder FS, name string, data []byte) error {
	f, err := folder.Create(name + draft)
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
		err = folder.Rename(name+draft, name+live)
	}
	if err != nil {
		return errors.Join(err, gone(folder.Remove(name+draft)))
	}
	return folder.Sync()
}

// retireFile takes a file out of force: renamed first, so that a crash leaves
// it in force or not, then removed. One that isn't there is no error.
func retireFile(folder FS, name string) error {
	if err := gone(folder.Rename(name+live, name+done)); err != nil {
		return err
	}
	if err := folder.Sync(); err != nil {
		return err
	}
	return gone(folder.Remove(name + done))
}

// setAside moves a file that can't be read out of the way and keeps it.
func setAside(folder FS, name string) error {
	if err := gone(folder.Rename(name, name+aside)); err != nil {
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
		case strings.HasSuffix(name, draft), strings.HasSuffix(name, done), strings.HasSuffix(name, returned):
			if !clean {
				continue
			}
			err = errors.Join(err, gone(folder.Remove(name)))
		case strings.HasSuffix(name, live):
			names = append(names, strings.TrimSuffix(name, live))
		case !strings.HasSuffix(name, aside):
			foreign = append(foreign, name)
		}
	}
	slices.Sort(names)
	if err != nil {
		return names, foreign, fmt.Errorf("remove what was left of a write: %w", err)
	}
	return names, foreign, nil
}

// gone makes no error of removing what isn't there.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// isFileName tells whether an id is safe as a file's name.
func isFileName(id string) bool {
	const longest = 100
	return id != "" && len(id) <= longest && id[0] != '.' && id[0] != '-' &&
		!strings.ContainsFunc(id, func(r rune) bool {
			return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '-' && r != '_'
		})
}
