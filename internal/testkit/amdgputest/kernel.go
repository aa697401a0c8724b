// Package amdgputest makes folders that look and behave like those of the amdgpu driver below
// /sys, for tests: limits of clocks are staged until they are committed, they need the level "manual", and
// calls fail as the kernel's do. What is in it is from the kernel's source; no real GPU was asked.
package amdgputest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Kernel is a folder like /sys with GPUs. It is an amdgpu.Sysfs.
type Kernel struct {
	Root string
	GPUs []*GPU

	mu     sync.Mutex
	faults []fault
	writes int
	// OnWrite, if set, is called before each write with its number, from 1 on; its error is the
	// write's.
	OnWrite func(n int) error
	// Deaf has GPUs run at their highest clock whatever the limit.
	Deaf bool
}

type fault struct {
	suffix string
	write  bool
	err    syscall.Errno
	left   int // times; -1: always
}

// New makes a folder with GPUs of some kinds, in the order of their PCI addresses.
func New(tb testing.TB, kinds ...Kind) *Kernel {
	tb.Helper()
	k := &Kernel{Root: tb.TempDir()}
	for i, kind := range kinds {
		m := models[kind]
		g := &GPU{
			Kind: kind, Address: fmt.Sprintf("0000:%02x:00.0", 0xc1+2*i), Index: i,
			Unique: fmt.Sprintf("%016x", 0xa0b1c2d3e4f50000+uint64(i)), Cap: m.limit, root: k.Root,
			Began: time.Now().Add(-time.Hour), Sensor: i + 3,
		}
		g.reset()
		k.GPUs = append(k.GPUs, g)
		g.make(tb)
	}
	return k
}

// Open returns a kernel that another process made.
func Open(root string) (*Kernel, error) {
	k := &Kernel{Root: root}
	files, err := filepath.Glob(filepath.Join(root, "devices", "*", "state.json"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		g := &GPU{root: root}
		if err := json.Unmarshal(data, g); err != nil {
			return nil, err
		}
		k.GPUs = append(k.GPUs, g)
	}
	return k, nil
}

// Reopen returns the same kernel for another process.
func Reopen(tb testing.TB, k *Kernel) *Kernel {
	tb.Helper()
	again, err := Open(k.Root)
	must(tb, err)
	return again
}

// Fail makes calls fail whose file ends so: reads, or writes; so often, or always (-1).
func (k *Kernel) Fail(suffix string, write bool, err syscall.Errno, times int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.faults = append(k.faults, fault{suffix, write, err, times})
}

// Heal forgets all faults.
func (k *Kernel) Heal() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.faults = nil
}

// Writes returns how many writes there were.
func (k *Kernel) Writes() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.writes
}

func (k *Kernel) failure(name string, write bool) error {
	for i := range k.faults {
		f := &k.faults[i]
		if f.write == write && strings.HasSuffix(name, f.suffix) && f.left != 0 {
			f.left--
			return &os.PathError{Op: "call", Path: name, Err: f.err}
		}
	}
	return nil
}

// ReadFile is part of amdgpu.Sysfs.
func (k *Kernel) ReadFile(name string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.failure(name, false); err != nil {
		return nil, err
	}
	if g := k.gpu(name); g != nil && filepath.Base(name) == "gpu_metrics" {
		if err := g.load(); err != nil {
			return nil, err
		}
		path := filepath.Join(g.folder(), "gpu_metrics") // if a test put one there
		if data, err := os.ReadFile(path); err == nil {
			return data, nil
		}
		ran := time.Since(g.Began).Seconds() * float64(g.watts())
		if table := models[g.Kind].metrics; table != nil {
			return table(values{g.watts(), g.Lo, g.top(), g.Mem, uint64(ran * (1 << 16))}), nil
		}
	}
	if g := k.gpu(name); g != nil && k.Deaf && filepath.Base(name) == "freq1_input" {
		return fmt.Appendf(nil, "%d000000\n", models[g.Kind].core[1]), nil
	}
	return os.ReadFile(filepath.Join(k.Root, name))
}

// gpu returns the GPU that a file is of, nil if it is off the bus.
func (k *Kernel) gpu(name string) *GPU {
	for _, g := range k.GPUs {
		if strings.HasPrefix(name, "bus/pci/devices/"+g.Address+"/") {
			if _, err := os.Stat(filepath.Join(k.Root, "bus/pci/devices", g.Address)); err == nil {
				return g
			}
		}
	}
	return nil
}

// WriteFile is part of amdgpu.Sysfs: a command for the kernel.
func (k *Kernel) WriteFile(name string, data []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.writes++
	if k.OnWrite != nil {
		if err := k.OnWrite(k.writes); err != nil {
			return err
		}
	}
	err := k.failure(name, true)
	g := k.gpu(name)
	if err == nil && g == nil {
		err = &os.PathError{Op: "open", Path: name, Err: syscall.ENOENT}
	}
	if err != nil {
		return err
	}
	if err := g.load(); err != nil {
		return err
	}
	if err := g.obey(filepath.Base(name), strings.TrimSpace(string(data))); err != nil {
		return &os.PathError{Op: "write", Path: name, Err: err}
	}
	return g.render()
}

// Names is part of amdgpu.Sysfs.
func (k *Kernel) Names(folder string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(k.Root, folder))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Readlink is part of amdgpu.Sysfs.
func (k *Kernel) Readlink(name string) (string, error) {
	return os.Readlink(filepath.Join(k.Root, name))
}

// Writable is part of amdgpu.Sysfs.
func (k *Kernel) Writable(name string) bool {
	info, err := os.Stat(filepath.Join(k.Root, name))
	return err == nil && info.Mode().Perm()&0o222 != 0
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
