package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/statedir"
)

func TestASettingThatMustNotBeIsRefusedAndNothingIsTouched(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		run  func(h *host, r *live.Run)
		want error
	}{
		"not in the table": {twoGPUs, func(_ *host, r *live.Run) {
			r.Setting.Core = 1234
		}, agent.ErrSetting},
		"below the range": {twoGPUs, func(_ *host, r *live.Run) {
			r.Setting.Mem = 4000
			r.Setting.Core = 1600
		}, agent.ErrSetting},
		"memory alone can't be locked": {"sim:2,model=GTX1080Ti,lock=core", func(_ *host, r *live.Run) {
			r.Setting.Core = 0
		}, gpu.ErrNotSupported},
		"nothing can be locked": {"sim:2,model=GTX1080Ti,lock=none", func(_ *host, r *live.Run) {
			r.Setting.Mem = 0
		}, gpu.ErrNotSupported},
		"MIG": {twoGPUs + ",mig", func(*host, *live.Run) {}, agent.ErrShared},
		"no such GPU": {twoGPUs, func(_ *host, r *live.Run) {
			r.GPUs = append(r.GPUs, "MIG-1")
		}, agent.ErrNoGPU},
		"a limit without a bound": {twoGPUs, func(_ *host, r *live.Run) {
			r.Limit = live.LimitOf(time.Hour)
		}, agent.ErrSetting},
		"no job":             {twoGPUs, func(_ *host, r *live.Run) { r.Job = 0 }, agent.ErrRun},
		"an id with a slash": {twoGPUs, func(_ *host, r *live.Run) { r.ID = "../r1" }, agent.ErrRun},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, c.spec)
			h.options = func(o *agent.Options) {
				o.Range = func(gpu.Identity) agent.AllowedSpans { return agent.AllowedSpans{gpu.CoreClock: {Min: 1650}} }
			}
			a := h.started()
			r := h.run("r1", 1, quick, 0, 1)
			c.run(h, &r)
			got, err := a.Apply(t.Context(), r)
			if !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if got.Locked {
				t.Errorf("locked: %+v", got)
			}
			h.wantFree()
		})
	}
}

func TestAGPUThatMPSDividesIsLockedAsAWhole(t *testing.T) {
	h := newHost(t, twoGPUs+",mps")
	a := h.started()
	if got, err := a.Apply(t.Context(), h.run("r1", 1, quick, 0, 1)); err != nil || !got.Locked {
		t.Errorf("%+v, %v", got, err)
	}
	h.wantLocked(quick, quick)
}

func TestAGPUThatIsDividedMeanwhileIsNotLockedForTheNextRun(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	apply(h, a, "r1", 1, quick, 0)
	end(a, 1)
	if err := h.sims[0].Share(gpu.Sharing{MIG: true}); err != nil {
		t.Fatal(err)
	}
	if got, err := a.Apply(t.Context(), h.run("r2", 2, quick, 0)); !errors.Is(err, agent.ErrShared) ||
		got.Locked {
		t.Errorf("%+v, %v", got, err)
	}
	h.wantFree()
}

func TestAGPUThatIsDividedUnderARunIsGivenBackAndLockedAgainOnceItIsWhole(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	apply(h, a, "r1", 1, quick, 0)
	for i, mig := range []bool{true, false} {
		if err := h.sims[0].Share(gpu.Sharing{MIG: mig}); err != nil {
			t.Fatal(err)
		}
		end(a, uint32(i+1))
		h.wantFree()
		if got, _ := a.Apply(t.Context(), h.run(fmt.Sprint("r", i+2), uint32(i+2), quick, 0)); got.Locked == mig {
			t.Errorf("divided %v: %+v", mig, got)
		}
	}
}

func TestTheOnlyMemoryClockNeedsNoLock(t *testing.T) {
	h := newHost(t, "sim:1,model=V100,lock=core")
	a := h.started()
	got, err := a.Apply(t.Context(), h.run("r1", 1, dvfsmodel.Setting{Core: 945, Mem: 877}, 0))
	if err != nil || !got.Locked {
		t.Fatalf("%+v, %v", got, err)
	}
	h.wantLocked(dvfsmodel.Setting{Core: 945})
}

func TestTheFirstEpilogLeavesTheOtherShardItsClocksAndTheLastRestores(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	for i, want := range []dvfsmodel.Setting{slow, quick} {
		if got, err := a.Apply(t.Context(), h.run(fmt.Sprint("r", i), uint32(i+1), want, 0)); err != nil ||
			!got.Locked {
			t.Fatalf("apply %d: %+v, %v", i, got, err)
		}
	}
	h.wantLocked(quick, free)
	for job, want := range []dvfsmodel.Setting{quick, free} {
		if _, err := a.End(t.Context(), uint32(job+1), "n1"); err != nil {
			t.Fatal(err)
		}
		h.wantLocked(want, free)
	}
	h.wantFree()
}

func TestARunOfTheSameJobReplacesOneWhoseEpilogNeverCame(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	apply(h, a, "first", 1, slow, 0)
	apply(h, a, "second", 1, quick, 1)
	h.wantLocked(free, quick)
	ended := a.Runs().Ended()
	if len(ended) != 1 || ended[0].Run.ID != "first" {
		t.Errorf("ended: %+v", ended)
	}
	other := h.run("third", 1, slow, 0)
	other.Node = "n2" // another node that this machine plays
	if _, err := a.Apply(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	h.wantLocked(slow, quick)
}

func TestApplyingARunTwiceChangesNothing(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	for range 2 {
		if got, err := a.Apply(t.Context(), h.run("r1", 1, slow, 0)); err != nil || !got.Locked {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	end(a, 1)
	h.wantFree()
}

func TestClocksThatAUserFixedAreExactAndOthersMayFallWhileTheGPUHasNothingToDo(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	wantFixed := func(when string, want bool) {
		t.Helper()
		if fixed, err := h.sims[0].IsFixed(gpu.CoreClock); err != nil || fixed != want {
			t.Errorf("%s: fixed %v, %v, want %v", when, fixed, err, want)
		}
	}
	fixed := h.run("r2", 2, slow, 0)
	fixed.Wish.Fixed = true
	applyRun := func(r live.Run) {
		t.Helper()
		if got, err := a.Apply(t.Context(), r); err != nil || !got.Locked {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	applyRun(h.run("r1", 1, slow, 0))
	wantFixed("chosen", false)
	applyRun(fixed)
	wantFixed("chosen, and fixed at the same", true)
	applyRun(h.run("r3", 3, quick, 0))
	wantFixed("a faster one than the fixed one", false)
	end(a, 3)
	wantFixed("without it", true)
	end(a, 2)
	wantFixed("without the fixed one", false)
	h.wantLocked(slow)
	end(a, 1)
	h.wantFree()
}

// Of a job's GPUs one refuses the memory clock: it keeps the core clock, the run says so
// once, and its record has what it was locked at.
func TestARefusedMemoryClockDoesNotCostTheCoreClock(t *testing.T) {
	for _, kind := range []gpu.FaultKind{gpu.FaultUnsupported, gpu.FaultPermission} {
		h := newHost(t, twoGPUs)
		a := h.started()
		a.SettleOneByOne()
		h.faults.Add(gpu.Fault{GPU: 0, Op: gpu.OpSet, Kind: kind, After: 1, Count: 1})
		if got, err := a.Apply(t.Context(), h.run("r1", 1, slow, 0)); err != nil || !got.Locked {
			t.Fatalf("%s: %+v, %v", kind, got, err)
		}
		core := dvfsmodel.Setting{Core: slow.Core, Cap: slow.Cap, Profile: slow.Profile}
		h.wantLocked(core)
		h.wantNoted(string(kind))
		writes := a.State().GPUs[entryOf(a)].Writes
		apply(h, a, "r1", 1, slow, 0) // again
		if got := a.State().GPUs[entryOf(a)].Writes; got != writes {
			t.Errorf("%s: %d writes, %d before", kind, got, writes)
		}
		closed, err := a.End(t.Context(), 1, "n1")
		if err != nil {
			t.Fatal(err)
		}
		if out := closed.Outcome; out.Setting != core || len(out.Notes) != 1 ||
			!strings.Contains(out.Notes[0], "memory clock") {
			t.Errorf("%s: %+v, notes %q", kind, out.Setting, out.Notes)
		}
		h.wantFree()
		apply(h, a, "r2", 2, slow, 0) // it is asked again
		h.wantLocked(slow)
		end(a, 2)
		h.wantFree()
	}
}

// A GPU that can't lock its memory clock at all isn't left at default clocks either.
func TestAGPUThatLocksItsCoreClockAloneIsLockedAtIt(t *testing.T) {
	h := newHost(t, "sim:2,model=GTX1080Ti,lock=core")
	a := h.started()
	if got, err := a.Apply(t.Context(), h.run("r1", 1, slow, 0)); err != nil || !got.Locked {
		t.Fatalf("%+v, %v", got, err)
	}
	h.wantLocked(dvfsmodel.Setting{Core: slow.Core})
	memory := dvfsmodel.Setting{Mem: slow.Mem}
	if got, err := a.Apply(t.Context(), h.run("r2", 2, memory, 1)); !errors.Is(err, gpu.ErrNotSupported) ||
		got.Locked {
		t.Errorf("the memory clock alone: %+v, %v", got, err)
	}
	end(a, 1)
	end(a, 2)
	h.wantFree()
}

func TestALockOverALockKeepsWhatWasBeforeTheFirst(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	prior := func() agent.Held { return a.State().GPUs[entryOf(a)].Entry.Controls[gpu.CoreClock] }
	apply(h, a, "r1", 1, slow, 0)
	first := prior()
	if first.Prior != agent.PriorUnknown || first.Run != "r1" || first.Job != 1 || first.Value != 1600 {
		t.Errorf("first lock: %+v", first)
	}
	apply(h, a, "r2", 2, quick, 0)
	if second := prior(); second.Prior != agent.PriorUnknown || !second.Since.Equal(first.Since) ||
		second.Run != "r2" || second.Value != 1800 {
		t.Errorf("second lock: %+v", second)
	}
	end(a, 1)
	end(a, 2)
	apply(h, a, "r3", 3, slow, 0)
	if third := prior(); third.Prior != agent.PriorUnlocked {
		t.Errorf("lock of what this agent freed: %+v", third)
	}
}

// entryOf returns the index of the only GPU with an entry.
func entryOf(a *agent.Agent) int {
	for i, g := range a.State().GPUs {
		if g.Entry != nil {
			return i
		}
	}
	return -1
}

func TestEveryErrorOfADeviceDuringApplyLeavesAllGPUsOfTheJobAtDefault(t *testing.T) {
	kinds := []gpu.FaultKind{
		gpu.FaultPermission, gpu.FaultUnsupported, gpu.FaultTransient, gpu.FaultLost, gpu.FaultReload,
	}
	for _, op := range []gpu.Op{gpu.OpClocks, gpu.OpSharing, gpu.OpSet, gpu.OpRead} {
		for _, kind := range kinds {
			for after := range 2 {
				fault := gpu.Fault{GPU: 1, Op: op, Kind: kind, After: after}
				t.Run(fault.String(), func(t *testing.T) { applyWithFault(t, fault) })
			}
		}
	}
}

// applyWithFault applies a run of two GPUs while something goes wrong with the
// second, and ends it when all is well again.
func applyWithFault(t *testing.T, fault gpu.Fault) {
	t.Helper()
	h := newHost(t, twoGPUs)
	a := h.started()
	a.SettleOneByOne()
	h.faults.Add(fault)
	got, err := a.Apply(t.Context(), h.run("r1", 1, slow, 0, 1))
	if got.Locked != (err == nil) {
		t.Errorf("%+v, %v", got, err)
	}
	refusesMemory := fault.Op == gpu.OpSet && fault.After == 1 &&
		(fault.Kind == gpu.FaultPermission || fault.Kind == gpu.FaultUnsupported)
	if refusesMemory { // after the core clock was set
		h.wantLocked(slow, dvfsmodel.Setting{Core: slow.Core})
		if err != nil {
			t.Error(err)
		}
	} else if err == nil { // the fault hit nothing, or was mended
		h.wantLocked(slow, slow)
	} else if h.locked(0) != free {
		t.Errorf("the other GPU is locked at %v", h.locked(0))
	}
	h.faults.Clear()
	if fault.Kind == gpu.FaultLost {
		h.reboot(false)
		_, err = h.agent(nil).Start(t.Context())
	} else {
		_, err = a.End(t.Context(), 1, "n1")
	}
	if err != nil {
		t.Error(err)
	}
	h.wantFree()
}

func TestALockThatIsRefusedLeavesNoEntryEvenIfUnlockingIsRefusedToo(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	h.faults.Add(gpu.Fault{GPU: -1, Op: gpu.OpSet, Kind: gpu.FaultPermission},
		gpu.Fault{GPU: -1, Op: gpu.OpRelease, Kind: gpu.FaultPermission})
	if _, err := a.Apply(t.Context(), h.run("r1", 1, slow, 0, 1)); !errors.Is(err, gpu.ErrPermission) {
		t.Errorf("error %v", err)
	}
	h.wantFree()
}

func TestAnApplyThatCompletesAfterTheHooksDeadlineIsUndone(t *testing.T) {
	for _, delay := range []time.Duration{150 * time.Millisecond, 300 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			h := newHost(t, twoGPUs)
			a := h.started()
			h.faults.Add(gpu.Fault{GPU: 1, Op: gpu.OpSet, Kind: gpu.FaultSlow, Delay: delay})
			r := h.run("r1", 1, slow, 0, 1)
			r.HookDeadline = time.Now().Add(200 * time.Millisecond)
			got, err := a.Apply(t.Context(), r)
			if !errors.Is(err, agent.ErrLate) || got.Locked {
				t.Errorf("%+v, %v", got, err)
			}
			h.wantFree()
		})
	}
}

func TestAnApplyWhoseCallerHasGoneIsUndone(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := a.Apply(ctx, h.run("r1", 1, slow, 0)); err == nil || got.Locked {
		t.Errorf("%+v, %v", got, err)
	}
	h.wantFree()
}

func TestACallThatHangsHoldsNobodyUpAndIsUndoneWhenItComesBack(t *testing.T) {
	for _, op := range []gpu.Op{gpu.OpSet, gpu.OpRead, gpu.OpSharing, gpu.OpClocks} {
		synctest.Test(t, func(t *testing.T) {
			h := newHost(t, twoGPUs)
			a := h.started()
			h.faults.Add(gpu.Fault{GPU: 1, Op: op, Kind: gpu.FaultSlow, Delay: time.Hour, Count: 1})
			began := time.Now()
			if _, err := a.Apply(t.Context(), h.run("r1", 1, slow, 0, 1)); !errors.Is(err, agent.ErrStuck) {
				t.Errorf("%s: %v", op, err)
			}
			if _, err := a.Apply(t.Context(), h.run("r2", 2, slow, 1)); !errors.Is(err, agent.ErrStuck) {
				t.Errorf("%s: another run: %v", op, err)
			}
			if got, err := a.Apply(t.Context(), h.run("r3", 3, quick, 0)); err != nil || got.Locked {
				t.Errorf("%s: a run beside it: %+v, %v", op, got, err)
			}
			end(a, 1)
			end(a, 2)
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("%s: took %s", op, took)
			}
			h.wantLocked(quick)
			time.Sleep(2 * time.Hour) //nolint:forbidigo // in a bubble
			synctest.Wait()
			end(a, 3)
			h.wantFree()
		})
	}
}

func TestAnUnlockThatHangsKeepsTheEntryUntilItComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, twoGPUs)
		a := h.started()
		apply(h, a, "r1", 1, slow, 0)
		h.faults.Add(gpu.Fault{GPU: 0, Op: gpu.OpRelease, Kind: gpu.FaultSlow, Delay: time.Minute, Count: 1})
		if _, err := a.End(t.Context(), 1, "n1"); !errors.Is(err, agent.ErrStuck) {
			t.Errorf("end: %v", err)
		}
		if len(h.journal.files(".json")) != 1 {
			t.Error("the entry has gone")
		}
		time.Sleep(2 * time.Minute) //nolint:forbidigo // in a bubble
		synctest.Wait()
		h.wantFree()
	})
}

func TestARunWithoutAPlaceInTheJournalIsToldWhy(t *testing.T) {
	h := newHost(t, twoGPUs)
	f := &fuse{}
	a := h.agent(f)
	if _, err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.fail, f.last = f.steps+1, 1<<30
	got, err := a.Apply(t.Context(), h.run("r1", 1, slow, 0))
	if !errors.Is(err, errFull) || got.Locked || !strings.Contains(got.HandsOff, "no space") {
		t.Errorf("%+v, %v", got, err)
	}
	h.wantFree()
}

func BenchmarkApplyAndEndOnADisk(b *testing.B) {
	for _, spec := range []string{"sim:1,model=GTX1080Ti", "sim:8,model=GTX1080Ti"} {
		b.Run(spec, func(b *testing.B) {
			a, uuids := onDisk(b, spec)
			for b.Loop() {
				r := live.Run{ID: agent.NewRunID(), Job: 1, GPUs: uuids, Setting: slow}
				_, err := a.Apply(b.Context(), r)
				_, ending := a.End(b.Context(), 1, "")
				if err := errors.Join(err, ending, a.Runs().Forget(r.ID)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// onDisk returns an agent whose files are on a disk.
func onDisk(b *testing.B, spec string) (a *agent.Agent, uuids []string) {
	b.Helper()
	library, err := gpu.OpenSim(spec, profiles().Board, nil)
	if err != nil {
		b.Fatal(err)
	}
	journal, err := statedir.OpenFolder(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	runs, err := statedir.OpenFolder(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	a = agent.New(agent.Options{Journal: journal, Runs: runs, Library: library})
	if _, err := a.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	for _, g := range a.State().GPUs {
		uuids = append(uuids, g.Identity.UUID)
	}
	return a, uuids
}

func TestASweepSparesAGPUThatWasLockedForARunMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, twoGPUs)
		a := h.started()
		apply(h, a, "r1", 1, slow, 0)
		h.faults.Add(gpu.Fault{GPU: 0, Op: gpu.OpRelease, Kind: gpu.FaultPermission})
		end(a, 1) // the entry is kept, for a sweep to try again
		h.faults.Clear()
		h.faults.Add(gpu.Fault{GPU: -1, Op: gpu.OpOpen, Kind: gpu.FaultSlow, Delay: time.Second})
		swept := make(chan error, 1)
		go func() {
			_, err := a.Sweep(t.Context(), alive, alive)
			swept <- err
		}()
		synctest.Wait() // the sweep opens the GPUs
		if got, err := a.Apply(t.Context(), h.run("r2", 2, quick, 0)); err != nil || !got.Locked {
			t.Errorf("%+v, %v", got, err)
		}
		if err := <-swept; err != nil {
			t.Error(err)
		}
		h.wantLocked(quick)
	})
}

// slowLibrary has GPUs that take a long time to be found, once.
type slowLibrary struct {
	gpu.Library
	delay time.Duration
	calls atomic.Int32
}

func (l *slowLibrary) Devices() ([]gpu.Device, error) {
	if l.calls.Add(1) == 1 {
		time.Sleep(l.delay) //nolint:forbidigo // in a bubble
	}
	return l.Library.Devices()
}

func TestGPUsAreNotLookedForAgainWhileADriverDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, twoGPUs)
		library := &slowLibrary{Library: h.library, delay: time.Hour}
		h.options = func(o *agent.Options) { o.Library = library }
		a := h.agent(&fuse{})
		if _, err := a.Start(t.Context()); !errors.Is(err, agent.ErrStuck) {
			t.Errorf("start: %v, want that the driver doesn't answer", err)
		}
		began := time.Now()
		for range 10 {
			if _, err := a.Sweep(t.Context(), nil, nil); !errors.Is(err, agent.ErrStuck) {
				t.Errorf("sweep: %v, want that the driver doesn't answer", err)
			}
		}
		if calls := library.calls.Load(); calls != 1 || time.Since(began) > 0 {
			t.Errorf("%d calls of the driver, sweeps took %s, want one call and no wait", calls,
				time.Since(began))
		}
		time.Sleep(2 * time.Hour) //nolint:forbidigo // in a bubble
		synctest.Wait()
		if _, err := a.Sweep(t.Context(), nil, nil); err != nil || len(a.GPUs().Identities()) != 2 {
			t.Errorf("once it answers: %v, %d GPUs, want both", err, len(a.GPUs().Identities()))
		}
	})
}
