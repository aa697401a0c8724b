package daemon

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/spool"
	"github.com/epplan/epplan/internal/testkit/spooltest"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm/hooks"
)

// crashMatrix says which test has an epd die at which step of what it does. The
// first rows are this file's, which are counted; of the others it is looked whether
// they are there.
var crashMatrix = []struct {
	doing string
	steps []string
	by    string // folder and name of a test; empty: this file's
}{
	{"start", []string{"create", "write", "sync", "close", "rename", "sync folder"}, ""},
	{"Prolog", []string{"create", "write", "sync", "close", "rename", "sync folder", "lock"}, ""},
	{"Epilog", []string{"create", "write", "sync", "close", "rename", "sync folder", "unlock", "remove"}, ""},
	{
		"outcome",
		[]string{"create", "write", "sync", "close", "rename", "sync folder", "commit", "remove"},
		"",
	},
	{"restore", []string{"rename", "sync folder", "unlock", "remove"}, ""},
	{
		"node, network and controller, with any fault of the GPUs", nil,
		"internal/daemon.TestAKillAnywhereLeavesNoGPUSetNoRunLostAndTheDatabaseWhole",
	},
	{
		"agent, a call of the driver hangs", nil,
		"internal/agent.TestACrashAtAnyStepWhileACallHangsLeavesNoGPULockedAfterTheNextStart",
	},
	{"agent alone", nil, "internal/agent.TestACrashAtAnyStepLeavesNoGPULockedAfterTheNextStart"},
	{"agent, a site's limits", nil, "internal/agent.TestACrashAtAnyStepNeverRaisesASitesLimit"},
	{
		"epd restore beside the agent", nil,
		"internal/agent.TestARestoreBesideTheAgentAtAnyStepLeavesNoLockWithoutAnEntry",
	},
	{
		"agent, full disk", nil,
		"internal/agent.TestADiskThatIsFullAtAnyStepLeavesNothingLockedAndNoRunAtOddClocks",
	},
	{"agent, kill -9", nil, "internal/agent.TestAProcessKilledAtAnyMomentLeavesNoGPULocked"},
	{
		"controller, restarts and failing records", nil,
		"internal/control.TestAControllerKeepsItsPromisesInAnyOrderOfEvents",
	},
	{"store, kill -9", nil, "internal/store.TestEverythingAcknowledgedIsThereAfterKill"},
	{"spool alone", nil, "internal/spool.TestACrashAtAnyPointLosesNothingThatWasAccepted"},
	{"spool and store", nil, "internal/store.TestEveryOutcomeArrivesOnceWhateverCrashesAndRepeats"},
	{"levers, commands", nil, "internal/steer.TestACrashAtAnyCommandLeavesEverythingToBeTakenBack"},
	{"levers, files", nil, "internal/steer.TestACrashAtAnyFileOperationLeavesEverythingToBeTakenBack"},
	{"hooks, kill -9", nil, "cmd/epd.TestHooksEndWellWheneverTheirEPDIsKilled"},
}

// machine is a node with GPUs, and the way to a controller: on it, or elsewhere.
type machine struct {
	t       *testing.T
	disk    *spooltest.FS
	library *gpu.SimLibrary
	records string
	boot    int

	answered bool // the Prolog was
	epilogs  int  // that came

	desk     *desk              // elsewhere; nil: it is in the node's process
	chosen   *dvfsmodel.Setting // what is decided, whatever the controller says; nil: what it says
	requests int                // that were sent to the desk
	trouble  trouble            // what happens to one of them
	troubled int                // to which, from 1; 0: to none
}

// process is an epd on it.
type process struct {
	*AgentServer
	tape *tape
	own  *desk // nil: it is elsewhere
}

func (m *machine) process() *process {
	m.t.Helper()
	p := &process{tape: &tape{disk: m.disk, doing: "start"}}
	var controller Controller = NewRemoteController([]string{"controller:1"}, line{p.tape, m})
	if m.desk == nil {
		p.own = newDesk(m.t, m.records, p.tape)
		controller = LocalController{p.own.control}
	}
	if m.chosen != nil {
		controller = choice{controller, *m.chosen}
	}
	outbox, err := spool.Open("/spool", &spool.Options{FS: spoolDisk{p.tape}})
	if err != nil && !m.disk.Crashed() {
		m.t.Fatal(err)
	}
	p.AgentServer = NewAgentServer(Options{
		Node: "n1", Controller: controller, Spool: outbox, Simulated: true, Slurm: m.desk != nil,
		Prolog: PrologBounds{time.Minute, time.Minute, time.Minute},
		Agent: agent.New(agent.Options{
			Journal: agentDisk{spoolDisk{p.tape}, "/journal"}, Runs: agentDisk{spoolDisk{p.tape}, "/runs"},
			Library: mortalGPUs{m.library, p.tape}, Boot: "boot-" + strconv.Itoa(m.boot), Grace: 1,
			CallTimeout: time.Minute, UndoTimeout: time.Minute,
		}),
	})
	return p
}

// choice is a controller whose decisions are made.
type choice struct {
	Controller
	setting dvfsmodel.Setting
}

func (c choice) Decide(ctx context.Context, r *epdapi.DecideRequest) (live.Decision, error) {
	d, err := c.Controller.Decide(ctx, r)
	d.Apply, d.Setting = err == nil, c.setting
	return d, err
}

// end closes what a process, dead or not, had open.
func (m *machine) end(p *process) {
	m.t.Helper()
	if p.own != nil {
		p.own.close()
	}
}

func hookOf(kind hooks.Hook) *hooks.Event {
	return &hooks.Event{
		Version: hooks.ProtocolVersion, Kind: kind, Job: 7, Node: "n1", GPUs: []int{0}, GPUsKnown: true,
		UID:     1000,
		Comment: "epplan:fixed=1087", Partition: "gpu",
	}
}

func chainGone(context.Context, live.Run) (live.Outlook, error) {
	return live.Outlook{Life: live.LifeGone}, nil
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
		p.prolog(ctx, hookOf(hooks.Prolog))
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
	p.epilog(ctx, hookOf(hooks.Epilog))
	if p.tape.dead() {
		return
	}
	p.tape.doing = "outcome"
	p.outbox.deliver(ctx)
}

// locked returns what the GPU is really locked at.
func (m *machine) locked() dvfsmodel.MHz {
	m.t.Helper()
	sims, err := m.library.Sims()
	if err != nil {
		m.t.Fatal(err)
	}
	f, err := sims[0].Held(gpu.CoreClock)
	if err != nil {
		m.t.Fatal(err)
	}
	return dvfsmodel.MHz(f)
}

// crashed plays a life that ends at a step, and the next process. It returns how many
// steps there were, and at which it ended.
func crashed(t *testing.T, dir string, restores bool, at int, after, powerCut bool) (steps int,
	where [2]string,
) {
	t.Helper()
	m := &machine{t: t, disk: spooltest.New(), records: filepath.Join(dir, "records.db")}
	var err error
	if m.library, err = gpu.OpenSim("sim", config.BuiltinProfiles().Board, nil); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"/journal", "/runs", "/spool"} {
		if err := m.disk.MakeDir(folder); err != nil {
			t.Fatal(err)
		}
	}
	lot := rand.New(rand.NewPCG(uint64(at), 1))
	if restores {
		former := m.process()
		former.Start(t.Context())
		former.prolog(t.Context(), hookOf(hooks.Prolog))
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
		p.epilog(ctx, hookOf(hooks.Epilog))
	}
	if _, err := p.options.Agent.Sweep(ctx, chainGone, chainGone); err != nil {
		m.t.Error(err)
	}
	for range 3 {
		p.outbox.deliver(ctx)
	}
	if left := p.options.Spool.Len() + len(p.options.Agent.Runs().Ended()); left > 0 {
		m.t.Errorf("%d outcomes are left on the node: %+v", left, p.Status(ctx).Troubles)
	}
	for _, name := range slices.DeleteFunc(m.disk.Names(), isBaseline) {
		m.t.Errorf("left behind: %s", name)
	}
	m.wantOnce(p)
}

// isBaseline reports whether a file says what a GPU is at without epd: it stays.
func isBaseline(name string) bool { return strings.HasSuffix(name, ".baseline") }

// wantOnce wants the run's outcome to be recorded once.
func (m *machine) wantOnce(p *process) {
	m.t.Helper()
	all, err := p.own.store.OutcomesOfJob(m.t.Context(), "alpha", 7)
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
		m.t.Errorf("recorded %d times, and %d times without a start; the Prolog was answered: %t",
			matched, unmatched, m.answered)
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
					t.Fatalf("step %d of %d (%s: %s), done %t, power cut %t", at, steps, where[0], where[1],
						how[0], how[1])
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
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`(?m)^func ` + cut[2] + `\(`).Match(text) {
			return
		}
	}
	t.Errorf("%s isn't there", by)
}

// chainDir returns a folder in memory where there is such a place.
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
	dir := filepath.Join(in, strconv.Itoa(*n))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
