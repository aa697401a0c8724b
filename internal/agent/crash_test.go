package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

// scenario is what a process does until it dies. Prepare comes before, by
// another process.
type scenario struct {
	name    string
	prepare func(h *host, a *agent.Agent)
	play    func(h *host, a *agent.Agent)
}

func apply(h *host, a *agent.Agent, id string, job uint32, want dvfsmodel.Setting, gpus ...int) {
	_, _ = a.Apply(context.Background(), h.run(id, job, want, gpus...))
}

func end(a *agent.Agent, job uint32) { _, _ = a.End(context.Background(), job, "n1") }

var scenarios = []scenario{
	{name: "one GPU", play: func(h *host, a *agent.Agent) {
		apply(h, a, "r1", 1, slow, 0)
		end(a, 1)
		_ = a.Runs().Forget("r1")
	}},
	{name: "two GPUs", play: func(h *host, a *agent.Agent) {
		apply(h, a, "r1", 1, slow, 0, 1)
		end(a, 1)
	}},
	{name: "one clock", play: func(h *host, a *agent.Agent) {
		apply(h, a, "r1", 1, coreLow, 1)
		end(a, 1)
	}},
	{name: "shards", play: func(h *host, a *agent.Agent) {
		apply(h, a, "r1", 1, slow, 0)
		apply(h, a, "r2", 2, quick, 0)
		end(a, 1)
		end(a, 2)
	}},
	{name: "a shard that leaves one clock", play: func(h *host, a *agent.Agent) {
		apply(h, a, "r1", 1, slow, 0)
		apply(h, a, "r2", 2, coreLow, 0)
		end(a, 2)
		end(a, 1)
	}},
	{name: "a shard that opts out", play: func(h *host, a *agent.Agent) {
		apply(h, a, "r1", 1, slow, 0, 1)
		apply(h, a, "r2", 2, free, 0)
		end(a, 1)
	}},
	{name: "requeue without an Epilog", play: func(h *host, a *agent.Agent) {
		apply(h, a, "r1", 1, slow, 0)
		apply(h, a, "r2", 1, quick, 1)
		end(a, 1)
	}},
	{name: "restore by hand", play: func(h *host, a *agent.Agent) {
		apply(h, a, "r1", 1, slow, 0, 1)
		_, _ = a.Restore(context.Background(), "by hand")
		end(a, 1)
	}},
	{name: "hands off", play: func(h *host, a *agent.Agent) {
		apply(h, a, "r1", 1, slow, 0, 1)
		_ = a.RevertToDefault(context.Background(), "r1", "limit")
	}},
	{name: "sweep", play: func(h *host, a *agent.Agent) {
		apply(h, a, "r1", 1, slow, 0)
		_, _ = a.Sweep(context.Background(), ignoreMissing, ignoreMissing)
	}},
	{name: "adapted", play: func(h *host, a *agent.Agent) {
		const ticks = 12
		r := h.run("r1", 1, dvfsmodel.Setting{Core: 1700}, 0, 1)
		r.Adapt = stepped(1.2, 1800, 1700, 1600)
		_, _ = a.Apply(context.Background(), r)
		for i := range ticks { // nothing runs: down to the floor
			_ = a.AdaptAt(context.Background(), r.Started.Add(time.Duration(i)*150*time.Millisecond))
		}
		apply(h, a, "r2", 2, quick, 1) // it shares a GPU: up to the ceiling
		_ = a.AdaptAt(context.Background(), r.Started.Add(ticks*150*time.Millisecond))
		end(a, 1)
		end(a, 2)
	}},
	{name: "stop", play: func(h *host, a *agent.Agent) {
		apply(h, a, "r1", 1, slow, 0, 1)
		_, _ = a.Stop(context.Background())
	}},
	{name: "rollback", play: func(h *host, a *agent.Agent) {
		h.faults.Add(gpu.Fault{GPU: 1, Op: gpu.OpSet, Kind: gpu.FaultTransient, After: 1})
		apply(h, a, "r1", 1, slow, 0, 1)
		end(a, 1)
	}},
	{
		name:    "start after a crash",
		prepare: func(h *host, a *agent.Agent) { apply(h, a, "r1", 1, slow, 0, 1) },
		play:    func(*host, *agent.Agent) {},
	},
	{
		name: "start with a file that can't be read",
		prepare: func(h *host, a *agent.Agent) {
			apply(h, a, "r1", 1, slow, 0, 1)
			h.journal.put(h.uuids[0]+".json", `{"schema":1,"uu`)
			h.journal.put(h.uuids[1]+".json.tmp", `{`)
			h.journal.put("notes.txt", "remember the milk")
		},
		play: func(*host, *agent.Agent) {},
	},
}

// siteCrash is a crash on a machine whose site holds its GPUs at power limits and below clocks, of which an
// administrator changes one limit meanwhile, and after which files are spoiled.
type siteCrash struct {
	fuse
	word  dvfsmodel.Watt // the administrator's limit of the first GPU; 0: as before
	spoil []string       // endings of its files that can't be read any more
	note  bool           // a file that names all GPUs lies in the journal
}

// play plays a scenario until the fuse blows, and then lets another process start.
func (s *scenario) playSite(t *testing.T, c *siteCrash) (steps int) {
	t.Helper()
	ceiling := dvfsmodel.Setting{Core: 1900}
	h := siteHost(t, &ceiling)
	h.site = []dvfsmodel.Watt{200, 210}
	for i, w := range h.site {
		h.limit(i, w)
	}
	if s.prepare != nil {
		first := &fuse{}
		former := h.agent(first)
		_, _ = former.Start(t.Context())
		s.prepare(h, former)
		first.dead = true
	}
	f := &c.fuse
	f.meddling = func() {
		if c.word != 0 {
			h.site[0] = c.word
			h.limit(0, c.word)
		}
	}
	a := h.agent(f)
	a.SettleOneByOne()
	_, _ = a.Start(t.Context())
	s.play(h, a)
	if f.at == 0 {
		return f.steps
	}
	f.dead = true
	for _, ending := range c.spoil {
		if name := h.uuids[0] + ending; len(h.journal.files(name)) > 0 {
			h.journal.put(name, `{"schema":1,"uu`)
		}
	}
	if c.note {
		h.journal.put("notes.txt", strings.Join(h.uuids, " "))
	}
	h.faults.Clear()
	clear(h.claims.owners)
	a = h.agent(nil)
	if report, err := a.Start(t.Context()); err != nil || !report.Clean() {
		t.Errorf("start after the crash: %v, %+v", err, report)
	}
	if _, err := a.Sweep(t.Context(), ignoreMissing, ignoreMissing); err != nil {
		t.Errorf("sweep after the crash: %v", err)
	}
	for i := range h.sims {
		if got := h.locked(i); got.Core != ceiling.Core || got.Mem != 0 {
			t.Errorf("GPU %d is locked at %v, want the site's %v", i, got, ceiling)
		}
	}
	if len(c.spoil) < 2 { // else nobody knows whose the limit is
		h.wantLimits("after the crash", h.site...)
		h.wantRequested("after the crash")
	}
	return f.steps
}

func TestACrashAtAnyStepNeverRaisesASitesLimit(t *testing.T) {
	const entry, base = ".json", ".baseline"
	spoils := [][]string{nil, {entry}, {base}, {entry, base}}
	words := []dvfsmodel.Watt{0, 110, 130, 240}
	crashes, left := 0, len(scenarios)
	for _, s := range scenarios {
		if s.name == "start with a file that can't be read" {
			left-- // it spoils files itself
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			left--
			steps := s.playSite(t, &siteCrash{})
			for n := 1; n <= steps; n++ {
				for k := range 6 {
					at := n*6 + k
					c := &siteCrash{
						fuse:  fuse{at: n + []int{0, 1, 2, 4, 8, 1 << 20}[k], after: at%2 == 0, meddle: n, diskOnly: true},
						word:  words[(at/5)%len(words)],
						spoil: spoils[(at/7)%len(spoils)], note: at%11 == 0,
					}
					s.playSite(t, c)
					if crashes++; t.Failed() {
						t.Fatalf("step %d of %d: at %d after %v, word %v, spoil %v, note %v", n, steps, c.at, c.after,
							c.word, c.spoil, c.note)
					}
				}
			}
		})
	}
	const promised = 10_000 // by docs/reliability.md
	if left == 0 && crashes <= promised {
		t.Errorf("%d crashes, want more than %d", crashes, promised)
	}
	t.Logf("%d crashes", crashes)
}

// crash is what is lost when a process ends.
type crash int

const (
	killed    crash = iota // nothing but the process
	powerLost              // all that isn't durable
	powerLostFolderKept
)

// playUntil plays a scenario on a fresh host until its fuse blows, and then
// lets another process start. It returns how many steps were taken.
func (s *scenario) playUntil(t *testing.T, f *fuse, how crash, hard bool) int {
	t.Helper()
	h := newHost(t, map[bool]string{false: twoGPUs, true: "sim:4,model=GTX1080Ti,profiles"}[hard])
	if hard {
		h.hardship()
	} else {
		h.claims = &claims{owners: map[string]*fuse{}}
	}
	h.options = func(o *agent.Options) { o.Grace = 1 }
	if s.prepare != nil {
		first := &fuse{}
		former := h.agent(first)
		_, _ = former.Start(t.Context())
		s.prepare(h, former)
		first.dead = true
	}
	if f.meddle > 0 {
		f.meddling = func() {
			h.restoreBeside()
			h.wantLocked(free, free)
			h.wantNoted("after a restore beside the agent")
		}
	}
	a := h.agent(f)
	a.SettleOneByOne()
	_, _ = a.Start(t.Context())
	s.play(h, a)
	h.wantNoted("at the end")
	steps := f.steps
	if f.at == 0 {
		return steps
	}
	if f.meddle > 0 && !f.dead { // it took fewer steps with the meddling: it dies now
		f.dead = true
	}
	if !f.dead {
		t.Fatalf("step %d of %d was never reached", f.at, steps)
	}
	before := a.Runs().Ended()
	h.faults.Clear()
	if how != killed {
		h.reboot(how == powerLostFolderKept)
	}
	h.recover(before, how)
	return steps
}

// recover starts a process after a crash and fails unless it finds everything
// in order.
func (h *host) recover(endedBefore []agent.ClosedRun, how crash) {
	h.t.Helper()
	a := h.startAgain(how)
	h.wantFree()
	if left := slices.Concat(h.journal.files(".tmp"), h.journal.files(".done"),
		h.journal.files(".returned")); len(left) > 0 {
		h.t.Errorf("left behind: %v", left)
	}
	swept, err := a.Sweep(h.t.Context(), ignoreMissing, ignoreMissing)
	if err != nil && !errors.Is(err, agent.ErrTaken) {
		h.t.Errorf("sweep after the crash: %v", err)
	}
	ended := a.Runs().Ended()
	ids := make([]string, 0, len(ended))
	for _, c := range ended {
		ids = append(ids, c.Run.ID)
	}
	if len(slices.Compact(slices.Clone(ids))) != len(ids) || len(swept.Closed) > len(ids) {
		h.t.Errorf("ended runs %v, just closed %d", ids, len(swept.Closed))
	}
	if how == killed { // an ended run that isn't forgotten is still known, at least as open
		for _, c := range endedBefore {
			if !slices.Contains(ids, c.Run.ID) && len(h.runs.files(c.Run.ID+".json")) > 0 {
				h.t.Errorf("run %s is lost", c.Run.ID)
			}
		}
	}
	for _, id := range ids {
		if err := a.Runs().Forget(id); err != nil {
			h.t.Errorf("forget: %v", err)
		}
	}
	if left := h.runs.files(""); len(left) > 0 {
		h.t.Errorf("left of runs: %v", left)
	}
	if got, err := a.Apply(h.t.Context(), h.run("next", 9, slow, 0, 1)); err != nil || !got.Locked {
		h.t.Errorf("the next run: %+v, %v", got, err)
	}
	if _, err := a.End(h.t.Context(), 9, "n1"); err != nil {
		h.t.Errorf("the next run's end: %v", err)
	}
	h.wantFree()
}

// startAgain starts a process after a crash, and fails unless it says what it ought to.
func (h *host) startAgain(how crash) *agent.Agent {
	h.t.Helper()
	a := h.agent(nil)
	report, err := a.Start(h.t.Context())
	switch {
	case h.hard && how == killed:
		kept := slices.DeleteFunc(slices.Clone(report.GPUs), func(g agent.Restored) bool {
			return g.Result != agent.EntryKept
		})
		if !errors.Is(err, gpu.ErrLost) || !errors.Is(err, agent.ErrTaken) || len(kept) != 1 ||
			kept[0].UUID != h.uuids[2] {
			h.t.Errorf("start after the crash: %v, %+v", err, report)
		}
		h.wantFree()
		h.comeBack(a)
	case h.hard: // booted: the lost GPU is back, and the other agent hasn't locked its own yet
		h.hard = false
		if !errors.Is(err, agent.ErrTaken) || !report.Clean() {
			h.t.Errorf("start after the crash: %v, %+v", err, report)
		}
	case err != nil || !report.Clean():
		h.t.Errorf("start after the crash: %v, %+v", err, report)
	}
	return a
}

// comeBack brings the lost GPU back, and has it adopted.
func (h *host) comeBack(a *agent.Agent) {
	h.t.Helper()
	if err := h.sims[2].Reboot(); err != nil { // a reset of the GPU alone: the boot is the same
		h.t.Fatal(err)
	}
	if _, err := a.Sweep(h.t.Context(), alive, alive); err != nil && !errors.Is(err, agent.ErrTaken) {
		h.t.Errorf("sweep when the lost GPU is back: %v", err)
	}
	if got := h.locked(3); got != coreLow {
		h.t.Errorf("the other agent's GPU is locked at %v, it locked it at %v", got, coreLow)
	}
	if err := h.sims[3].Release(gpu.CoreClock); err != nil { // it is done with it
		h.t.Fatal(err)
	}
	if got, err := a.Apply(h.t.Context(), h.run("back", 97, slow, 2)); err != nil || !got.Locked ||
		h.locked(2) != slow {
		h.t.Errorf("a run on the GPU that came back: %+v, %v, locked at %v", got, err, h.locked(2))
	}
	if _, err := a.End(h.t.Context(), 97, "n1"); err != nil {
		h.t.Error(err)
	}
	h.hard = false
}

// machines are those on which crashes are tried.
var machines = []struct {
	name string
	hard bool
}{{"all well", false}, {"one GPU lost, one another agent's", true}}

// everyStep plays each scenario on each machine as often as points says for a step of
// it, and counts. With -short it does so for every fifth step.
func everyStep(t *testing.T, points func(step int) []point) {
	t.Helper()
	every, least := shareddata.Rounds(5, 1, 1), shareddata.Rounds(40, 200, 600)
	for _, m := range machines {
		crashes := 0
		for at, s := range scenarios {
			t.Run(m.name+"/"+s.name, func(t *testing.T) {
				steps := s.playUntil(t, &fuse{}, killed, m.hard)
				for n := 1; n <= steps; n += every {
					for _, p := range someOf(points(n), n+at) {
						s.playUntil(t, &fuse{at: p.at, after: p.after, meddle: p.meddle}, p.how, m.hard)
						if t.Failed() {
							t.Fatalf("step %d of %d: %+v", n, steps, p)
						}
						crashes++
					}
				}
			})
		}
		t.Logf("%s: %d crashes", m.name, crashes)
		if crashes < least {
			t.Errorf("%s: %d crashes, want at least %d", m.name, crashes, least)
		}
	}
}

// someOf returns a sixth of a step's points, others by turns, and all of them in a long run.
func someOf(points []point, turn int) (some []point) {
	part := shareddata.Rounds(6, 6, 1)
	for i := turn % part; i < len(points); i += part {
		some = append(some, points[i])
	}
	return some
}

// point is when and how a process ends.
type point struct {
	at     int  // at this step
	after  bool // once it was done
	how    crash
	meddle int // before this step epd restore runs beside it; 0: never
}

func TestACrashAtAnyStepLeavesNoGPULockedAfterTheNextStart(t *testing.T) {
	everyStep(t, func(step int) (points []point) {
		for _, after := range []bool{false, true} {
			for _, how := range []crash{killed, powerLost, powerLostFolderKept} {
				points = append(points, point{at: step, after: after, how: how})
			}
		}
		return points
	})
}

// At each step of the agent epd restore runs beside it, and then the agent dies: at
// once, some steps later, or at the end.
func TestARestoreBesideTheAgentAtAnyStepLeavesNoLockWithoutAnEntry(t *testing.T) {
	everyStep(t, func(step int) (points []point) {
		for _, later := range []int{0, 1, 2, 5, 1 << 20} {
			for _, after := range []bool{false, true} {
				points = append(points, point{at: step + later, after: after, how: killed, meddle: step})
			}
		}
		return points
	})
}

// hangs are calls of a driver that come back long after the agent gave up waiting for them.
var hangs = map[gpu.Op]time.Duration{
	gpu.OpSet: 2 * time.Second, gpu.OpRelease: 2 * time.Second, gpu.OpPowerLimit: 2 * time.Second,
	gpu.OpProfiles: 2 * time.Second, gpu.OpRead: 2 * time.Second, gpu.OpClocks: 2 * time.Second,
	gpu.OpOpen: 20 * time.Second,
}

// playHanging plays a run with a call that hangs until its fuse blows, and lets another process start once
// all calls of the dead one have come back: before that it isn't gone. It returns how many steps were taken.
func playHanging(t *testing.T, want dvfsmodel.Setting, hang gpu.Fault, f *fuse) (steps int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, twoGPUs)
		h.claims = &claims{owners: map[string]*fuse{}}
		h.options = func(o *agent.Options) { o.Grace = 1 }
		h.faults.Add(hang)
		a := h.agent(f)
		a.SettleOneByOne()
		_, _ = a.Start(t.Context())
		apply(h, a, "r1", 1, want, 0, 1)
		<-time.After(time.Minute)
		h.wantNoted("when all calls are back")
		_, _ = a.Sweep(t.Context(), alive, alive)
		end(a, 1)
		<-time.After(time.Minute)
		_, _ = a.Sweep(t.Context(), alive, alive)
		h.wantNoted("at the end")
		steps = f.steps
		if f.at == 0 {
			h.wantFree()
		}
		before := a.Runs().Ended()
		f.dead = true
		h.faults.Clear()
		h.recover(before, killed)
	})
	return steps
}

func TestACrashAtAnyStepWhileACallHangsLeavesNoGPULockedAfterTheNextStart(t *testing.T) {
	crashes := 0
	for c := range gpu.NumControls {
		var want dvfsmodel.Setting
		c.SetIn(&want, c.ValueIn(slow))
		for op, delay := range hangs {
			for after := range 2 {
				hang := gpu.Fault{Op: op, Kind: gpu.FaultSlow, Delay: delay, After: after, Count: 1}
				steps := playHanging(t, want, hang, &fuse{})
				for n := 1 + after; n <= steps; n += 2 {
					playHanging(t, want, hang, &fuse{at: n, after: true})
					if crashes++; t.Failed() {
						t.Fatalf("%s, %s, step %d of %d", c, hang, n, steps)
					}
				}
			}
		}
	}
	t.Logf("%d crashes", crashes)
}

func TestADiskThatIsFullAtAnyStepLeavesNothingLockedAndNoRunAtOddClocks(t *testing.T) {
	failures := 0
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			steps := s.playUntil(t, &fuse{}, killed, false)
			for n := 1; n <= steps; n++ {
				for _, last := range []int{n, n + 3, 1 << 30} {
					s.playFull(t, n, last)
					if t.Failed() {
						t.Fatalf("disk full from step %d to %d of %d", n, last, steps)
					}
					failures++
				}
			}
		})
	}
	t.Logf("%d full disks", failures)
}

// playFull plays a scenario while the disk is full from one step to another,
// then lets the same process sweep with an empty disk.
func (s *scenario) playFull(t *testing.T, from, to int) {
	t.Helper()
	h := newHost(t, twoGPUs)
	h.options = func(o *agent.Options) { o.Grace = 1 }
	if s.prepare != nil {
		s.prepare(h, h.started())
	}
	f := &fuse{fail: from, last: to}
	a := h.agent(f)
	a.SettleOneByOne()
	_, _ = a.Start(t.Context())
	s.play(h, a)
	for i := range h.sims { // what is locked is journalled, whatever the disk did
		if h.locked(i) != free && len(h.journal.files(h.uuids[i]+".json")) == 0 {
			t.Errorf("GPU %d is locked at %v without an entry", i, h.locked(i))
		}
	}
	f.mu.Lock()
	f.fail = 0
	f.mu.Unlock()
	h.faults.Clear()
	swept, err := a.Sweep(t.Context(), ignoreMissing, ignoreMissing)
	if err != nil || !swept.Report.Clean() {
		t.Errorf("sweep with an empty disk: %v %+v", err, swept)
	}
	h.wantFree()
	for _, c := range a.Runs().Ended() {
		if err := a.Runs().Forget(c.Run.ID); err != nil {
			t.Errorf("forget: %v", err)
		}
	}
	if left := h.runs.files(".json"); len(left) > 0 && s.prepare == nil {
		t.Errorf("left of runs: %v", left)
	}
}
