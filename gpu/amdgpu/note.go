package amdgpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/statedir"
)

// span is from which clock to which the firmware may move one.
type span struct {
	Lo dvfsmodel.MHz `json:"lowest_mhz"`
	Hi dvfsmodel.MHz `json:"highest_mhz"`
}

// note is what a GPU was at before it was set, and what it is set to. It is written before the first
// write to the GPU and removed after the last: where there is none, nothing is set.
type note struct {
	UUID   string `json:"uuid"`
	Driver string `json:"driver"`
	Level  string `json:"level"` // of performance
	Core   span   `json:"core"`
	Mem    span   `json:"memory"`
	// What is set, 0: nothing.
	SetCore dvfsmodel.MHz `json:"set_core_mhz"`
	SetMem  dvfsmodel.MHz `json:"set_memory_mhz"`
	// FixedCore tells that the core clock isn't to fall below what is set either.
	FixedCore bool `json:"fixed_core,omitempty"`
}

// entryOf returns what a note has of a control: where the limits from before are, and what is set.
func (n *note) entryOf(c gpu.Control) (before *span, set *dvfsmodel.MHz) {
	if c == gpu.MemClock {
		return &n.Mem, &n.SetMem
	}
	return &n.Core, &n.SetCore
}

// noteFolder is where the notes of a machine's GPUs are.
type noteFolder struct {
	dir string

	mu     sync.Mutex
	memory map[string][]byte // by UUID, where there is no folder
}

// openNote is the note of one GPU, which no other process can read or change until it is closed.
type openNote struct {
	folder *noteFolder
	uuid   string
	file   *os.File // nil: in memory, or absent
	absent bool     // there is no file
}

// maxNote is more than any note has.
const maxNote = 16 << 10

// open waits for the GPU's turn: epd restore may give it back beside an agent that is about
// to set it. Without create, nothing is made where there is no note.
func (f *noteFolder) open(uuid string, create bool) (*openNote, error) {
	n := &openNote{folder: f, uuid: uuid}
	if f.dir == "" {
		f.mu.Lock()
		return n, nil
	}
	flags := os.O_RDWR
	err := statedir.Check(f.dir)
	if create {
		flags |= os.O_CREATE
		if errors.Is(err, fs.ErrNotExist) {
			err = statedir.Make(f.dir)
		}
	}
	if err == nil {
		n.file, err = statedir.OpenExclusive(filepath.Join(f.dir, uuid+".amdgpu"), flags, 0o600)
	}
	switch {
	case !create && errors.Is(err, fs.ErrNotExist):
		n.absent = true
		return n, nil
	case err != nil:
		return nil, fmt.Errorf("note of %s: %w", uuid, err)
	}
	return n, nil
}

func (n *openNote) close() {
	switch {
	case n.absent:
	case n.file == nil:
		n.folder.mu.Unlock()
	default:
		_ = n.file.Close() // which unlocks it
	}
}

// read returns the note, nil where there is none. One that is torn stands for a GPU that was
// at the kernel's defaults.
func (n *openNote) read() (*note, error) {
	var data []byte
	switch {
	case n.absent:
	case n.file == nil:
		data = n.folder.memory[n.uuid]
	default:
		var err error
		if data, err = io.ReadAll(io.NewSectionReader(n.file, 0, maxNote)); err != nil {
			return nil, fmt.Errorf("note of %s: %w", n.uuid, err)
		}
	}
	if len(data) == 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	got := &note{}
	if torn := json.Unmarshal(data, got) != nil || got.UUID != n.uuid; torn {
		return &note{UUID: n.uuid, Level: levelAuto}, nil
	}
	return got, nil
}

// write replaces the note; nil removes it. What is there meanwhile is a torn one.
func (n *openNote) write(next *note) error {
	if n.absent {
		return nil // only a note that was there is removed
	}
	var data []byte
	if next != nil {
		var err error
		if data, err = json.Marshal(next); err != nil {
			return fmt.Errorf("note of %s: %w", n.uuid, err)
		}
	}
	if n.file == nil {
		if n.folder.memory == nil {
			n.folder.memory = make(map[string][]byte)
		}
		n.folder.memory[n.uuid] = data
		return nil
	}
	_, err := n.file.WriteAt(data, 0)
	if err == nil {
		err = n.file.Truncate(int64(len(data)))
	}
	if err != nil { // what is written outlives the process; a loss of power takes limits with it
		return fmt.Errorf("note of %s: %w", n.uuid, err)
	}
	return nil
}
