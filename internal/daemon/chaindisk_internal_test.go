package daemon

import (
	"errors"
	"path/filepath"
	"slices"
	"sync"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/spool"
	"github.com/epplan/epplan/internal/testkit/spooltest"
	"github.com/epplan/epplan/statedir"
)

// tape is what a process does outside of itself, step by step: it dies at one of them.
type tape struct {
	mu    sync.Mutex
	disk  *spooltest.FS
	doing string
	last  [2]string // what it did when it died
	kinds []string  // of all steps so far
}

// step does something on the disk.
func (t *tape) step(kind string, do func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(kind)
	return do()
}

// note notes what the process is about to do. The caller holds mu.
func (t *tape) note(kind string) {
	if !t.disk.Crashed() {
		t.last = [2]string{t.doing, kind}
		t.kinds = append(t.kinds, kind)
	}
}

// outside does something elsewhere, before and after which the process may die.
func (t *tape) outside(kind string, do func() error) error {
	t.mu.Lock()
	t.note(kind)
	lives, err := t.disk.Elsewhere()
	t.mu.Unlock()
	if !lives {
		return err
	}
	return errors.Join(do(), err)
}

// look is a question to something elsewhere, which changes nothing: the dead ask none.
func (t *tape) look(ask func() error) error {
	if t.dead() {
		return spooltest.ErrCrashed
	}
	return ask()
}

func (t *tape) dead() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.disk.Crashed()
}

// spoolDisk is the disk as a spool sees it.
type spoolDisk struct{ *tape }

func (d spoolDisk) MakeDir(dir string) error {
	return d.step("make folder", func() error { return d.disk.MakeDir(dir) })
}

func (d spoolDisk) List(dir string) (sizes map[string]int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.disk.List(dir)
}

func (d spoolDisk) Read(path string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.disk.Read(path)
}

func (d spoolDisk) Create(path string) (f spool.File, err error) {
	err = d.step("create", func() error { f, err = d.disk.Create(path); return err })
	return chainFile{d.tape, f}, err
}

func (d spoolDisk) Rename(from, to string) error {
	return d.step("rename", func() error { return d.disk.Rename(from, to) })
}

func (d spoolDisk) Remove(path string) error {
	return d.step("remove", func() error { return d.disk.Remove(path) })
}

func (d spoolDisk) SyncDir(dir string) error {
	return d.step("sync folder", func() error { return d.disk.SyncDir(dir) })
}

type chainFile struct {
	tape *tape
	file spool.File
}

func (f chainFile) Write(data []byte) (n int, err error) {
	err = f.tape.step("write", func() error { n, err = f.file.Write(data); return err })
	return n, err
}

func (f chainFile) Sync() error  { return f.tape.step("sync", f.file.Sync) }
func (f chainFile) Close() error { return f.tape.step("close", f.file.Close) }

// agentDisk is one of its folders, as an agent sees it.
type agentDisk struct {
	spoolDisk
	dir string
}

func (d agentDisk) Create(name string) (statedir.File, error) {
	path := filepath.Join(d.dir, name)
	if _, err := d.Read(path); err == nil {
		if err := d.spoolDisk.Remove(path); err != nil {
			return nil, err
		}
	}
	f, err := d.spoolDisk.Create(path)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d agentDisk) ReadFile(name string) ([]byte, error) {
	return d.Read(filepath.Join(d.dir, name))
}

func (d agentDisk) Rename(from, to string) error {
	return d.spoolDisk.Rename(filepath.Join(d.dir, from), filepath.Join(d.dir, to))
}

func (d agentDisk) Remove(name string) error { return d.spoolDisk.Remove(filepath.Join(d.dir, name)) }
func (d agentDisk) Sync() error              { return d.SyncDir(d.dir) }

func (d agentDisk) Names() ([]string, error) {
	sizes, err := d.List(d.dir)
	names := make([]string, 0, len(sizes))
	for name := range sizes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, err
}

// mortal is a GPU that a dead process can't touch.
type mortal struct {
	gpu.Device
	tape *tape
}

func (d mortal) Set(c gpu.Control, v gpu.Value) error {
	return d.tape.outside("lock", func() error { return d.Device.Set(c, v) })
}

func (d mortal) Fix(c gpu.Control, v gpu.Value) error {
	return d.tape.outside("lock", func() error { return d.Device.Fix(c, v) })
}

func (d mortal) Release(c gpu.Control) error {
	return d.tape.outside("unlock", func() error { return d.Device.Release(c) })
}

func (d mortal) Withdraw(p dvfsmodel.PowerProfile) error {
	return d.tape.outside("unlock", func() error { return d.profiled().Withdraw(p) })
}

func (d mortal) profiled() gpu.ProfileDevice {
	p, ok := d.Device.(gpu.ProfileDevice)
	if !ok {
		panic("a GPU without power profiles")
	}
	return p
}

func (d mortal) Profiles() (p gpu.Profiles, err error) {
	err = d.tape.look(func() error { p, err = d.profiled().Profiles(); return err })
	return p, err
}

func (d mortal) Admissible() (p gpu.ProfileSet, err error) {
	err = d.tape.look(func() error { p, err = d.profiled().Admissible(); return err })
	return p, err
}

func (d mortal) PowerLimit() (w dvfsmodel.Watt, err error) {
	err = d.tape.look(func() error { w, err = d.Device.PowerLimit(); return err })
	return w, err
}

func (d mortal) Read() (r gpu.Reading, err error) {
	err = d.tape.look(func() error { r, err = d.Device.Read(); return err })
	return r, err
}

func (d mortal) Clocks() (c gpu.Clocks, err error) {
	err = d.tape.look(func() error { c, err = d.Device.Clocks(); return err })
	return c, err
}

func (d mortal) Sharing() (s gpu.Sharing, err error) {
	err = d.tape.look(func() error { s, err = d.Device.Sharing(); return err })
	return s, err
}

func (d mortal) Processes() (pids []int, err error) {
	err = d.tape.look(func() error { pids, err = d.Device.Processes(); return err })
	return pids, err
}

type mortalGPUs struct {
	gpu.Library
	tape *tape
}

func (l mortalGPUs) Devices() (all []gpu.Device, err error) {
	err = l.tape.look(func() error { all, err = l.Library.Devices(); return err })
	for i := range all {
		if all[i] != nil { // one that can't be opened
			all[i] = mortal{all[i], l.tape}
		}
	}
	return all, err
}
