package agent_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

var anyWork = gpu.Work{
	PID: 7, Model: dvfsmodel.Params{P0: 50, Gamma: 20, C: 100, T0: 0, D: 1e6, Delta: 0.5}, Mem: 1 << 30,
}

func sleep(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble
	synctest.Wait()
}

// watched runs a test in a bubble, with an agent that watches as long as the
// test lasts.
func watched(t *testing.T, w agent.WatchHooks, test func(h *host, a *agent.Agent)) {
	t.Helper()
	watchedHost(t, w, func(t *testing.T) *host { t.Helper(); return newHost(t, twoGPUs) }, test)
}

// watchedHost is watched on a host of its own.
func watchedHost(
	t *testing.T, w agent.WatchHooks, newHost func(*testing.T) *host, test func(h *host, a *agent.Agent),
) {
	t.Helper()
	if w.Slurm == nil {
		w.Slurm = alive
	}
	if w.Processes == nil {
		w.Processes = alive
	}
	if w.OnClosed == nil {
		w.OnClosed = func(agent.ClosedRun) {}
	}
	if w.OnProblem == nil {
		w.OnProblem = func(error) {}
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		a := h.started()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { a.Watch(ctx, w); close(done) }()
		test(h, a)
		cancel()
		<-done // a goroutine that is left would end the bubble with a panic
	})
}

func TestARunIsSampledOnceASecondAndTenTimesWhileItLearns(t *testing.T) {
	for learning, want := range map[bool]int{false: 60, true: 600} {
		watched(t, agent.WatchHooks{}, func(h *host, a *agent.Agent) {
			t := h.t
			if err := h.sims[0].Run(anyWork); err != nil {
				t.Fatal(err)
			}
			r := h.run("r1", 1, slow, 0)
			r.Learning = learning
			if _, err := a.Apply(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			sleep(time.Minute)
			closed, err := a.End(t.Context(), 1, "n1")
			if err != nil {
				t.Fatal(err)
			}
			got, seen := closed.Outcome, a.Figures("r1")[0]
			if math.Abs(float64(seen.Samples-want)) > 0.03*float64(want)+11 {
				t.Errorf("learning %v: %d samples in a minute, want about %d", learning, seen.Samples, want)
			}
			if got.Utilisation != live.Known(1) || got.GPUSource != record.Counter ||
				math.Abs(float64(seen.Counter-seen.Integrated)) > 0.01*float64(seen.Counter) {
				t.Errorf("outcome: %+v, %+v", got, seen)
			}
			if len(got.Clocks) != 1 || got.Clocks[0].Core != 1600 || got.Clocks[0].Mem != 4000 ||
				got.PeakMemoryBytes != live.Known(1<<30) {
				t.Errorf("outcome: %+v", got)
			}
		})
	}
}

func TestTheEnergyOfAShortRunIsMeasuredFromItsStartToItsEnd(t *testing.T) {
	watched(t, agent.WatchHooks{}, func(h *host, a *agent.Agent) {
		t := h.t
		if err := h.sims[0].Run(anyWork); err != nil {
			t.Fatal(err)
		}
		sleep(400 * time.Millisecond) // between two looks
		apply(h, a, "r1", 1, quick, 0)
		sleep(300 * time.Millisecond)
		closed, err := a.End(t.Context(), 1, "n1")
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Figures("r1")[0]; got.Samples != 2 || math.Abs(got.Covered-0.3) > 0.01 ||
			closed.Outcome.GPUSource != record.Counter {
			t.Errorf("%+v", got)
		}
	})
}

func TestARunOnAGPUThatWasJustLookedAtForAnotherIsMeasuredFromItsStart(t *testing.T) {
	watched(t, agent.WatchHooks{}, func(h *host, a *agent.Agent) {
		t := h.t
		if err := h.sims[0].Run(anyWork); err != nil {
			t.Fatal(err)
		}
		for i, id := range []string{"r1", "r2"} {
			job := uint32(i + 1)
			apply(h, a, id, job, quick, 0)
			sleep(500 * time.Millisecond)
			if _, err := a.End(t.Context(), job, "n1"); err != nil {
				t.Fatal(err)
			}
			if got := a.Figures(id)[0]; got.Samples != 2 || math.Abs(got.Covered-0.5) > 0.01 {
				t.Errorf("%s: %+v", id, got)
			}
		}
	})
}

func TestThrottledAndIdleClocksAreNobodyElses(t *testing.T) {
	for name, prepare := range map[string]func(g *gpu.Sim) error{
		"power cap": func(g *gpu.Sim) error { return errors.Join(g.Run(anyWork), g.LimitPower(1)) },
		"idle":      func(*gpu.Sim) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			watched(t, agent.WatchHooks{}, func(h *host, a *agent.Agent) {
				t := h.t
				if err := prepare(h.sims[0]); err != nil {
					t.Fatal(err)
				}
				apply(h, a, "r1", 1, coreLow, 0)
				sleep(time.Minute)
				h.wantLocked(coreLow)
				end(a, 1)
			})
		})
	}
}

// What a run waits at is no clock of its work.
func TestTheClockAtWorkIsThatOfReadingsAtWork(t *testing.T) {
	capped := func(t *testing.T) *host {
		t.Helper()
		h := newHost(t, "sim:1")
		if err := errors.Join(h.sims[0].LimitPower(110), h.sims[0].Run(anyWork)); err != nil {
			t.Fatal(err)
		}
		return h
	}
	watchedHost(t, agent.WatchHooks{}, capped, func(h *host, a *agent.Agent) {
		apply(h, a, "r1", 1, dvfsmodel.Setting{Core: 1237}, 0)
		sleep(time.Minute)
		r, err := h.sims[0].Read()
		if err != nil || r.Core >= 1237 || r.Throttle&gpu.ThrottlePowerCap == 0 {
			h.t.Fatalf("%+v, %v: want one that is capped", r, err)
		}
		if err := h.sims[0].Stop(anyWork.PID); err != nil {
			h.t.Fatal(err)
		}
		sleep(time.Minute)
		closed, err := a.End(h.t.Context(), 1, "n1")
		if err != nil {
			h.t.Fatal(err)
		}
		want := record.WorkClock{CoreMHz: live.Known(float64(r.Core)), SpreadMHz: live.Known(0)}
		if out := closed.Outcome; out.WorkClock != want || len(out.Clocks) != 2 {
			h.t.Errorf("clock at work %+v, want %+v; clocks %+v", out.WorkClock, want, out.Clocks)
		}
	})
}

func TestAReloadOrALossWhileARunLastsPutsItToDefaultClocks(t *testing.T) {
	for _, kind := range []gpu.FaultKind{gpu.FaultReload, gpu.FaultLost} {
		watched(t, agent.WatchHooks{}, func(h *host, a *agent.Agent) {
			t := h.t
			apply(h, a, "r1", 1, quick, 0, 1)
			if err := h.sims[0].InjectFault(kind); err != nil {
				t.Fatal(err)
			}
			sleep(5 * time.Second)
			if got := h.locked(1); got != free {
				t.Errorf("%s: the run's other GPU is locked at %v", kind, got)
			}
			if left := len(h.journal.files(".json")); left != map[gpu.FaultKind]int{gpu.FaultLost: 1}[kind] {
				t.Errorf("%s: %d entries", kind, left)
			}
			end(a, 1)
		})
	}
}

func TestTheGuardRestoresDefaultClocksWhenTheLimitIsAtRisk(t *testing.T) {
	var mu sync.Mutex
	limit, down := live.LimitOf(2*time.Hour), error(nil)
	say := func(l live.Limit, err error) {
		mu.Lock()
		defer mu.Unlock()
		limit, down = l, err
	}
	w := agent.WatchHooks{Slurm: func(context.Context, live.Run) (live.Outlook, error) {
		mu.Lock()
		defer mu.Unlock()
		return live.Outlook{Limit: limit}, down
	}}
	watched(t, w, func(h *host, a *agent.Agent) {
		t := h.t
		for i, id := range []string{"r1", "r2"} {
			r := h.run(id, uint32(i+1), quick, i)
			r.Limit, r.Upper, r.Wish.Fixed = live.LimitOf(2*time.Hour), time.Hour, i == 1
			if got, err := a.Apply(t.Context(), r); err != nil || !got.Locked {
				t.Fatalf("%+v, %v", got, err)
			}
		}
		say(live.Limit{}, errors.New("slurmctld is away"))
		sleep(10 * time.Minute)
		h.wantLocked(quick, quick)
		say(live.Unlimited(), nil) // an administrator lifted it
		sleep(time.Minute)
		say(live.Limit{}, nil) // nothing new is known
		sleep(60 * time.Minute)
		h.wantLocked(quick, quick)
		say(live.LimitOf(61*time.Minute), nil) // the user lowered it
		sleep(time.Minute)
		h.wantLocked(free, quick) // the other's clocks are its user's own
	})
}

func TestClocksAreGivenBackWhenTheJobIsKnownToBeOver(t *testing.T) {
	var over atomic.Bool
	w := agent.WatchHooks{Slurm: func(context.Context, live.Run) (live.Outlook, error) {
		now := live.Outlook{Life: live.LifeAlive}
		if over.Load() {
			now.Ended = time.Now()
		}
		return now, nil
	}}
	for _, fixed := range []bool{false, true} {
		over.Store(false)
		watched(t, w, func(h *host, a *agent.Agent) {
			t := h.t
			if err := h.sims[0].Run(anyWork); err != nil {
				t.Fatal(err)
			}
			r := h.run("r1", 1, quick, 0)
			r.Upper, r.Limit, r.Wish.Fixed = time.Minute, live.LimitOf(time.Hour), fixed
			if got, err := a.Apply(t.Context(), r); err != nil || !got.Locked {
				t.Fatalf("%+v, %v", got, err)
			}
			sleep(50 * time.Second)
			h.wantLocked(quick)
			ended := time.Now()
			over.Store(true) // and another's Epilog runs
			sleep(20 * time.Second)
			h.wantFree()
			sleep(20 * time.Second) // longer than its bound
			if _, err := a.End(t.Context(), 1, "n1"); err != nil {
				t.Fatal(err)
			}
			closed, err := a.Runs().EndedAt("r1", ended)
			if err != nil || closed.HandsOff != "" || !closed.Outcome.Ended.Equal(ended) ||
				a.State().Guarded != 0 {
				t.Errorf("%q, %+v, %v: want a run that had its clocks to its end", closed.HandsOff,
					closed.Outcome, err)
			}
			const ceiling = 1600 // of Max-Q
			if clocks := closed.Outcome.Clocks; len(clocks) != 1 || clocks[0].Core != ceiling {
				t.Errorf("clocks %+v", clocks)
			}
		})
	}
}

func TestTheGuardLeavesARunAloneThatEndsWhileSlurmIsAsked(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	apply(h, a, "r1", 1, quick, 0)
	err := a.Guard(t.Context(), func(ctx context.Context, _ live.Run) (live.Outlook, error) {
		if _, err := a.End(ctx, 1, "n1"); err != nil {
			t.Error(err)
		}
		return live.Outlook{Limit: live.LimitOf(time.Minute)}, nil // at risk, were it open
	})
	state := a.State()
	if err != nil || state.Guarded != 0 || !state.Runs[0].Ended || state.Runs[0].HandsOff != "" {
		t.Errorf("%v, %d guarded, %+v", err, state.Guarded, state.Runs[0])
	}
}

func TestTheGuardsRule(t *testing.T) {
	const h = time.Hour
	for name, c := range map[string]struct {
		limit          live.Limit
		upper, elapsed time.Duration
		want           bool
	}{
		"no limit":              {live.Limit{}, 0, 100 * h, false},
		"without end":           {live.Unlimited(), 0, 100 * h, false},
		"far from it":           {live.LimitOf(10 * h), 5 * h, h, false},
		"within the margin":     {live.LimitOf(10 * h), 10*h - 4*time.Minute, h, true},
		"beyond it":             {live.LimitOf(10 * h), 11 * h, h, true},
		"longer than its bound": {live.LimitOf(10 * h), 5 * h, 5*h + 1, true},
		"no bound":              {live.LimitOf(10 * h), 0, 0, true},
		"a short limit":         {live.LimitOf(10 * time.Minute), 9 * time.Minute, 0, false},
	} {
		reason := agent.AtRisk(&live.Run{Limit: c.limit, Upper: c.upper}, c.elapsed, 5*time.Minute)
		if (reason != "") != c.want {
			t.Errorf("%s: %q", name, reason)
		}
	}
}

func TestASweepClosesOnlyRunsThatBothSlurmAndTheMachineSayAreGone(t *testing.T) {
	unknown := func(context.Context, live.Run) (live.Outlook, error) { return live.Outlook{}, nil }
	broken := func(context.Context, live.Run) (live.Outlook, error) {
		return live.Outlook{Life: live.LifeGone}, errors.New("slurmctld is away")
	}
	for name, c := range map[string]struct {
		slurm, processes agent.JobProbe
		closed           int
	}{
		"both":              {ignoreMissing, ignoreMissing, 1},
		"slurm only":        {ignoreMissing, alive, 0},
		"the machine only":  {alive, ignoreMissing, 0},
		"slurm is away":     {broken, ignoreMissing, 0},
		"slurm is unsure":   {unknown, ignoreMissing, 0},
		"machine is unsure": {ignoreMissing, unknown, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var closed []agent.ClosedRun
			w := agent.WatchHooks{
				Slurm: c.slurm, Processes: c.processes,
				OnClosed: func(c agent.ClosedRun) { closed = append(closed, c) },
			}
			watched(t, w, func(h *host, a *agent.Agent) {
				t := h.t
				apply(h, a, "r1", 1, quick, 0)
				sleep(45 * time.Second)
				h.wantLocked(quick) // too young to be gone
				sleep(5 * time.Minute)
				if len(closed) != c.closed {
					t.Errorf("closed %d runs, want %d", len(closed), c.closed)
				}
				if c.closed == 1 {
					h.wantFree()
				} else {
					h.wantLocked(quick)
				}
			})
		})
	}
}

func TestAnEpilogWithoutAnOpenRunSaysSo(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	if _, err := a.End(t.Context(), 4711, "n1"); !errors.Is(err, agent.ErrNoRun) {
		t.Errorf("%v", err)
	}
	if err := a.Runs().Forget("r1"); !errors.Is(err, agent.ErrNoRun) {
		t.Errorf("%v", err)
	}
}

func TestAnOutcomeOutlivesTheProcessUntilItIsForgotten(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	apply(h, a, "r1", 1, quick, 0)
	end(a, 1)
	a = h.started()
	ended := a.Runs().Ended()
	if len(ended) != 1 || ended[0].Run.ID != "r1" || ended[0].Reason != "its job ended" ||
		len(ended[0].Outcome.GPUs) != 1 {
		t.Fatalf("%+v", ended)
	}
	if err := a.Runs().Forget("r1"); err != nil {
		t.Fatal(err)
	}
	if left := h.started().Runs().Ended(); len(left) != 0 {
		t.Errorf("%+v", left)
	}
}

func TestARunsFileThatCantBeReadIsMovedAsideAndNamed(t *testing.T) {
	h := newHost(t, twoGPUs)
	h.runs.put("r1.json", `{"schema":3,"run":{"run":"r2","job":1}}`)
	h.runs.put("r3.json", `{`)
	h.runs.put("notes", ``)
	a := h.agent(nil)
	report, err := a.Start(t.Context())
	if err != nil || len(report.Notes) != 3 || len(a.State().Runs) != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	if len(h.runs.files(".aside")) != 3 {
		t.Errorf("%v", h.runs.files(""))
	}
}

func TestACounterThatFailsWhileARunLastsCostsNoEnergy(t *testing.T) {
	for kind, want := range map[gpu.FaultKind]gpu.EnergySource{
		gpu.FaultReset: gpu.FromBoth, gpu.FaultReload: gpu.FromBoth, gpu.FaultStuck: gpu.FromPower,
	} {
		watched(t, agent.WatchHooks{}, func(h *host, a *agent.Agent) {
			t := h.t
			power := func() float64 {
				sims, err := h.library.Sims() // new handles
				if err != nil {
					t.Fatal(err)
				}
				reading, err := sims[0].Read()
				if err != nil {
					t.Fatal(err)
				}
				return float64(reading.Power)
			}
			if err := h.sims[0].Run(anyWork); err != nil {
				t.Fatal(err)
			}
			apply(h, a, "r1", 1, quick, 0)
			sleep(time.Minute)
			before := power()
			if err := h.sims[0].InjectFault(kind); err != nil {
				t.Fatal(err)
			}
			sleep(2 * time.Minute)
			energy := 60*before + 120*power() // a reload ends the work
			closed, err := a.End(t.Context(), 1, "n1")
			if err != nil {
				t.Fatal(err)
			}
			got, seen := closed.Outcome.GPUEnergyJ, a.Figures("r1")[0]
			if math.Abs(got.Or(-1)-energy) > 2*before || seen.Source != want || seen.Uncovered != 0 {
				t.Errorf("%s: %s J from %s, want %v from %s", kind, got, seen.Source, energy, want)
			}
		})
	}
}

func TestWhatEndedWhileThereWasNoAgentIsClosedAtOnceAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, twoGPUs)
		a := h.started()
		if _, err := a.Apply(t.Context(), h.run("r1", 1, slow, 0)); err != nil {
			t.Fatal(err)
		}
		sleep(2 * time.Minute) // beyond the grace
		a = h.started()
		var closed atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			a.Watch(ctx, agent.WatchHooks{
				Slurm: ignoreMissing, Processes: ignoreMissing,
				OnClosed:  func(agent.ClosedRun) { closed.Add(1) },
				OnProblem: func(err error) { t.Error(err) },
			})
			close(done)
		}()
		sleep(time.Second)
		cancel()
		<-done
		if closed.Load() != 1 {
			t.Errorf("%d runs closed within a second, want 1", closed.Load())
		}
	})
}

// A run that began while the disk was full is known after a restart, if there was room meanwhile: at a
// sweep, or when the agent stops.
func TestARunThatCouldNotBeWrittenDownIsWrittenOnceThereIsRoom(t *testing.T) {
	for name, later := range map[string]func(*agent.Agent) error{
		"a sweep": func(a *agent.Agent) error {
			_, err := a.Sweep(t.Context(), alive, alive)
			return err
		},
		"the stop": func(a *agent.Agent) error {
			_, err := a.Stop(t.Context())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, twoGPUs)
			f := &fuse{}
			a := h.agent(f)
			if _, err := a.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.fail, f.last = 1, 1<<30
			if got, err := a.Apply(t.Context(), h.run("r1", 1, slow, 0)); !errors.Is(err, errFull) || got.Locked {
				t.Errorf("%+v, %v", got, err)
			}
			if err := later(a); err == nil {
				t.Error("written upon a full disk")
			}
			f.fail = 0
			if err := later(a); err != nil {
				t.Error(err)
			}
			again := h.started()
			if runs := again.State().Runs; len(runs) != 1 || runs[0].ID != "r1" || !runs[0].Reread {
				t.Errorf("%+v", runs)
			}
			h.wantFree()
			if closed, err := again.End(t.Context(), 1, "n1"); err != nil || closed.Run.ID != "r1" {
				t.Errorf("%+v, %v", closed, err)
			}
		})
	}
}
