package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/live"
)

// model is what runs on a host should come to, in the simplest words.
type model struct {
	host  *host
	agent *agent.Agent
	fuse  *fuse  // of the agent's process
	stop  func() // ends its watch
	open  map[uint32]*modelRun
	ended map[string]*modelRun // that aren't forgotten
	runs  int

	mu     sync.Mutex                  // guards what the watch uses, too
	gone   map[uint32]time.Time        // when jobs ended whose Epilogs never come
	closed map[string]*agent.ClosedRun // by sweeps, since they were last looked at
}

// modelRun is a run as its job knows it.
type modelRun struct {
	live.Run
	off     bool // its GPUs are at default clocks for the rest of its time
	partial bool // the agent wasn't there all the time, or nobody told it of the end in time
	shared  bool // another run was on a GPU of its
	gone    time.Time
	energy  []dvfsmodel.Joule // its GPUs' counters at its start
	outcome string            // in JSON, once it ended
}

// faster returns the faster of two values of each control; 0, the default, is the fastest. Of two power
// profiles none is.
func faster(a, b dvfsmodel.Setting) (s dvfsmodel.Setting) {
	for c := range gpu.NumControls {
		if c.ValueIn(a) != 0 && c.ValueIn(b) != 0 && (c != gpu.WorkloadProfile || a.Profile == b.Profile) {
			c.SetIn(&s, max(c.ValueIn(a), c.ValueIn(b)))
		}
	}
	return s
}

// wants returns what a run wants of its GPUs: where its clock is adapted, the one that it is at.
func (m *model) wants(t *rapid.T, r *modelRun) dvfsmodel.Setting {
	if r.off || r.Wish.OptOut || !r.gone.IsZero() {
		return free
	}
	want := r.Setting
	for _, state := range m.agent.State().Runs {
		if state.ID != r.ID || state.Adapted == nil {
			continue
		}
		want.Core = state.Wants.Core
		if state.Wants != want || state.Adapted.Slowdown > r.Adapt.SLA*(1+1e-9) ||
			!slices.ContainsFunc(r.Adapt.Levels, func(l live.AdaptLevel) bool { return l.Core == want.Core }) {
			t.Fatalf("run %s is adapted to %v: %+v", r.ID, state.Wants, state.Adapted)
		}
	}
	return want
}

// want returns what a GPU should be locked at.
func (m *model) want(t *rapid.T, i int) dvfsmodel.Setting {
	var want dvfsmodel.Setting
	first := true
	for _, r := range m.open {
		if !slices.Contains(r.GPUs, m.host.uuids[i]) {
			continue
		}
		if first {
			want, first = m.wants(t, r), false
			continue
		}
		want = faster(want, m.wants(t, r))
	}
	return want
}

func (m *model) check(t *rapid.T) {
	synctest.Wait()
	m.checkRuns(t)
	for i := range m.host.sims {
		want := m.want(t, i)
		if got := m.host.locked(i); got != want {
			t.Fatalf("GPU %d is locked at %v, want %v; open: %v", i, got, want, m.openRuns())
		}
		journalled := slices.Contains(m.host.journal.files(".json"), m.host.uuids[i]+".json")
		if journalled != (want != free) {
			t.Fatalf("GPU %d is locked at %v, journalled: %v", i, want, journalled)
		}
	}
}

func (m *model) openRuns() (text []string) {
	for _, r := range m.open {
		text = append(text, fmt.Sprintf("%+v", *r))
	}
	return text
}

// checkRuns wants the agent to have the model's runs, each at its clocks or at default ones as it should be,
// and those that ended as they were when they did.
func (m *model) checkRuns(t *rapid.T) {
	states := make(map[string]agent.RunState)
	for _, state := range m.agent.State().Runs {
		states[state.ID] = state
	}
	if len(states) != len(m.open)+len(m.ended) {
		t.Fatalf("the agent has the runs %v, want %v and %v", states, m.openRuns(), m.ended)
	}
	for _, r := range m.open {
		state, known := states[r.ID]
		if !known || state.Ended {
			t.Fatalf("run %s isn't open: %+v", r.ID, state)
		}
		must, may := m.atRisk(r)
		if off := state.HandsOff != ""; off && !r.off && !may || !off && (r.off || must) &&
			m.lowers(r) {
			t.Fatalf("run %+v, at risk: %v, %v; hands off %q", r, must, may, state.HandsOff)
		} else if off {
			r.off = true
		}
	}
	parts, sum := m.agent.HostParts(), 0.0
	for _, part := range parts {
		sum += part
	}
	if len(m.open) > 0 && math.Abs(sum-1) > 1e-9 || len(parts) != len(m.open) {
		t.Fatalf("parts of the host %v", parts)
	}
	kept := m.agent.Runs().Ended()
	if len(kept) != len(m.ended) {
		t.Fatalf("%d runs ended, want %d", len(kept), len(m.ended))
	}
	for i := range kept {
		if r := m.ended[kept[i].Run.ID]; r == nil || r.outcome != outcomeText(t, &kept[i]) {
			t.Fatalf("run %s is kept as %s, it was %+v", kept[i].Run.ID, outcomeText(t, &kept[i]), r)
		}
	}
}

// lowers reports whether a run lowers clocks that may be given up.
func (*model) lowers(r *modelRun) bool {
	return r.gone.IsZero() && !r.Wish.OptOut && r.Setting != free
}

// atRisk reports whether the guard must have put a run to default clocks by now, and whether it may have.
func (*model) atRisk(r *modelRun) (must, may bool) {
	limit, limited := r.Limit.Duration()
	if !limited || r.Wish.Fixed || r.Setting.WithoutProfile() == free {
		return false, false
	}
	const rounds = 16 * time.Second // of the guard
	end := limit - min(5*time.Minute, limit/20)
	elapsed := time.Since(r.Started)
	may = r.Upper <= 0 || r.Upper > end || elapsed > r.Upper
	return may && elapsed > rounds && (r.Upper <= 0 || r.Upper > end || elapsed > r.Upper+rounds), may
}

func outcomeText(t *rapid.T, c *agent.ClosedRun) string {
	text, err := json.Marshal(c.Outcome)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// handsOff puts runs on some GPUs to default clocks.
func (m *model) handsOff(on ...string) {
	for _, r := range m.open {
		r.off = r.off || slices.ContainsFunc(r.GPUs, func(uuid string) bool { return slices.Contains(on, uuid) })
	}
}

// start starts an agent that watches, in place of one that was killed.
func (m *model) start(t *rapid.T) {
	m.fuse = &fuse{}
	m.agent = m.host.agent(m.fuse)
	if report, err := m.agent.Start(context.Background()); err != nil || !report.Clean() {
		t.Fatalf("start: %+v, %v", report, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.agent.Watch(ctx, agent.WatchHooks{
			Slurm: m.outlook, Processes: alive,
			OnClosed: func(c agent.ClosedRun) {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.closed[c.Run.ID] = &c
			},
			OnProblem: func(err error) {
				if !strings.Contains(err.Error(), "another process gave its clocks back") {
					m.host.t.Errorf("trouble: %v", err)
				}
			},
		})
	}()
	m.stop = func() {
		cancel()
		<-done
	}
	for _, r := range m.open {
		r.off, r.partial = r.off || r.Setting != free && !r.Wish.OptOut, true
	}
}

// outlook returns what Slurm says of a run.
func (m *model) outlook(_ context.Context, r live.Run) (live.Outlook, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, gone := m.gone[r.Job]; gone {
		return live.Outlook{Life: live.LifeGone, Ended: at}, nil
	}
	return live.Outlook{Life: live.LifeAlive}, nil
}

// kill ends the agent's process.
func (m *model) kill() {
	m.stop()
	m.fuse.mu.Lock()
	defer m.fuse.mu.Unlock()
	m.fuse.dead = true
}

// begin opens a run.
func (m *model) begin(t *rapid.T) {
	m.runs++
	r := &modelRun{Run: drawRun(t, m.host, m.runs)}
	if rapid.IntRange(0, 3).Draw(t, "adapted") == 0 && r.Setting.Core != 0 {
		r.Adapt = stepped(1.25, 2000, 1800, 1700, 1600)
	}
	if rapid.IntRange(0, 2).Draw(t, "limited") == 0 {
		r.Limit = live.LimitOf(time.Duration(rapid.IntRange(2, 60).Draw(t, "limit")) * time.Minute)
		r.Upper = time.Duration(rapid.IntRange(1, 60).Draw(t, "upper")) * time.Minute
		r.Wish.Fixed = rapid.IntRange(0, 3).Draw(t, "fixed") == 0
	}
	if before := m.open[r.Job]; before != nil {
		before.partial = true // its Epilog never came
	}
	r.energy = m.counters(t, r)
	got, err := m.agent.Apply(context.Background(), r.Run)
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	if before := m.open[r.Job]; before != nil {
		m.over(t, before, nil, time.Now())
	}
	m.open[r.Job] = r
	for _, other := range m.open {
		isOthers := func(gpu string) bool { return slices.Contains(other.GPUs, gpu) }
		if other != r && slices.ContainsFunc(r.GPUs, isOthers) {
			r.shared, other.shared = true, true
		}
	}
	if lowered := m.wants(t, r).WithoutProfile() != free; got.Locked && !lowered {
		t.Fatalf("apply: %+v for %+v", got, r)
	}
}

// counters returns the energies that a run's GPUs have counted.
func (m *model) counters(t *rapid.T, r *modelRun) (all []dvfsmodel.Joule) {
	for _, uuid := range r.GPUs {
		reading, err := m.host.sims[slices.Index(m.host.uuids, uuid)].Read()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, reading.Energy)
	}
	return all
}

// over takes note of a run that ended, and checks what the agent says of it; nil: what it has on file.
func (m *model) over(t *rapid.T, r *modelRun, c *agent.ClosedRun, at time.Time) {
	delete(m.open, r.Job)
	m.ended[r.ID] = r
	if c == nil {
		kept := m.agent.Runs().Ended()
		i := slices.IndexFunc(kept, func(c agent.ClosedRun) bool { return c.Run.ID == r.ID })
		if i < 0 {
			t.Fatalf("run %s isn't among those that ended", r.ID)
		}
		c = &kept[i]
	}
	r.outcome = outcomeText(t, c)
	out := &c.Outcome
	if !out.Started.Equal(r.Started) || !out.Ended.Equal(at) {
		t.Fatalf("run %s ended at %s: %s", r.ID, at, r.outcome)
	}
	took, known := out.TimeS.Get()
	if known == r.partial || known && math.Abs(took-at.Sub(r.Started).Seconds()) > 1e-6 {
		t.Fatalf("run %s took %s: %s", r.ID, at.Sub(r.Started), r.outcome)
	}
	joules, known := out.GPUEnergyJ.Get()
	if r.partial || !r.gone.IsZero() {
		return // what the counters say of then is tested by itself
	}
	var sum dvfsmodel.Joule
	for i, now := range m.counters(t, r) {
		sum += now - r.energy[i]
	}
	right := !known && took <= 10 || known && math.Abs(joules-float64(sum)) <= 1e-3*float64(sum)+1
	if r.shared && known || !r.shared && !right {
		t.Fatalf("run %s used %v J: %s", r.ID, float64(sum), r.outcome)
	}
}

// pass lets time pass, and takes note of the runs that sweeps closed.
func (m *model) pass(t *rapid.T, d time.Duration) {
	sleep(d)
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, c := range m.closed {
		r := m.open[c.Run.Job]
		if r == nil || r.ID != id || r.gone.IsZero() {
			t.Fatalf("run %s was closed: %+v", id, c)
		}
		m.over(t, r, c, r.gone)
		delete(m.gone, r.Job)
	}
	clear(m.closed)
	for _, r := range m.open {
		if !r.gone.IsZero() && time.Since(r.gone) > 31*time.Second {
			t.Fatalf("run %s of a job that is gone is still open", r.ID)
		}
	}
}

func drawRun(t *rapid.T, h *host, n int) live.Run {
	gpus := rapid.SliceOfNDistinct(rapid.IntRange(0, len(h.sims)-1), 1, len(h.sims),
		rapid.ID[int]).Draw(t, "gpus")
	r := h.run(fmt.Sprintf("r%d", n), rapid.Uint32Range(1, 5).Draw(t, "job"), dvfsmodel.Setting{
		Core: rapid.SampledFrom([]dvfsmodel.MHz{0, 1600, 1700, 1800, 2000}).Draw(t, "core"),
		Mem:  rapid.SampledFrom([]dvfsmodel.MHz{0, 4000, 4500, 5500}).Draw(t, "mem"),
		Cap:  rapid.SampledFrom([]dvfsmodel.Watt{0, 120, 180, 249}).Draw(t, "cap"),
		Profile: rapid.SampledFrom([]dvfsmodel.PowerProfile{0, dvfsmodel.MaxQ, dvfsmodel.MaxP}).
			Draw(t, "profile"),
	}, gpus...)
	r.Wish.OptOut = rapid.IntRange(0, 9).Draw(t, "opt out") == 0
	return r
}

// inBubble has one case of a machine live in a bubble of time of its own.
func inBubble(t *testing.T, rt *rapid.T, test func(*testing.T)) {
	t.Helper()
	var failed any
	synctest.Test(t, func(t *testing.T) {
		defer func() { failed = recover() }() // rapid's way to end a case
		test(t)
	})
	switch {
	case failed == nil:
	case fmt.Sprintf("%T", failed) == "rapid.invalidData":
		rt.Skip(failed)
	default:
		panic(failed)
	}
}

// drawOpen returns one of the jobs that run.
func (m *model) drawOpen(t *rapid.T) *modelRun {
	if len(m.open) == 0 {
		t.Skip("nothing runs")
	}
	return m.open[rapid.SampledFrom(slices.Sorted(maps.Keys(m.open))).Draw(t, "job")]
}

// end has an Epilog come, of a job that may have no run.
func (m *model) end(t *rapid.T) {
	job := rapid.Uint32Range(1, 5).Draw(t, "job")
	r := m.open[job]
	closed, err := m.agent.End(context.Background(), job, "n1")
	if (err == nil) != (r != nil) {
		t.Fatalf("end of job %d, open: %v: %v", job, r, err)
	}
	if r != nil {
		m.mu.Lock()
		delete(m.gone, job)
		m.mu.Unlock()
		r.gone = time.Time{}
		m.over(t, r, &closed, time.Now())
	}
}

// again has a Prolog come again of a run that is open: nothing changes.
func (m *model) again(t *rapid.T) {
	r := m.drawOpen(t)
	if _, err := m.agent.Apply(context.Background(), r.Run); err != nil {
		t.Fatalf("apply again: %v", err)
	}
}

// forget has a run's outcome be safe elsewhere.
func (m *model) forget(t *rapid.T) {
	if len(m.ended) == 0 {
		t.Skip("nothing ended")
	}
	id := rapid.SampledFrom(slices.Sorted(maps.Keys(m.ended))).Draw(t, "run")
	if err := m.agent.Runs().Forget(id); err != nil {
		t.Fatal(err)
	}
	delete(m.ended, id)
}

// restoreBeside is epd restore beside the agent, which finds word of it.
func (m *model) restoreBeside(t *rapid.T) {
	var locked []string
	for i, uuid := range m.host.uuids {
		if m.host.locked(i) != free {
			locked = append(locked, uuid)
		}
	}
	if report := m.host.restoreBeside(); len(report.GPUs) != len(locked) || !report.Clean() {
		t.Fatalf("epd restore: %+v, locked were %v", report, locked)
	}
	for i := range m.host.sims {
		if m.host.locked(i) != free {
			t.Fatalf("GPU %d is locked after epd restore", i)
		}
	}
	m.handsOff(locked...)
	m.pass(t, 31*time.Second)
}

func TestOverlappingRunsLockTheFastestOfWhatTheyWant(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		inBubble(t, rt, func(t *testing.T) {
			t.Helper()
			m := newModel(t)
			m.start(rt)
			defer func() { m.stop() }()
			rt.Repeat(m.commands())
		})
	})
}

// newModel returns a host with three GPUs at work.
func newModel(t *testing.T) *model {
	t.Helper()
	m := &model{
		host: newHost(t, "sim:3,model=GTX1080Ti,profiles"), open: map[uint32]*modelRun{},
		ended: map[string]*modelRun{}, gone: map[uint32]time.Time{}, closed: map[string]*agent.ClosedRun{},
	}
	m.host.claims = &claims{owners: map[string]*fuse{}}
	m.host.options = func(o *agent.Options) { o.Grace = 1 }
	m.work()
	return m
}

// work has programs run on the GPUs.
func (m *model) work() {
	for _, s := range m.host.sims {
		work := anyWork
		work.Model.D = 1e9
		if err := s.Run(work); err != nil {
			m.host.t.Fatal(err)
		}
	}
}

func (m *model) commands() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"": m.check, "apply": m.begin, "apply again": m.again, "end": m.end, "forget": m.forget,
		"hands off": func(t *rapid.T) {
			r := m.drawOpen(t)
			if err := m.agent.RevertToDefault(context.Background(), r.ID, "test"); err != nil {
				t.Fatalf("hands off: %v", err)
			}
			r.off = true
		},
		"restart": func(t *rapid.T) {
			m.kill()
			m.start(t)
		},
		"stop": func(t *rapid.T) {
			m.stop()
			if report, err := m.agent.Stop(context.Background()); err != nil || !report.Clean() {
				t.Fatalf("stop: %+v, %v", report, err)
			}
			m.host.wantFree()
			m.kill()
			m.start(t)
		},
		"reboot": func(t *rapid.T) {
			m.kill()
			m.host.reboot(rapid.Bool().Draw(t, "the folder survives"))
			var err error
			if m.host.sims, err = m.host.library.Sims(); err != nil {
				t.Fatal(err)
			}
			m.work()
			m.start(t)
		},
		"restore": func(t *rapid.T) {
			some := rapid.SliceOfNDistinct(rapid.SampledFrom(m.host.uuids), 0, 2, rapid.ID[string]).Draw(t, "GPUs")
			if report, err := m.agent.Restore(context.Background(), "test", some...); err != nil || !report.Clean() {
				t.Fatalf("restore: %v %v", report, err)
			}
			if len(some) == 0 {
				some = m.host.uuids
			}
			m.handsOff(some...)
		},
		"epd restore": m.restoreBeside,
		"sweep": func(t *rapid.T) {
			if _, err := m.agent.Sweep(context.Background(), alive, ignoreMissing); err != nil {
				t.Fatalf("sweep: %v", err)
			}
		},
		"gone": func(t *rapid.T) {
			r := m.drawOpen(t)
			if !r.gone.IsZero() {
				t.Skip("it is gone already")
			}
			r.gone = time.Now()
			m.mu.Lock()
			m.gone[r.Job] = r.gone
			m.mu.Unlock()
			m.pass(t, 31*time.Second)
		},
		"seconds": func(t *rapid.T) {
			m.pass(t, time.Duration(rapid.IntRange(1, 40).Draw(t, "seconds"))*time.Second)
		},
		"minutes": func(t *rapid.T) {
			m.pass(t, time.Duration(rapid.IntRange(1, 5).Draw(t, "minutes"))*time.Minute)
		},
	}
}

// hardWorld is a host on which drivers, disks and processes fail.
type hardWorld struct {
	host  *host
	agent *agent.Agent
	fuse  *fuse
	runs  int
	lost  bool // a GPU may have fallen off the bus, until the next boot
}

// kill ends the agent's process, which is there until its calls of the driver have come back.
func (w *hardWorld) kill() {
	w.fuse.mu.Lock()
	w.fuse.dead = true
	w.fuse.mu.Unlock()
	const longest = 10 * time.Second
	sleep(longest)
}

// start starts an agent's process, in place of one that was killed.
func (w *hardWorld) start() {
	w.kill()
	w.fuse = &fuse{}
	w.agent = w.host.agent(w.fuse)
	_, _ = w.agent.Start(context.Background())
}

func (w *hardWorld) check(t *rapid.T) {
	synctest.Wait()
	for i := range w.host.sims {
		if w.host.locked(i) != free && len(w.host.journal.files(w.host.uuids[i]+".json")) == 0 {
			t.Fatalf("GPU %d is locked at %v without an entry", i, w.host.locked(i))
		}
	}
}

func (w *hardWorld) fault(t *rapid.T) {
	fault := gpu.Fault{
		GPU: rapid.IntRange(-1, 1).Draw(t, "gpu"),
		Op: rapid.SampledFrom([]gpu.Op{
			gpu.OpOpen, gpu.OpClocks, gpu.OpSet, gpu.OpRelease, gpu.OpRead, gpu.OpSharing, gpu.OpPowerLimit,
			gpu.OpProfiles, gpu.OpProcesses, gpu.OpAny,
		}).Draw(t, "op"),
		Kind: rapid.SampledFrom([]gpu.FaultKind{
			gpu.FaultPermission, gpu.FaultUnsupported, gpu.FaultTransient, gpu.FaultReload, gpu.FaultReset,
			gpu.FaultStuck, gpu.FaultSlow, gpu.FaultLost,
		}).Draw(t, "kind"),
		After: rapid.IntRange(0, 3).Draw(t, "after"),
		Count: rapid.IntRange(1, 3).Draw(t, "count"),
	}
	if fault.Kind == gpu.FaultSlow {
		fault.Delay = rapid.SampledFrom([]time.Duration{
			100 * time.Millisecond, 700 * time.Millisecond, 7 * time.Second,
		}).Draw(t, "delay")
	}
	w.lost = w.lost || fault.Kind == gpu.FaultLost
	w.host.faults.Add(fault)
}

// fill has some of the next steps on disks fail.
func (w *hardWorld) fill(t *rapid.T) {
	w.fuse.mu.Lock()
	defer w.fuse.mu.Unlock()
	w.fuse.fail = w.fuse.steps + rapid.IntRange(1, 20).Draw(t, "after")
	w.fuse.last = w.fuse.fail + rapid.IntRange(0, 20).Draw(t, "for")
	w.fuse.reads = rapid.Bool().Draw(t, "reading goes on")
}

// dies has the process end at one of its next steps.
func (w *hardWorld) dies(t *rapid.T) {
	w.fuse.mu.Lock()
	defer w.fuse.mu.Unlock()
	w.fuse.at = w.fuse.steps + rapid.IntRange(1, 40).Draw(t, "in")
	w.fuse.after = rapid.Bool().Draw(t, "after it")
}

// watch has the agent watch for some time.
func (w *hardWorld) watch(t *rapid.T) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.agent.Watch(ctx, agent.WatchHooks{
			Slurm: alive, Processes: alive, OnClosed: func(agent.ClosedRun) {}, OnProblem: func(error) {},
		})
	}()
	sleep(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
	cancel()
	<-done
}

func (w *hardWorld) commands() map[string]func(*rapid.T) {
	ctx := context.Background()
	return map[string]func(*rapid.T){
		"": w.check, "fault": w.fault, "fill": w.fill, "dies": w.dies, "watch": w.watch,
		"apply": func(t *rapid.T) {
			w.runs++
			got, err := w.agent.Apply(ctx, drawRun(t, w.host, w.runs))
			if err == nil && !got.Locked && got.HandsOff == "" {
				t.Fatalf("apply: %+v", got)
			}
		},
		"end":     func(t *rapid.T) { end(w.agent, rapid.Uint32Range(1, 5).Draw(t, "job")) },
		"sample":  func(*rapid.T) { _ = w.agent.Sample(ctx) },
		"sweep":   func(*rapid.T) { _, _ = w.agent.Sweep(ctx, alive, alive) },
		"gone":    func(*rapid.T) { _, _ = w.agent.Sweep(ctx, ignoreMissing, ignoreMissing) },
		"restore": func(*rapid.T) { _, _ = w.agent.Restore(ctx, "test") },
		"forget": func(*rapid.T) {
			for _, c := range w.agent.Runs().Ended() {
				_ = w.agent.Runs().Forget(c.Run.ID)
			}
		},
		"epd restore": func(*rapid.T) {
			w.fuse.mu.Lock()
			dead := w.fuse.dead
			w.fuse.mu.Unlock()
			if dead {
				w.kill()
			}
			f := &fuse{}
			_, _ = agent.RestoreJournal(ctx, agent.Options{
				Journal: fused{w.host.journal, f}, Library: fusedLibrary{w.host.library, f, nil},
				Claims: process{w.host.claims, f}, Boot: w.host.boot, Driver: "driver-1",
			})
		},
		"restart": func(*rapid.T) { w.start() },
		"reboot": func(t *rapid.T) {
			w.kill()
			w.reboot(rapid.Bool().Draw(t, "the folder survives"))
			w.start()
		},
	}
}

func (w *hardWorld) reboot(folder bool) {
	w.host.journal.losePower(folder)
	w.host.runs.losePower(folder)
	w.host.boot += "+1"
	_ = w.host.library.Reboot()
}

// Whatever goes wrong in between: what is locked is journalled, and once the
// faults are gone and all has ended, nothing is left.
func TestFaultsAtRandomLeaveNothingLockedOnceTheyAreGone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		inBubble(t, rt, func(t *testing.T) {
			t.Helper()
			w := &hardWorld{host: newHost(t, twoGPUs), fuse: &fuse{}}
			w.host.options = func(o *agent.Options) { o.Grace = 1 }
			w.host.claims = &claims{owners: map[string]*fuse{}}
			w.start()
			rt.Repeat(w.commands())
			w.host.faults.Clear()
			w.fuse.mu.Lock()
			dead := w.fuse.dead || w.fuse.at > 0
			w.fuse.fail = 0
			w.fuse.mu.Unlock()
			if w.lost {
				w.kill()
				w.reboot(false)
			}
			if dead || w.lost {
				w.start()
			}
			sleep(time.Minute)                                              // what hung has come back
			_, _ = w.agent.Sweep(t.Context(), ignoreMissing, ignoreMissing) // which may find word of epd restore
			if _, err := w.agent.Sweep(t.Context(), ignoreMissing, ignoreMissing); err != nil {
				rt.Fatalf("last sweep: %v", err)
			}
			w.check(rt)
			for i := range w.host.sims {
				if w.host.locked(i) != free {
					rt.Fatalf("GPU %d is left locked", i)
				}
			}
			if left := append(w.host.journal.files(".json"), w.host.journal.files(".returned")...); len(left) > 0 {
				rt.Fatalf("left in the journal: %v", left)
			}
		})
	})
}
