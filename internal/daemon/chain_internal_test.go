package daemon

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/control"
	"github.com/epplan/epplan/internal/gpu"
	"github.com/epplan/epplan/internal/spool"
	"github.com/epplan/epplan/internal/spool/spooltest"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/store/storetest"
	"github.com/epplan/epplan/slurm"
)

// crashMatrix says which test has an epd die at which step of what it does. The
// first rows are this file's, which are counted; of the others it is looked whether
// they are there.
var crashMatrix = []struct {
	doing string
	steps []string
	by    string // folder and name of a test; empty: this file's
}{
	{"Prolog", []string{"create", "write", "sync", "close", "rename", "sync folder", "lock"}, ""},
	{"Epilog", []string{"create", "write", "sync", "close", "rename", "sync folder", "unlock", "remove"}, ""},
	{"outcome", []string{"create", "write", "sync", "close", "rename", "sync folder", "commit", "remove"}, ""},
	{"restore", []string{"rename", "sync folder", "unlock", "remove"}, ""},
	{"agent alone", nil, "internal/agent.TestACrashAtAnyStepLeavesNoGPULockedAfterTheNextStart"},
	{"epd restore beside the agent", nil, "internal/agent.TestARestoreBesideTheAgentAtAnyStepLeavesNoLockWithoutAnEntry"},
	{"agent, full disk", nil, "internal/agent.TestADiskThatIsFullAtAnyStepLeavesNothingLockedAndNoRunAtOddClocks"},
	{"agent, kill -9", nil, "internal/agent.TestAProcessKilledAtAnyMomentLeavesNoGPULocked"},
	{"store, kill -9", nil, "internal/store.TestEverythingAcknowledgedIsThereAfterKill"},
	{"spool alone", nil, "internal/spool.TestACrashAtAnyPointLosesNothingThatWasAccepted"},
	{"spool and store", nil, "internal/store.TestEveryOutcomeArrivesOnceWhateverCrashesAndRepeats"},
	{"levers, commands", nil, "internal/steer.TestACrashAtAnyCommandLeavesEverythingToBeTakenBack"},
	{"levers, files", nil, "internal/steer.TestACrashAtAnyFileOperationLeavesEverythingToBeTakenBack"},
	{"hooks, kill -9", nil, "cmd/epd.TestHooksEndWellWheneverTheirEPDIsKilled"},
}

// tape is what a process does outside of itself, step by step: it dies at one of them.
type tape struct {
	mu    sync.Mutex
	disk  *spooltest.FS
	doing string
	last  [2]string // what it did when it died
}

// marker is a folder without files: to make it durable changes nothing, and is a step.
const marker = "/none"

// step does something on the disk.
func (t *tape) step(kind string, do func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.disk.Crashed() {
		t.last = [2]string{t.doing, kind}
	}
	return do()
}

// outside does something elsewhere, before and after which the process may die.
func (t *tape) outside(kind string, do func() error) error {
	if err := t.step(kind, func() error { return t.disk.SyncDir(marker) }); err != nil {
		return err
	}
	err := do()
	return errors.Join(err, t.step(kind, func() error { return t.disk.SyncDir(marker) }))
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

func (d agentDisk) Create(name string) (agent.File, error) {
	path := filepath.Join(d.dir, name)
	if _, err := d.spoolDisk.Read(path); err == nil {
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
	return d.spoolDisk.Read(filepath.Join(d.dir, name))
}

func (d agentDisk) Rename(from, to string) error {
	return d.spoolDisk.Rename(filepath.Join(d.dir, from), filepath.Join(d.dir, to))
}

func (d agentDisk) Remove(name string) error { return d.spoolDisk.Remove(filepath.Join(d.dir, name)) }
func (d agentDisk) Sync() error              { return d.SyncDir(d.dir) }

func (d agentDisk) Names() ([]string, error) {
	sizes, err := d.List(d.dir)
	var names []string
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

func (d mortal) Lock(domain gpu.Domain, f dvfsmodel.MHz) error {
	return d.tape.outside("lock", func() error { return d.Device.Lock(domain, f) })
}

func (d mortal) Unlock(domain gpu.Domain) error {
	return d.tape.outside("unlock", func() error { return d.Device.Unlock(domain) })
}

type mortalGPUs struct {
	gpu.Library
	tape *tape
}

func (l mortalGPUs) Devices() ([]gpu.Device, error) {
	all, err := l.Library.Devices()
	for i := range all {
		all[i] = mortal{all[i], l.tape}
	}
	return all, err
}

// mortalRecords are those of a process that may die before or after a commit.
type mortalRecords struct {
	*store.Store
	tape *tape
}

func (r mortalRecords) PutOutcome(ctx context.Context, o *record.Outcome) (receipt store.Receipt, err error) {
	err = r.tape.outside("commit", func() error { receipt, err = r.Store.PutOutcome(ctx, o); return err })
	return receipt, err
}

func (r mortalRecords) PutDecision(ctx context.Context, d *record.Decision) (int64, error) {
	if r.tape.dead() {
		return 0, store.ErrClosed
	}
	return r.Store.PutDecision(ctx, d)
}

// machine is a node with a GPU, and a controller on it.
type machine struct {
	t       *testing.T
	disk    *spooltest.FS
	library *gpu.SimLibrary
	records string
	boot    int

	answered bool // the Prolog was
	epilogs  int  // that came
}

// process is an epd on it.
type process struct {
	*Node
	tape    *tape
	control *control.Controller
	store   *store.Store
}

func (m *machine) process() *process {
	m.t.Helper()
	p := &process{tape: &tape{disk: m.disk, doing: "start"}}
	var err error
	if p.store, err = store.Open(m.t.Context(), m.records, nil); err != nil {
		m.t.Fatal(err)
	}
	settings := control.DefaultSettings()
	settings.Live.Mode = "enforce"
	p.control, err = control.New(m.t.Context(), control.Options{
		Store: mortalRecords{p.store, p.tape}, Cluster: "alpha", Settings: settings, StoreWait: time.Minute,
	})
	if err != nil {
		m.t.Fatal(err)
	}
	outbox, err := spool.Open("/spool", &spool.Options{FS: spoolDisk{p.tape}})
	if err != nil && !m.disk.Crashed() {
		m.t.Fatal(err)
	}
	p.Node = NewNode(Options{
		Node: "n1", Controller: Local{p.control}, Spool: outbox, Simulated: true,
		Agent: agent.New(agent.Options{
			Journal: agentDisk{spoolDisk{p.tape}, "/journal"}, Runs: agentDisk{spoolDisk{p.tape}, "/runs"},
			Library: mortalGPUs{m.library, p.tape}, Boot: "boot-" + strconv.Itoa(m.boot), Grace: 1,
		}),
	})
	return p
}

// end closes what a process, dead or not, had open.
func (m *machine) end(p *process) {
	m.t.Helper()
	if err := errors.Join(p.control.Close(context.Background()), p.store.Close()); err != nil {
		m.t.Error(err)
	}
}

func hookOf(kind slurm.Hook) *slurm.HookEvent {
	return &slurm.HookEvent{
		Version: slurm.ProtocolVersion, Kind: kind, Job: 7, Node: "n1", GPUs: []int{0}, GPUsKnown: true, UID: 1000,
		Comment: "epplan:fixed=1087", Partition: "gpu",
	}
}

func chainGone(context.Context, agent.Run) (agent.Word, error) {
	return agent.Word{Life: agent.LifeGone}, nil
}

// play is a life: a job comes and goes, and its outcome is handed over. In one that
// begins with a restore, another process was killed under the job before.
func (m *machine) play(p *process, restores bool) {
	ctx := m.t.Context()
	if restores {
		p.tape.doing = "restore"
	}
	p.Start(ctx)
	if p.tape.dead() {
		return
	}
	if !restores {
		p.tape.doing = "Prolog"
		p.prolog(ctx, hookOf(slurm.Prolog))
		if p.tape.dead() {
			return
		}
		m.answered = true
	}
	if locked := m.locked(); locked != 0 == restores {
		m.t.Errorf("after a restore (%t) the GPU is locked at %v", restores, locked)
	}
	p.tape.doing = "Epilog"
	m.epilogs++
	p.epilog(ctx, hookOf(slurm.Epilog))
	if p.tape.dead() {
		return
	}
	p.tape.doing = "outcome"
	p.deliver(ctx)
}

// locked is what the GPU is really locked at.
func (m *machine) locked() dvfsmodel.MHz {
	m.t.Helper()
	sims, err := m.library.Sims()
	if err != nil {
		m.t.Fatal(err)
	}
	f, err := sims[0].Locked(gpu.Core)
	if err != nil {
		m.t.Fatal(err)
	}
	return f
}

// crashed plays a life that ends at a step, and the next process. It returns how many
// steps there were, and at which it ended.
func crashed(t *testing.T, dir string, restores bool, at int, after, powerCut bool) (steps int, where [2]string) {
	t.Helper()
	m := &machine{t: t, disk: spooltest.New(), records: filepath.Join(dir, "records.db")}
	var err error
	if m.library, err = gpu.OpenSim("sim", nil); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"/journal", "/runs", "/spool", marker} {
		if err := m.disk.MakeDir(folder); err != nil {
			t.Fatal(err)
		}
	}
	lot := rand.New(rand.NewPCG(uint64(at), 1)) //nolint:gosec // no secret
	if restores {
		former := m.process()
		former.Start(t.Context())
		former.prolog(t.Context(), hookOf(slurm.Prolog))
		m.end(former)
		m.answered, m.disk = true, m.disk.Reboot(false, lot)
	}
	first := m.process()
	before := m.disk.Operations()
	if at >= 0 {
		m.disk.CrashAt(at, after)
	}
	m.play(first, restores)
	steps, where = m.disk.Operations()-before, first.tape.last
	m.end(first)
	if at >= 0 && !m.disk.Crashed() {
		t.Fatalf("step %d of %d was never reached", at, steps)
	}
	m.recover(powerCut, lot)
	return steps, where
}

// recover starts a process after a crash, and wants all to be in order in the end.
func (m *machine) recover(powerCut bool, lot *rand.Rand) {
	m.t.Helper()
	m.disk = m.disk.Reboot(powerCut, lot)
	if powerCut {
		sims, err := m.library.Sims()
		if err := errors.Join(err, sims[0].Reboot()); err != nil {
			m.t.Fatal(err)
		}
		m.boot++
	}
	p := m.process()
	defer m.end(p)
	ctx := m.t.Context()
	p.Start(ctx)
	if locked := m.locked(); locked != 0 {
		m.t.Errorf("after the start the GPU is locked at %v", locked)
	}
	if m.epilogs == 0 { // the job runs, and ends now
		m.epilogs++
		p.epilog(ctx, hookOf(slurm.Epilog))
	}
	if _, err := p.options.Agent.Sweep(ctx, chainGone, chainGone); err != nil {
		m.t.Error(err)
	}
	for range 3 {
		p.deliver(ctx)
	}
	if left := p.options.Spool.Len() + len(p.options.Agent.Ended()); left > 0 {
		m.t.Errorf("%d outcomes are left on the node: %+v", left, p.Status(ctx).Troubles)
	}
	for _, name := range m.disk.Names() {
		m.t.Errorf("left behind: %s", name)
	}
	m.wantOnce(p)
}

// wantOnce wants the run's outcome to be recorded once.
func (m *machine) wantOnce(p *process) {
	m.t.Helper()
	all, err := p.store.OutcomesOfJob(m.t.Context(), "alpha", 7)
	if err != nil {
		m.t.Fatal(err)
	}
	matched := 0
	for i := range all {
		if !all[i].Unmatched {
			matched++
		}
	}
	unmatched := len(all) - matched
	if matched > 1 || unmatched > 1 || m.answered && matched != 1 || matched+unmatched == 0 {
		m.t.Errorf("the outcome is recorded %d times, and %d times without a start; the Prolog was answered: %t", matched, unmatched, m.answered)
	}
}

func TestACrashAtAnyStepFromPrologToRecordsFreesTheGPUAndRecordsTheRunOnce(t *testing.T) {
	storetest.NeedSQLite(t)
	dir, n := chainDir(t), 0
	hit := make(map[[2]string]int)
	for _, restores := range []bool{false, true} {
		steps, _ := crashed(t, newDir(t, dir, &n), restores, -1, false, false)
		for at := range steps {
			for _, how := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
				_, where := crashed(t, newDir(t, dir, &n), restores, at, how[0], how[1])
				hit[where]++
				if t.Failed() {
					t.Fatalf("step %d of %d (%s: %s), done %t, power cut %t", at, steps, where[0], where[1], how[0], how[1])
				}
			}
		}
	}
	checkMatrix(t, hit)
}

// checkMatrix compares the cells with the steps at which processes died.
func checkMatrix(t *testing.T, hit map[[2]string]int) {
	t.Helper()
	crashes := 0
	for _, row := range crashMatrix {
		if row.by != "" {
			wantTest(t, row.by)
			continue
		}
		for _, step := range row.steps {
			cell := [2]string{row.doing, step}
			if hit[cell] == 0 {
				t.Errorf("no process died at %s: %s", row.doing, step)
			}
			crashes += hit[cell]
			delete(hit, cell)
		}
	}
	delete(hit, [2]string{"start", "sync folder"})
	for cell, times := range hit {
		t.Errorf("%d processes died at %s: %s, which isn't in the matrix", times, cell[0], cell[1])
	}
	t.Logf("%d crashes", crashes)
}

// wantTest wants a test to be there that the matrix names.
func wantTest(t *testing.T, by string) {
	t.Helper()
	cut := regexp.MustCompile(`^(.*)\.(Test\w+)$`).FindStringSubmatch(by)
	files, err := filepath.Glob(filepath.Join("../..", cut[1], "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // the project's own
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`(?m)^func ` + cut[2] + `\(`).Match(text) {
			return
		}
	}
	t.Errorf("%s isn't there", by)
}

// chainDir is a folder in memory where there is such a place.
func chainDir(t *testing.T) string {
	t.Helper()
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err != nil || !info.IsDir() {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "epplan-daemon") //nolint:usetesting // TempDir is on disk
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func newDir(t *testing.T, in string, n *int) string {
	t.Helper()
	*n++
	dir := filepath.Join(in, fmt.Sprint(*n))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
