package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/live"
)

// act is what one goroutine does with an agent on which a run of job 1 is open.
type act struct {
	name string
	do   func(ctx context.Context, h *host, a *agent.Agent)
	// begins tells that it begins a run and ends none.
	begins bool
}

// doApply returns a Prolog's act.
func doApply(name, id string, job uint32, want dvfsmodel.Setting, gpus ...int) act {
	return act{name: name, do: func(ctx context.Context, h *host, a *agent.Agent) {
		_, _ = a.Apply(ctx, h.run(id, job, want, gpus...))
	}, begins: id != "r3"}
}

var acts = []act{
	doApply("another job", "r2", 2, quick, 0),
	doApply("the same run", "r1", 1, slow, 0, 1),
	doApply("the job's next run", "r3", 1, coreLow, 0),
	{name: "end", do: func(ctx context.Context, _ *host, a *agent.Agent) { _, _ = a.End(ctx, 1, "n1") }},
	{name: "end and begin", do: func(ctx context.Context, h *host, a *agent.Agent) {
		_, _ = a.End(ctx, 1, "n1")
		_, _ = a.Apply(ctx, h.run("r4", 4, coreLow, 0, 1))
	}},
	{name: "the end by Slurm's clock", do: func(_ context.Context, _ *host, a *agent.Agent) {
		_, _ = a.Runs().EndedAt("r1", time.Now().Add(-5*time.Second))
	}},
	{name: "guard", do: func(ctx context.Context, _ *host, a *agent.Agent) {
		_ = a.Guard(ctx, func(context.Context, live.Run) (live.Outlook, error) {
			return live.Outlook{Limit: live.LimitOf(time.Minute)}, nil
		})
	}},
	{name: "job over", do: func(ctx context.Context, _ *host, a *agent.Agent) {
		_ = a.Guard(ctx, func(context.Context, live.Run) (live.Outlook, error) {
			return live.Outlook{Ended: time.Now()}, nil
		})
	}},
	{name: "sweep", do: func(ctx context.Context, _ *host, a *agent.Agent) {
		_, _ = a.Sweep(ctx, alive, alive)
	}},
	{name: "sweep of what is gone", do: func(ctx context.Context, _ *host, a *agent.Agent) {
		_, _ = a.Sweep(ctx, ignoreMissing, ignoreMissing)
	}},
	{name: "restore", do: func(ctx context.Context, _ *host, a *agent.Agent) { _, _ = a.Restore(ctx, "test") }},
	{name: "restore beside", do: func(_ context.Context, h *host, _ *agent.Agent) { h.restoreBeside() }},
	{name: "sample", do: func(ctx context.Context, _ *host, a *agent.Agent) { _ = a.Sample(ctx) }},
	{name: "adapt", do: func(ctx context.Context, _ *host, a *agent.Agent) {
		_ = a.AdaptAt(ctx, time.Now().Add(time.Second))
	}},
}

// start is what there is before two acts.
type start struct {
	name    string
	prepare func(h *host) *agent.Agent
	// leftover tells that clocks are set for nobody until the agent sweeps.
	leftover bool
	// unlocks tells that GPUs are freed, and the agent hasn't seen it.
	unlocks bool
}

// running opens the run of job 1.
func running(h *host, a *agent.Agent) *agent.Agent {
	r := h.run("r1", 1, dvfsmodel.Setting{Core: 1700, Mem: 4000}, 0, 1)
	r.Adapt = stepped(1.2, 1800, 1700, 1600)
	if got, err := a.Apply(context.Background(), r); err != nil || !got.Locked {
		h.t.Fatalf("%+v, %v", got, err)
	}
	return a
}

var starts = []start{
	{name: "nothing runs", prepare: func(h *host) *agent.Agent { return h.started() }},
	{name: "a run", prepare: func(h *host) *agent.Agent { return running(h, h.started()) }},
	{name: "two runs on a GPU", prepare: func(h *host) *agent.Agent {
		a := running(h, h.started())
		apply(h, a, "r6", 4, quick, 1)
		return a
	}},
	{name: "clocks that somebody else set", prepare: func(h *host) *agent.Agent {
		a := h.started()
		fix := func(v gpu.Value) {
			if err := h.sims[0].Fix(gpu.CoreClock, v); err != nil {
				h.t.Fatal(err)
			}
		}
		apply(h, a, "r0", 9, free, 0)
		fix(2000) // as if it ran so by default
		_ = a.Sample(context.Background())
		if err := h.sims[0].Release(gpu.CoreClock); err != nil {
			h.t.Fatal(err)
		}
		end(a, 9)
		running(h, a)
		fix(1900)
		for range 6 {
			<-time.After(time.Second)
			_ = a.Sample(context.Background())
		}
		if a.State().GPUs[0].ExternalChange == "" {
			h.t.Fatal("not noticed")
		}
		return a
	}, leftover: true},
	{name: "clocks that were given back beside", prepare: func(h *host) *agent.Agent {
		a := running(h, h.started())
		h.restoreBeside()
		return a
	}},
	{name: "a driver that was reloaded", prepare: func(h *host) *agent.Agent {
		a := running(h, h.started())
		if err := h.sims[0].InjectFault(gpu.FaultReload); err != nil {
			h.t.Fatal(err)
		}
		return a
	}, unlocks: true},
	{name: "a clock that can't be set", prepare: func(h *host) *agent.Agent {
		a := running(h, h.started())
		h.faults.Add(gpu.Fault{GPU: 0, Op: gpu.OpSet, Kind: gpu.FaultTransient, Count: 1})
		return a
	}},
	{name: "a clock that can't be given back", prepare: func(h *host) *agent.Agent {
		a := running(h, h.started())
		h.faults.Add(gpu.Fault{GPU: 1, Op: gpu.OpRelease, Kind: gpu.FaultTransient, Count: 2})
		return a
	}, leftover: true},
	{name: "a GPU that came back locked", prepare: func(h *host) *agent.Agent {
		running(h, h.started())
		h.faults.Add(gpu.Fault{GPU: 1, Op: gpu.OpOpen, Kind: gpu.FaultTransient, Count: 1})
		a := h.agent(nil)
		if _, err := a.Start(context.Background()); err == nil {
			h.t.Fatal("it could be opened")
		}
		return a
	}, leftover: true},
	{name: "no start yet", prepare: func(h *host) *agent.Agent {
		running(h, h.started())
		return h.agent(nil)
	}, leftover: true},
	{name: "a file of another epd", prepare: func(h *host) *agent.Agent {
		a := h.started()
		h.journal.put(h.uuids[0]+".json", `{"schema":99,"uuid":"`+h.uuids[0]+`"}`)
		h.journal.put("gpus", h.uuids[1])
		return a
	}},
}

// inTurns has one act stop before its nth step outside of the process, another one done as
// far as it comes, and then the rest of both. It returns how many steps the first took.
func inTurns(t *testing.T, s start, first, second act, n int) (steps int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, twoGPUs)
		h.claims = &claims{owners: map[string]*fuse{}}
		f, quiet := &fuse{}, &fuse{}
		h.options = func(o *agent.Options) {
			o.Grace = 1
			o.Journal, o.Library = fused{h.journal, f}, fusedLibrary{h.library, f, nil}
			o.Runs, o.Claims = fused{h.runs, quiet}, process{h.claims, quiet}
			if first.begins { // else a mutex may be held, on which no bubble waits
				o.Runs = fused{h.runs, f}
			}
		}
		a := s.prepare(h)
		a.SettleOneByOne()
		<-time.After(10 * time.Second)
		before := f.steps
		done := make(chan struct{})
		f.meddle = before + n
		f.meddling = func() {
			go func() {
				defer close(done)
				second.do(t.Context(), h, a)
			}()
			synctest.Wait()
		}
		first.do(t.Context(), h, a)
		if n == 0 {
			steps = f.steps - before
			return
		}
		<-done
		h.faults.Clear()
		h.wantJournalled()
		if !s.leftover {
			h.wantUnwantedFree(a)
		}
		if swept, err := a.Sweep(t.Context(), alive, alive); err != nil {
			t.Errorf("the sweep: %v, %+v", err, swept)
		}
		h.wantAgreement(a, s.unlocks)
		for job := range uint32(5) {
			end(a, job)
		}
		if swept, err := a.Sweep(t.Context(), ignoreMissing, ignoreMissing); err != nil {
			t.Errorf("the last sweep: %v, %+v", err, swept)
		}
		h.wantFree()
		h.wantEndsOnFile(a)
	})
	return steps
}

// wantAgreement fails unless the GPUs are locked as the open runs want it, and the journal
// says so.
func (h *host) wantAgreement(a *agent.Agent, unlocked bool) {
	h.t.Helper()
	state := a.State()
	for i, uuid := range h.uuids {
		if state.GPUs[i].ExternalChange != "" {
			continue // the clocks are theirs
		}
		var want dvfsmodel.Setting
		first := true
		for j := range state.Runs {
			r := &state.Runs[j]
			if r.Ended || !slices.Contains(r.GPUs, uuid) {
				continue
			}
			if first {
				want, first = r.Wants, false
				continue
			}
			want = faster(want, r.Wants)
		}
		if got := h.locked(i); got != want && (!unlocked || got != free) {
			h.t.Errorf("GPU %d is locked at %v, want %v: %+v", i, got, want, state.Runs)
		}
		noted := slices.Contains(h.journal.files(".json"), uuid+".json")
		if noted != (want != free) || (state.GPUs[i].Entry != nil) != noted {
			h.t.Errorf("GPU %d wants %v, noted %v, entry %+v", i, want, noted, state.GPUs[i].Entry)
		}
	}
}

// wantJournalled fails where a control is set that no entry names: after a crash nobody
// would give it back.
func (h *host) wantJournalled() {
	h.t.Helper()
	for i, uuid := range h.uuids {
		var entry struct {
			Schema  int                        `json:"schema"`
			Domains map[string]json.RawMessage `json:"domains"`
		}
		if n := h.journal.names[uuid+".json"]; n != nil {
			if err := json.Unmarshal(n.synced, &entry); err != nil {
				h.t.Error(err)
			}
		}
		at := h.locked(i)
		for c := range gpu.NumControls {
			if _, noted := entry.Domains[c.Key()]; c.ValueIn(at) != 0 && (entry.Schema != 1 || !noted) {
				h.t.Errorf("GPU %d has its %s set, and no entry: %+v", i, c, entry)
			}
		}
	}
}

// wantUnwantedFree fails where a GPU is locked that no run wants locked.
func (h *host) wantUnwantedFree(a *agent.Agent) {
	h.t.Helper()
	state := a.State()
	for i, uuid := range h.uuids {
		if !slices.ContainsFunc(state.Runs, func(r agent.RunState) bool {
			return !r.Ended && r.Wants != free && slices.Contains(r.GPUs, uuid)
		}) && h.locked(i) != free {
			h.t.Errorf("GPU %d is locked at %v for nobody", i, h.locked(i))
		}
	}
}

// wantEndsOnFile fails unless another agent knows of the same ended runs.
func (h *host) wantEndsOnFile(a *agent.Agent) {
	h.t.Helper()
	ended := a.Runs().Ended()
	b := h.agent(nil)
	if _, err := b.Start(h.t.Context()); err != nil && !errors.Is(err, agent.ErrSameJournal) {
		h.t.Error(err)
	}
	again := b.Runs().Ended()
	same := slices.EqualFunc(ended, again, func(x, y agent.ClosedRun) bool {
		return x.Run.ID == y.Run.ID && x.Outcome.Ended.Equal(y.Outcome.Ended) && x.HandsOff == y.HandsOff
	})
	if !same {
		h.t.Errorf("ended %+v, on file %+v", ended, again)
	}
}

// Hooks, sweeps, guards and restores that come while another one is under way, at any of
// its steps, end in an agreement of runs, GPUs and journal.
func TestTwoAtTheSameTimeEndInAnAgreement(t *testing.T) {
	for _, s := range starts {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for _, first := range acts {
				for _, second := range acts {
					steps := inTurns(t, s, first, second, 0)
					for n := 1; n <= steps; n++ {
						if inTurns(t, s, first, second, n); t.Failed() {
							t.Fatalf("%s, and before its step %d: %s", first.name, n, second.name)
						}
					}
				}
			}
		})
	}
}
