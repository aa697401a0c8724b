package spooltest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/epplan/epplan/internal/spool"
)

// ErrCrashed is what every operation returns after the crash.
var ErrCrashed = errors.New("crashed")

// inode is a file: what was written, and how much of it is on disk.
type inode struct {
	data    []byte
	durable int
}

// FS is a file system in memory that loses what a real one may lose: of
// files what wasn't synced, of folders the names that weren't. It crashes at
// the n-th operation that changes something, before or after doing it.
type FS struct {
	names   map[string]*inode // as processes see it
	disk    map[string]*inode // as it is after a power cut, at the least
	folders map[string]bool   // which are durable once they are made
	left    int               // operations until the crash; negative: none comes
	after   bool              // the operation that crashes is still done
	crashed bool
	space   int // bytes that one write may still write; negative: any number
	done    int // operations so far
}

// New makes an empty file system that never crashes.
func New() *FS {
	return &FS{
		names: map[string]*inode{}, disk: map[string]*inode{}, folders: map[string]bool{},
		left: -1, space: -1,
	}
}

// CrashAt makes the file system crash at operation n from now, counted from 0,
// before doing it or after.
func (f *FS) CrashAt(n int, after bool) { f.left, f.after = n, after }

// Fill leaves room for writes of so many bytes only; -1 is any number.
func (f *FS) Fill(space int) { f.space = space }

// Operations returns how many operations that change something there were.
func (f *FS) Operations() int { return f.done }

// Crashed reports whether the crash has come.
func (f *FS) Crashed() bool { return f.crashed }

// Names returns the files that processes see, in order.
func (f *FS) Names() []string { return slices.Sorted(maps.Keys(f.names)) }

// step counts an operation that changes something: do reports whether to do it,
// err what to return.
func (f *FS) step() (do bool, err error) {
	if f.crashed {
		return false, ErrCrashed
	}
	f.done++
	if f.left == 0 {
		f.crashed = true
		return f.after, ErrCrashed
	}
	if f.left > 0 {
		f.left--
	}
	return true, nil
}

// Elsewhere counts an operation on something else than this file system, such as a device, as one of its own:
// it reports whether the process that does both comes to do it. The error is that of a crash.
func (f *FS) Elsewhere() (do bool, err error) { return f.step() }

// Reboot returns the file system after a crash of the process (powerCut false: what
// was done is there) or of the machine: what wasn't synced is there or not, at random.
func (f *FS) Reboot(powerCut bool, lot *rand.Rand) *FS {
	next := New()
	names := maps.Clone(f.names)
	if powerCut {
		paths := map[string]bool{}
		for path := range f.names {
			paths[path] = true
		}
		for path := range f.disk {
			paths[path] = true
		}
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			if f.names[path] == f.disk[path] || lot.IntN(2) == 0 {
				continue
			}
			delete(names, path)
			if old, ok := f.disk[path]; ok {
				names[path] = old
			}
		}
	}
	for path, file := range names {
		data := bytes.Clone(file.data)
		if powerCut && file.durable < len(data) {
			data = data[:file.durable+lot.IntN(len(data)-file.durable+1)]
		}
		next.names[path] = &inode{data: data, durable: len(data)}
	}
	next.disk, next.folders = maps.Clone(next.names), maps.Clone(f.folders)
	return next
}

// MakeDir makes a folder and those above it, durably, as [spool.FS] wants it: after a
// crash all are there or none is. Nothing can be in a folder that wasn't made.
func (f *FS) MakeDir(dir string) error {
	if f.folders[dir] && !f.crashed {
		return nil
	}
	do, err := f.step()
	for ; do && !f.folders[dir]; dir = filepath.Dir(dir) {
		f.folders[dir] = true
	}
	return err
}

// List returns the sizes of the files in a folder.
func (f *FS) List(dir string) (map[string]int64, error) {
	if f.crashed {
		return nil, ErrCrashed
	}
	if !f.folders[dir] {
		return nil, fs.ErrNotExist
	}
	sizes := map[string]int64{}
	for path, file := range f.names {
		if filepath.Dir(path) == dir {
			sizes[filepath.Base(path)] = int64(len(file.data))
		}
	}
	return sizes, nil
}

// Read returns what was written, durable or not.
func (f *FS) Read(path string) ([]byte, error) {
	if f.crashed {
		return nil, ErrCrashed
	}
	file, ok := f.names[path]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return bytes.Clone(file.data), nil
}

// Create makes a name that isn't durable yet.
func (f *FS) Create(path string) (spool.File, error) {
	do, err := f.step()
	if !do {
		return nil, err
	}
	if _, ok := f.names[path]; ok {
		return nil, fs.ErrExist
	}
	if !f.folders[filepath.Dir(path)] {
		return nil, fs.ErrNotExist
	}
	file := &inode{}
	f.names[path] = file
	return &openFile{f, file}, err
}

// Rename moves a name, not durably yet.
func (f *FS) Rename(from, to string) error {
	do, err := f.step()
	if do {
		file, ok := f.names[from]
		if !ok || !f.folders[filepath.Dir(to)] {
			return fs.ErrNotExist
		}
		delete(f.names, from)
		f.names[to] = file
	}
	return err
}

// Remove removes a name, not durably yet.
func (f *FS) Remove(path string) error {
	do, err := f.step()
	if do {
		if _, ok := f.names[path]; !ok {
			return fs.ErrNotExist
		}
		delete(f.names, path)
	}
	return err
}

// SyncDir makes the names in a folder durable.
func (f *FS) SyncDir(dir string) error {
	do, err := f.step()
	if do && !f.folders[dir] {
		return fs.ErrNotExist
	}
	if do {
		maps.DeleteFunc(f.disk, func(path string, _ *inode) bool { return filepath.Dir(path) == dir })
		for path, file := range f.names {
			if filepath.Dir(path) == dir {
				f.disk[path] = file
			}
		}
	}
	return err
}

// openFile is an open file of an FS.
type openFile struct {
	fs   *FS
	file *inode
}

// Write writes half when it crashes or the disk gets full.
func (w *openFile) Write(data []byte) (int, error) {
	do, err := w.fs.step()
	if !do {
		w.file.data = append(w.file.data, data[:len(data)/2]...)
		return 0, err
	}
	if w.fs.space >= 0 && len(data) > w.fs.space {
		w.file.data = append(w.file.data, data[:w.fs.space]...)
		return w.fs.space, fmt.Errorf("write: %w", syscall.ENOSPC)
	}
	w.file.data = append(w.file.data, data...)
	return len(data), err
}

func (w *openFile) Sync() error {
	do, err := w.fs.step()
	if do {
		w.file.durable = len(w.file.data)
	}
	return err
}

func (w *openFile) Close() error {
	_, err := w.fs.step()
	return err
}
