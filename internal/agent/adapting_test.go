package agent_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/live"
)

// stepped returns an adaptation over core clocks, the first of which is the ceiling,
// of work that follows the clock altogether.
func stepped(sla float64, clocks ...dvfsmodel.MHz) *live.Adaptation {
	a := &live.Adaptation{SLA: sla, TauS: 0.1, Writes: 30}
	for i, core := range clocks {
		a.Levels = append(a.Levels, live.AdaptLevel{
			Core: core, Stretch: float64(clocks[0] / core), Cost: 1 - 0.1*float64(i),
		})
	}
	return a
}

// bursts is work of ten minutes, 8 s of it by turns with 12 s of waiting.
func bursts() gpu.Work {
	return gpu.Work{
		PID: 7, Mem: 1 << 30, Phases: []gpu.Phase{{Busy: 8, Wait: 12}},
		Model: dvfsmodel.Params{P0: 40, Gamma: 10, C: 150, D: 600, Delta: 1},
	}
}

// watching has an agent watch, to which all runs are alive, until stop, which waits
// for it.
func watching(t *testing.T, a *agent.Agent, trouble func(error)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		a.Watch(ctx, agent.WatchHooks{
			Slurm: alive, Processes: alive, OnClosed: func(agent.ClosedRun) {}, OnProblem: trouble,
		})
		close(done)
	}()
	return func() {
		cancel()
		<-done
	}
}

// adapting runs a test in a bubble, in which an adapted run with bursts of work is
// on the GPUs, and an agent watches.
func adapting(t *testing.T, trouble func(error), test func(h *host, a *agent.Agent, r live.Run)) {
	t.Helper()
	if trouble == nil {
		trouble = func(err error) { t.Error(err) }
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, "sim:2,model=V100-2022,bursty=20/0.4")
		a := h.started()
		stop := watching(t, a, trouble)
		r := h.run("r1", 1, dvfsmodel.Setting{Core: 1237}, 0)
		r.Adapt = stepped(1.2, 1380, 1237, 1102, 945, 802, 705, 600)
		if err := h.sims[0].Run(bursts()); err != nil {
			t.Fatal(err)
		}
		got, err := a.Apply(t.Context(), r)
		if err != nil || !got.Locked {
			t.Fatalf("%+v, %v", got, err)
		}
		test(h, a, r)
		stop()
	})
}

func TestARunIsSteppedBetweenItsClocksAndKeepsItsSLA(t *testing.T) {
	adapting(t, nil, func(h *host, a *agent.Agent, _ live.Run) {
		t := h.t
		entry := h.entry(0)
		seen := make(map[dvfsmodel.MHz]int)
		var ended []gpu.FinishedWork
		for len(ended) == 0 {
			sleep(time.Second)
			seen[h.locked(0).Core]++
			var err error
			if ended, err = h.sims[0].Ended(); err != nil {
				t.Fatal(err)
			}
			if s := a.State().Runs[0]; s.Adapted == nil || s.Adapted.Slowdown > 1.2 ||
				s.Wants != h.locked(0) {
				t.Fatalf("%+v with %+v", s, s.Adapted)
			}
		}
		state := a.State()
		slowdown := ended[0].Took / ended[0].Default
		t.Logf("%.3f times as long, %d writes in %.0f s, seconds at clocks %v", slowdown,
			state.GPUs[0].Writes+state.GPUs[1].Writes, ended[0].Took, seen)
		if slowdown > 1.2 || slowdown < 1.1 || slowdown > state.Runs[0].Adapted.Slowdown {
			t.Errorf("%v times as long as at default clocks, at most %v by the agent", slowdown,
				state.Runs[0].Adapted.Slowdown)
		}
		if seen[600] < 100 || state.Steps < 50 || seen[0] > 0 {
			t.Errorf("seconds at clocks: %v, %d steps", seen, state.Steps)
		}
		if got := h.entry(0); got != entry {
			t.Errorf("the entry was %s, is %s", entry, got)
		}
		closed, err := a.End(t.Context(), 1, "n1")
		if err != nil || closed.Outcome.Setting != (dvfsmodel.Setting{Core: 600}) ||
			closed.Outcome.Slowdown.Or(math.Inf(1)) > 1.2 || closed.Outcome.Slowdown.Or(0) < slowdown {
			t.Errorf("end: %+v, %v", closed.Outcome, err)
		}
		wantStays(t, &closed, seen)
		h.wantFree()
	})
}

// wantStays compares a run's stays with the clocks that were seen each second, and
// with what its GPUs used.
func wantStays(t *testing.T, closed *agent.ClosedRun, seen map[dvfsmodel.MHz]int) {
	t.Helper()
	var time, work float64
	var joules dvfsmodel.Joule
	for _, s := range closed.Outcome.Stays {
		if off := s.Seconds - float64(seen[s.Core]); math.Abs(off) > 2+float64(s.Begun) || s.Begun == 0 ||
			s.Work+s.Rest > s.Seconds+1e-6 || s.RestEnergy > s.Energy {
			t.Errorf("%+v, seen for %d s", s, seen[s.Core])
		}
		time, work, joules = time+s.Seconds, work+s.Work, joules+s.Energy
	}
	used := dvfsmodel.Joule(closed.Outcome.GPUEnergyJ.Or(-1))
	took := closed.Outcome.Ended.Sub(closed.Outcome.Started).Seconds()
	if took-time > 1.2 || time > took+1e-6 || math.Abs(float64(joules/used)-1) > 0.002 || work < 600 ||
		work > 0.6*time {
		t.Errorf("%v s of %v, %v at work, %v J of %v", time, took, work, joules, used)
	}
}

// entry returns the journal's file of a GPU.
func (h *host) entry(i int) string {
	h.journal.mu.Lock()
	defer h.journal.mu.Unlock()
	if n := h.journal.names[h.uuids[i]+".json"]; n != nil {
		return string(n.data)
	}
	return ""
}

// reaches waits until the first GPU is locked at a clock.
func (h *host) reaches(core dvfsmodel.MHz) {
	h.t.Helper()
	for range 1200 {
		if h.locked(0).Core == core {
			return
		}
		sleep(50 * time.Millisecond)
	}
	h.t.Fatalf("the GPU is at %v, and never at %v MHz", h.locked(0), float64(core))
}

func TestADriverThatFailsAtAStepPutsTheRunToDefaultClocks(t *testing.T) {
	for name, fault := range map[string]gpu.Fault{
		"transient": {GPU: 0, Op: gpu.OpSet, Kind: gpu.FaultTransient},
		"hung":      {GPU: 0, Op: gpu.OpSet, Kind: gpu.FaultSlow, Delay: 3 * time.Second, Count: 1},
		"lost":      {GPU: 0, Op: gpu.OpRead, Kind: gpu.FaultReload},
	} {
		troubled := ""
		adapting(t, func(err error) { troubled += err.Error() + "\n" },
			func(h *host, a *agent.Agent, _ live.Run) {
				t := h.t
				h.reaches(600)
				h.faults.Add(fault)
				sleep(40 * time.Second)
				s := a.State().Runs[0]
				if s.HandsOff == "" || s.Adapted != nil || troubled == "" && fault.Op == gpu.OpSet {
					t.Errorf("%s: %+v, trouble: %s", name, s, troubled)
				}
				h.faults.Clear()
				sleep(40 * time.Second)
				h.wantFree()
			})
	}
}

// A driver that doesn't say what runs is one whose GPU works.
func TestAGPUThatCannotBeReadCountsAsOneAtWork(t *testing.T) {
	adapting(t, func(error) {}, func(h *host, a *agent.Agent, _ live.Run) {
		t := h.t
		h.reaches(600)
		h.faults.Add(gpu.Fault{GPU: 0, Op: gpu.OpRead, Kind: gpu.FaultTransient, Count: 12})
		sleep(2 * time.Second)
		if got := h.locked(0).Core; got == 600 {
			t.Errorf("still at the floor after a second in which nothing could be read")
		}
		if s := a.State().Runs[0]; s.HandsOff != "" && !strings.Contains(s.HandsOff, "look at the clocks") {
			t.Errorf("%+v", s)
		}
	})
}

func TestARunThatSharesItsGPUGoesToItsCeiling(t *testing.T) {
	adapting(t, nil, func(h *host, a *agent.Agent, _ live.Run) {
		t := h.t
		h.reaches(600)
		other := h.run("r2", 2, dvfsmodel.Setting{Core: 802}, 0)
		if _, err := a.Apply(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		if got := h.locked(0).Core; got != 802 && got != 1380 { // the next look may have been at once
			t.Errorf("at %v MHz, the faster wish is 802", float64(got))
		}
		h.reaches(1380)
		sleep(time.Minute)
		if got := h.locked(0).Core; got != 1380 {
			t.Errorf("at %v MHz while it shares the GPU", float64(got))
		}
		if _, err := a.End(t.Context(), 2, "n1"); err != nil {
			t.Fatal(err)
		}
		h.reaches(600)
	})
}

func TestAfterARestartAnAdaptedRunIsAtDefaultClocks(t *testing.T) {
	adapting(t, nil, func(h *host, a *agent.Agent, _ live.Run) {
		t := h.t
		h.reaches(600)
		if err := a.RevertToDefault(t.Context(), "r1", "the old process goes"); err != nil {
			t.Fatal(err)
		}
		again := h.started()
		if s := again.State().Runs[0]; s.HandsOff == "" || s.Adapted != nil || s.Adapt == nil {
			t.Errorf("%+v", s)
		}
		h.wantFree()
	})
}

func TestTheGuardsBoundOfAnAdaptedRunDoesNotFall(t *testing.T) {
	h := newHost(t, "sim:1,model=V100-2022")
	a := h.started()
	r := h.run("r1", 1, dvfsmodel.Setting{Core: 1237}, 0)
	r.Adapt, r.Limit, r.Upper = stepped(1.2, 1380, 1237, 945), live.LimitOf(time.Hour), 40*time.Minute
	if _, err := a.Apply(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for _, upper := range []time.Duration{30 * time.Minute, 50 * time.Minute, 20 * time.Minute} {
		err := a.Guard(t.Context(), func(context.Context, live.Run) (live.Outlook, error) {
			return live.Outlook{UpperS: live.Known(upper.Seconds())}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := a.State().Runs[0]; got.Upper != 50*time.Minute || got.HandsOff != "" {
		t.Errorf("%+v", got)
	}
	err := a.Guard(t.Context(), func(context.Context, live.Run) (live.Outlook, error) {
		return live.Outlook{Limit: live.LimitOf(45 * time.Minute)}, nil
	})
	if got := a.State().Runs[0]; err != nil || got.HandsOff == "" || got.Adapted != nil {
		t.Errorf("%+v, %v", got, err)
	}
	h.wantFree()
}

func TestAnAdaptationKeepsToTheTableAndTheAdministratorsRange(t *testing.T) {
	for name, c := range map[string]struct {
		rule *live.Adaptation
		want []dvfsmodel.MHz // nil: it isn't adapted
		err  bool
	}{
		"all": {stepped(1.2, 1380, 1237, 945), []dvfsmodel.MHz{1380, 1237, 945}, false},
		"below the range": {
			stepped(1.2, 1380, 1237, 945, 705, 600), []dvfsmodel.MHz{1380, 1237, 945}, false,
		},
		"not in the table": {stepped(1.2, 1380, 1300, 1237, 900), []dvfsmodel.MHz{1380, 1237}, false},
		"no ceiling":       {stepped(1.2, 1500, 1380, 1237), nil, false},
		"not its setting":  {stepped(1.2, 1380, 945), nil, false},
		"impossible":       {stepped(0.5, 1380, 1237), nil, true},
	} {
		h := newHost(t, "sim:1,model=V100-2022")
		h.options = func(o *agent.Options) {
			o.Range = func(gpu.Identity) agent.AllowedSpans { return agent.AllowedSpans{gpu.CoreClock: {Min: 800}} }
		}
		a := h.started()
		r := h.run("r1", 1, dvfsmodel.Setting{Core: 1237}, 0)
		r.Adapt = c.rule
		got, err := a.Apply(t.Context(), r)
		if (err != nil) != c.err || got.Locked == c.err {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		var clocks []dvfsmodel.MHz
		if adapt := a.State().Runs[0].Adapt; adapt != nil && !c.err {
			for _, l := range adapt.Levels {
				clocks = append(clocks, l.Core)
			}
		}
		if !slices.Equal(clocks, c.want) {
			t.Errorf("%s: levels %v, want %v", name, clocks, c.want)
		}
	}
}

// Nothing is written to disk at a step, so that a disk that is full or hangs holds up
// none: what is read is a file that was just written.
func TestAFullDiskDoesNotKeepARunFromItsSteps(t *testing.T) {
	h := newHost(t, "sim:1,model=V100-2022")
	f := &fuse{}
	a := h.agent(f)
	if _, err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := h.run("r1", 1, dvfsmodel.Setting{Core: 1237}, 0)
	r.Adapt = stepped(1.2, 1380, 1237, 945)
	if _, err := a.Apply(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	f.fail, f.last, f.reads = 1, math.MaxInt, true
	for i := range 100 {
		if err := a.AdaptAt(t.Context(), r.Started.Add(time.Duration(i)*150*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	h.wantLocked(dvfsmodel.Setting{Core: 945})
}
