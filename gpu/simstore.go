package gpu

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/epplan/epplan/statedir"
)

// simFile is the state file in a simulator's folder. Each change is in it
// before the call that made it returns, because a real GPU's locks outlive the
// process too; several processes may share it, as they share real GPUs.
const simFile = "sim-gpus.json"

// simFileVersion is the version of the file.
const simFileVersion = 2

// simStateLimit bounds the file: a GPU has few processes.
const simStateLimit = 4 << 20

// simMachine is the simulated hardware: what handles work on.
type simMachine struct {
	model *simModel
	ids   []Identity
	now   func() time.Time
	dir   string // "": only in memory

	mu     sync.Mutex
	states []simState
	latest time.Time // a clock that goes back stands still here
}

// HoldSim keeps all processes from the simulated GPUs of a folder until it is closed. It waits for those
// that use them.
func HoldSim(dir string) (io.Closer, error) {
	lock, err := statedir.OpenExclusive(filepath.Join(dir, simFile+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("simulator: lock the state: %w", err)
	}
	return lock, nil
}

// withState runs f on the state of one GPU as it is now. What f changes is kept when
// it says so, and written where there is a folder.
func (m *simMachine) withState(i int, f func(s *simState, now time.Time) (changed bool, err error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dir == "" {
		_, err := m.apply(i, f)
		return err
	}
	lock, err := HoldSim(m.dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := m.load(); err != nil {
		return err
	}
	changed, err := m.apply(i, f)
	if changed {
		err = errors.Join(err, m.save())
	}
	return err
}

func (m *simMachine) apply(i int, f func(s *simState, now time.Time) (bool, error)) (bool, error) {
	now := m.now()
	if now.Before(m.latest) {
		now = m.latest
	}
	m.latest = now
	s := m.states[i]
	s.advanceTo(m.model, now)
	changed, err := f(&s, now)
	if changed {
		m.states[i] = s
	}
	return changed, err
}

// simDocument is the state file.
type simDocument struct {
	Version int
	Model   string
	GPUs    []simState
}

func (m *simMachine) load() error {
	path := filepath.Join(m.dir, simFile)
	file, err := statedir.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // as m.states are
	}
	if err != nil {
		return fmt.Errorf("simulator: %w", err)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, simStateLimit+1))
	if err != nil {
		return fmt.Errorf("simulator: read %s: %w", path, err)
	}
	states, err := m.decode(data)
	if err != nil {
		return fmt.Errorf("simulator: %s: %w; delete the file to start with fresh GPUs", path, err)
	}
	m.states = states
	return nil
}

// decode reads a state file, and refuses one of other GPUs.
func (m *simMachine) decode(data []byte) ([]simState, error) {
	if len(data) > simStateLimit {
		return nil, fmt.Errorf("more than %d bytes", simStateLimit)
	}
	var d simDocument
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return nil, fmt.Errorf("not a simulator's state: %w", err)
	}
	if decoder.More() {
		return nil, errors.New("not a simulator's state: more after its end")
	}
	if d.Version != simFileVersion {
		return nil, fmt.Errorf("version %d, want %d", d.Version, simFileVersion)
	}
	if d.Model != m.model.name || len(d.GPUs) != len(m.ids) {
		return nil, fmt.Errorf("state of %d × %q, want %d × %q", len(d.GPUs), d.Model, len(m.ids),
			m.model.name)
	}
	for i := range d.GPUs {
		if d.GPUs[i].UUID != m.ids[i].UUID {
			return nil, fmt.Errorf("GPU %d is %q, want %s", i, d.GPUs[i].UUID, m.ids[i].UUID)
		}
		if err := d.GPUs[i].validate(m.model); err != nil {
			return nil, fmt.Errorf("GPU %d: %w", i, err)
		}
	}
	return d.GPUs, nil
}

func (m *simMachine) encode() ([]byte, error) {
	return json.MarshalIndent(simDocument{Version: simFileVersion, Model: m.model.name, GPUs: m.states}, "",
		" ")
}

// save replaces the file whole; callers hold its lock. It isn't synced: it has to outlive the process,
// not the machine, as locks do.
func (m *simMachine) save() error {
	data, err := m.encode()
	if err != nil {
		return fmt.Errorf("simulator: %w", err)
	}
	path := filepath.Join(m.dir, simFile)
	draft, err := statedir.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = draft.Write(data)
		err = errors.Join(err, draft.Truncate(int64(len(data))), draft.Close())
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("simulator: save the state: %w", err)
	}
	return nil
}
