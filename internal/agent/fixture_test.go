package agent_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/statedir"
)

var (
	errDead = errors.New("the process is dead")
	errFull = errors.New("no space left on device")
)

// fuse counts the steps that a process takes outside of itself, and ends or
// hinders it at one of them. A dead process does nothing any more.
type fuse struct {
	mu    sync.Mutex
	steps int
	at    int  // dies at this step; 0: never
	after bool // once the step was done
	dead  bool
	fail  int  // this step of a file system fails; 0: none
	last  int  // and all up to this one
	reads bool // what fails is writing: reading goes on

	meddle   int    // before this step another process does something; 0: never
	diskOnly bool   // or before the next one of a file system, where that isn't one
	meddling func() // what
}

// step takes a step, unless the process is dead.
func (f *fuse) step(do func() error) error {
	return f.take(do, false)
}

func (f *fuse) take(do func() error, disk bool) error {
	f.mu.Lock()
	f.steps++
	n := f.steps
	if n == f.meddle && f.diskOnly && !disk {
		f.meddle++
	}
	if n == f.meddle && !f.dead {
		f.mu.Unlock()
		f.meddling()
		f.mu.Lock()
	}
	if n == f.at && !f.after {
		f.dead = true
	}
	dead := f.dead
	full := disk && f.fail > 0 && n >= f.fail && n <= f.last
	f.mu.Unlock()
	if dead {
		return errDead
	}
	if full {
		return errFull
	}
	err := do()
	f.mu.Lock()
	defer f.mu.Unlock()
	if n == f.at {
		f.dead = true
	}
	if f.dead {
		return errDead
	}
	return err
}

// node is a file: what is in it, and what would survive a loss of power.
type node struct{ data, synced []byte }

// disk is a folder in memory that knows what is durable.
type disk struct {
	mu      sync.Mutex
	names   map[string]*node
	durable map[string]*node
}

func newDisk() *disk { return &disk{names: map[string]*node{}, durable: map[string]*node{}} }

// losePower keeps what is durable; with folder, the folder as it was, too.
func (d *disk) losePower(folder bool) {
	if !folder {
		d.names = maps.Clone(d.durable)
	}
	for _, n := range d.names {
		n.data = slices.Clone(n.synced)
	}
	d.durable = maps.Clone(d.names)
}

// files returns the names that end so.
func (d *disk) files(ending string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []string
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		if strings.HasSuffix(name, ending) {
			found = append(found, name)
		}
	}
	return found
}

func (d *disk) put(name, text string) {
	n := &node{data: []byte(text), synced: []byte(text)}
	d.names[name], d.durable[name] = n, n
}

// fused is a disk seen by a process that may die.
type fused struct {
	disk *disk
	fuse *fuse
}

func (f fused) do(step func() error) error { return f.take(step, true) }

// read is a step that may go on while writing fails.
func (f fused) read(step func() error) error { return f.take(step, !f.fuse.reads) }

func (f fused) take(step func() error, fails bool) error {
	return f.fuse.take(func() error {
		f.disk.mu.Lock()
		defer f.disk.mu.Unlock()
		return step()
	}, fails)
}

func (f fused) Create(name string) (statedir.File, error) {
	n := &node{}
	err := f.do(func() error { f.disk.names[name] = n; return nil })
	return &fusedFile{f, n}, err
}

func (f fused) ReadFile(name string) (data []byte, err error) {
	err = f.read(func() error {
		n, ok := f.disk.names[name]
		if !ok {
			return fs.ErrNotExist
		}
		data = slices.Clone(n.data)
		return nil
	})
	return data, err
}

func (f fused) Rename(from, to string) error {
	return f.do(func() error {
		n, ok := f.disk.names[from]
		if !ok {
			return fs.ErrNotExist
		}
		delete(f.disk.names, from)
		f.disk.names[to] = n
		return nil
	})
}

func (f fused) Remove(name string) error {
	return f.do(func() error {
		if _, ok := f.disk.names[name]; !ok {
			return fs.ErrNotExist
		}
		delete(f.disk.names, name)
		return nil
	})
}

func (f fused) Names() (names []string, err error) {
	err = f.read(func() error { names = slices.Sorted(maps.Keys(f.disk.names)); return nil })
	return names, err
}

func (f fused) Sync() error {
	return f.do(func() error { f.disk.durable = maps.Clone(f.disk.names); return nil })
}

type fusedFile struct {
	fused
	node *node
}

func (f *fusedFile) Write(data []byte) (int, error) {
	err := f.do(func() error { f.node.data = append(f.node.data, data...); return nil })
	return len(data), err
}

func (f *fusedFile) Sync() error {
	return f.do(func() error { f.node.synced = slices.Clone(f.node.data); return nil })
}

func (f *fusedFile) Close() error { return f.do(func() error { return nil }) }

// fusedLibrary is a machine's GPUs seen by a process that may die.
type fusedLibrary struct {
	gpu.Library
	fuse *fuse
	host *host // nil: nobody looks
}

func (l fusedLibrary) Devices() (found []gpu.Device, err error) {
	err = l.fuse.step(func() error {
		devices, err := l.Library.Devices()
		for _, dev := range devices {
			if dev == nil {
				found = append(found, nil)
				continue
			}
			found = append(found, fusedDevice{dev, l.fuse, l.host})
		}
		return err
	})
	return found, err
}

type fusedDevice struct {
	gpu.Device
	fuse *fuse
	host *host
}

func (d fusedDevice) Set(c gpu.Control, v gpu.Value) error {
	err := d.fuse.step(func() error { return d.Device.Set(c, v) })
	d.host.checkLimits()
	return err
}

func (d fusedDevice) Fix(c gpu.Control, v gpu.Value) error {
	return d.fuse.step(func() error { return d.Device.Fix(c, v) })
}

func (d fusedDevice) Release(c gpu.Control) error {
	err := d.fuse.step(func() error { return d.Device.Release(c) })
	d.host.checkLimits()
	return err
}

func (d fusedDevice) Read() (r gpu.Reading, err error) {
	err = d.fuse.step(func() error { r, err = d.Device.Read(); return err })
	return r, err
}

func (d fusedDevice) Clocks() (c gpu.Clocks, err error) {
	err = d.fuse.step(func() error { c, err = d.Device.Clocks(); return err })
	return c, err
}

func (d fusedDevice) profiled() gpu.ProfileDevice {
	p, ok := d.Device.(gpu.ProfileDevice)
	if !ok {
		panic("a GPU without power profiles")
	}
	return p
}

func (d fusedDevice) Profiles() (p gpu.Profiles, err error) {
	err = d.fuse.step(func() error { p, err = d.profiled().Profiles(); return err })
	return p, err
}

func (d fusedDevice) Admissible() (p gpu.ProfileSet, err error) {
	err = d.fuse.step(func() error { p, err = d.profiled().Admissible(); return err })
	return p, err
}

func (d fusedDevice) Withdraw(p dvfsmodel.PowerProfile) error {
	return d.fuse.step(func() error { return d.profiled().Withdraw(p) })
}

func (d fusedDevice) PowerLimit() (w dvfsmodel.Watt, err error) {
	err = d.fuse.step(func() error { w, err = d.Device.PowerLimit(); return err })
	return w, err
}

// host is a node with two GPUs, its disks, and the agents that come and go.
type host struct {
	t       *testing.T
	library *gpu.SimLibrary
	sims    []*gpu.Sim
	uuids   []string
	faults  *gpu.Faults
	journal *disk
	runs    *disk
	boot    string
	options func(*agent.Options)

	site   []dvfsmodel.Watt // the highest power limits that the administrator allows now, by GPU; nil: any
	claims *claims          // nil: nobody claims GPUs
	hard   bool             // GPU 2 is lost, GPU 3 is another agent's
}

// checkLimits fails if a power limit is above what the administrator allows.
func (h *host) checkLimits() {
	if h == nil || h.site == nil {
		return
	}
	for i, got := range h.limits() {
		if got > h.site[i] {
			h.t.Errorf("GPU %d has a power limit of %v W, the administrator's is %v", i, got, h.site[i])
		}
	}
}

// claims are the GPUs of a machine's processes, by UUID. Nil stands for one with
// another journal.
type claims struct {
	mu     sync.Mutex
	owners map[string]*fuse
}

// process is a process that may claim GPUs while it lives.
type process struct {
	claims *claims
	fuse   *fuse
}

func (p process) Claim(uuid string) (func(), error) {
	p.claims.mu.Lock()
	defer p.claims.mu.Unlock()
	owner, owned := p.claims.owners[uuid]
	if owned && owner == nil {
		return nil, agent.ErrTaken
	}
	if owned && owner != p.fuse {
		owner.mu.Lock()
		dead := owner.dead
		owner.mu.Unlock()
		if !dead {
			return nil, agent.ErrSameJournal
		}
	}
	p.claims.owners[uuid] = p.fuse
	return func() {
		p.claims.mu.Lock()
		defer p.claims.mu.Unlock()
		if p.claims.owners[uuid] == p.fuse {
			delete(p.claims.owners, uuid)
		}
	}, nil
}

// profiles are read once: hosts are many.
var profiles = sync.OnceValue(config.BuiltinProfiles)

const twoGPUs = "sim:2,model=GTX1080Ti,profiles"

func newHost(t *testing.T, spec string) *host {
	t.Helper()
	h := &host{t: t, faults: gpu.NewFaults(), journal: newDisk(), runs: newDisk(), boot: "boot-1"}
	var err error
	if h.library, err = gpu.OpenSim(spec, profiles().Board, &gpu.SimOptions{Faults: h.faults}); err !=
		nil {
		t.Fatal(err)
	}
	if h.sims, err = h.library.Sims(); err != nil {
		t.Fatal(err)
	}
	for _, s := range h.sims {
		h.uuids = append(h.uuids, s.Identity().UUID)
	}
	return h
}

// agent makes a process that may die by a fuse; nil never blows.
func (h *host) agent(f *fuse) *agent.Agent {
	if f == nil {
		f = &fuse{}
	}
	o := agent.Options{
		Journal: fused{h.journal, f}, Runs: fused{h.runs, f}, Library: fusedLibrary{h.library, f, h},
		Boot: h.boot, Driver: "driver-1",
	}
	if h.claims != nil {
		o.Claims = process{h.claims, f}
	}
	if h.options != nil {
		h.options(&o)
	}
	return agent.New(o)
}

// restoreBeside is epd restore, whatever the agent does.
func (h *host) restoreBeside() agent.Report {
	h.t.Helper()
	f := &fuse{}
	report, err := agent.RestoreJournal(h.t.Context(), agent.Options{
		Journal: fused{h.journal, f}, Library: fusedLibrary{h.library, f, h}, Claims: process{h.claims, f},
		Boot: h.boot, Driver: "driver-1",
	})
	if err != nil && !errors.Is(err, agent.ErrTaken) && (!h.hard || !errors.Is(err, gpu.ErrLost)) {
		h.t.Errorf("restore: %v", err)
	}
	return report
}

// hardship is a machine on which one GPU was lost while it was locked, and one is
// another agent's, which has locked it.
func (h *host) hardship() {
	h.t.Helper()
	h.hard = true
	a := h.started()
	apply(h, a, "lost", 98, slow, 2)
	for _, err := range []error{
		h.sims[2].InjectFault(gpu.FaultLost),
		h.sims[3].Set(gpu.CoreClock, gpu.Value(coreLow.Core)),
	} {
		if err != nil {
			h.t.Fatal(err)
		}
	}
	h.runs.names = map[string]*node{} // its run isn't looked at
	h.claims = &claims{owners: map[string]*fuse{h.uuids[3]: nil}}
}

// started returns an agent that started well.
func (h *host) started() *agent.Agent {
	h.t.Helper()
	a := h.agent(nil)
	if _, err := a.Start(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	return a
}

// reboot is a loss of power.
func (h *host) reboot(folder bool) {
	h.t.Helper()
	h.journal.losePower(folder)
	h.runs.losePower(folder)
	h.boot += "+1"
	for _, s := range h.sims {
		if err := s.Reboot(); err != nil {
			h.t.Fatal(err)
		}
	}
}

// locked returns what a GPU is really locked at.
func (h *host) locked(i int) dvfsmodel.Setting {
	h.t.Helper()
	var s dvfsmodel.Setting
	for c := range gpu.NumControls {
		v, err := h.sims[i].Held(c)
		if err != nil {
			h.t.Fatal(err)
		}
		c.SetIn(&s, v)
	}
	return s
}

func (h *host) wantLocked(want ...dvfsmodel.Setting) {
	h.t.Helper()
	for i, w := range want {
		if got := h.locked(i); got != w {
			h.t.Errorf("GPU %d is locked at %v, want %v", i, got, w)
		}
	}
}

// wantNoted fails where a GPU is locked without an entry in the journal.
func (h *host) wantNoted(when string) {
	h.t.Helper()
	for i := range h.sims {
		if got := h.locked(i); got != free && (!h.hard || i != 3) &&
			len(h.journal.files(h.uuids[i]+".json")) == 0 {
			h.t.Errorf("%s: GPU %d is locked at %v without an entry", when, i, got)
		}
	}
}

// wantFree fails unless all GPUs are free and the journal is empty. A GPU that is
// lost keeps its entry, and another agent's its lock.
func (h *host) wantFree() {
	h.t.Helper()
	if h.hard {
		h.wantHard()
		return
	}
	for i := range h.sims {
		if got := h.locked(i); got != (dvfsmodel.Setting{}) {
			h.t.Errorf("GPU %d is left locked at %v", i, got)
		}
	}
	if left := h.journal.files(".json"); len(left) > 0 {
		h.t.Errorf("left in the journal: %v", left)
	}
}

func (h *host) wantHard() {
	h.t.Helper()
	h.wantLocked(free, free)
	if got := h.locked(3); got != coreLow {
		h.t.Errorf("the other agent's GPU is locked at %v, it locked it at %v", got, coreLow)
	}
	if left := h.journal.files(".json"); !slices.Equal(left, []string{h.uuids[2] + ".json"}) {
		h.t.Errorf("left in the journal: %v, want the lost GPU's entry", left)
	}
}

// run returns a run of a job on GPUs by index.
func (h *host) run(id string, job uint32, want dvfsmodel.Setting, gpus ...int) live.Run {
	r := live.Run{ID: id, Job: job, Node: "n1", Setting: want, Started: time.Now()}
	for _, i := range gpus {
		r.GPUs = append(r.GPUs, h.uuids[i])
	}
	return r
}

func ignoreMissing(context.Context, live.Run) (live.Outlook, error) {
	return live.Outlook{Life: live.LifeGone}, nil
}

func alive(context.Context, live.Run) (live.Outlook, error) {
	return live.Outlook{Life: live.LifeAlive}, nil
}

// goneAt returns what Slurm says of a job that ended then.
func goneAt(at time.Time) agent.JobProbe {
	return func(context.Context, live.Run) (live.Outlook, error) {
		return live.Outlook{Life: live.LifeGone, Ended: at}, nil
	}
}

var (
	free    = dvfsmodel.Setting{}
	slow    = dvfsmodel.Setting{Core: 1600, Mem: 4000, Cap: 120, Profile: dvfsmodel.MaxQ}
	quick   = dvfsmodel.Setting{Core: 1800, Mem: 4500, Cap: 180, Profile: dvfsmodel.MaxQ}
	coreLow = dvfsmodel.Setting{Core: 1700}
	// lowest is what the files in testdata have, and what [gpu.FaultForeign] sets.
	lowest = dvfsmodel.Setting{Core: 1600, Mem: 4000}
)
