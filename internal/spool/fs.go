package spool

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/epplan/epplan/statedir"
)

// FS is what a spool asks of a file system. Each call can fail, and a crash can
// come between any two.
type FS interface {
	// MakeDir makes a folder that only its owner can enter, durably, if there is none.
	// One that others may write to is refused.
	MakeDir(dir string) error
	// List returns the sizes of the files in a folder by name.
	List(dir string) (map[string]int64, error)
	// Read reads a file, if nobody else can have written it.
	Read(path string) ([]byte, error)
	// Create makes a file that must not exist.
	Create(path string) (File, error)
	Rename(from, to string) error
	Remove(path string) error
	// SyncDir makes the names in a folder durable.
	SyncDir(dir string) error
}

// File is a file being written.
type File interface {
	Write(data []byte) (int, error)
	Sync() error
	Close() error
}

// Disk returns the operating system's file system.
func Disk() FS { return disk{} }

type disk struct{}

func (disk) MakeDir(dir string) error { return statedir.Make(dir) }

func (disk) List(dir string) (map[string]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	sizes := make(map[string]int64, len(entries))
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() {
			sizes[entry.Name()] = info.Size()
		}
	}
	return sizes, nil
}

func (disk) Read(path string) ([]byte, error) {
	file, err := statedir.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(file)
	return data, errors.Join(err, file.Close())
}

func (disk) Create(path string) (File, error) {
	return os.OpenFile(filepath.Clean(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (disk) Rename(from, to string) error { return os.Rename(from, to) }

func (disk) Remove(path string) error { return os.Remove(path) }

func (disk) SyncDir(dir string) error { return statedir.Sync(dir) }
