package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
)

// adaptedRun returns an agent with a run whose clock is stepped, and a step of it.
func adaptedRun(t *testing.T, h *host) (a *agent.Agent, step func(n int) error) {
	t.Helper()
	a = h.started()
	r := h.run("r1", 1, dvfsmodel.Setting{Core: 1237}, 0)
	r.Adapt = stepped(1.2, 1380, 1237, 945)
	if got, err := a.Apply(t.Context(), r); err != nil || !got.Locked {
		t.Fatalf("%+v, %v", got, err)
	}
	return a, func(n int) error {
		return a.AdaptAt(t.Context(), r.Started.Add(time.Duration(n)*150*time.Millisecond))
	}
}

func TestNoStepLocksAGPUWhoseEntryAnotherProcessRemoved(t *testing.T) {
	h := newHost(t, "sim:1,model=V100-2022")
	a, step := adaptedRun(t, h)
	if err := h.sims[0].Release(gpu.CoreClock); err != nil {
		t.Fatal(err)
	}
	delete(h.journal.names, h.uuids[0]+".json")
	for n := range 50 {
		_ = step(n) // the first one that would lock says what it found
		h.wantNoted("after a step")
	}
	h.wantFree()
	if r := a.State().Runs[0]; !strings.Contains(r.HandsOff, "another process gave its clocks back") {
		t.Errorf("hands off %q", r.HandsOff)
	}
	if got, err := a.Apply(t.Context(), h.run("r2", 2, dvfsmodel.Setting{Core: 1380}, 0)); err != nil ||
		got.Locked {
		t.Errorf("beside a run at default clocks: %+v, %v", got, err)
	}
}

// notices are how an agent finds out that its clocks were given back.
var notices = map[string]func(h *host, a *agent.Agent, step func(int) error){
	"a step":                       noticeByStep,
	"a sweep":                      noticeBySweep,
	"samples of the running clock": noticeBySamples,
	"another run":                  noticeByRun,
}

func noticeByStep(_ *host, _ *agent.Agent, step func(int) error) {
	for n := range 50 {
		_ = step(n)
	}
}

func noticeBySweep(h *host, a *agent.Agent, _ func(int) error) {
	if _, err := a.Sweep(h.t.Context(), alive, alive); err != nil {
		h.t.Error(err)
	}
}

func noticeBySamples(h *host, a *agent.Agent, _ func(int) error) {
	if err := h.sims[0].Run(anyWork); err != nil {
		h.t.Fatal(err)
	}
	for range 10 {
		if err := a.Sample(h.t.Context()); err != nil {
			h.t.Error(err)
		}
		<-time.After(500 * time.Millisecond)
	}
	if alien := a.State().GPUs[0].ExternalChange; alien != "" {
		h.t.Errorf("somebody else is blamed: %s", alien)
	}
}

func noticeByRun(h *host, a *agent.Agent, _ func(int) error) {
	// Beside the run that is put to default clocks, and elsewhere.
	for i, locked := range []bool{false, true} {
		job := uint32(i + 2)
		if got, err := a.Apply(h.t.Context(), h.run("r"+h.uuids[i], job, dvfsmodel.Setting{Core: 1380},
			i)); err != nil || got.Locked != locked {
			h.t.Errorf("GPU %d: %+v, %v", i, got, err)
		}
		if _, err := a.End(h.t.Context(), job, "n1"); err != nil {
			h.t.Error(err)
		}
	}
}

func TestARestoreBesideALivingAgentPutsItsRunsToDefaultClocks(t *testing.T) {
	for name, notice := range notices {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t, "sim:2,model=V100-2022")
				h.claims = &claims{owners: map[string]*fuse{}}
				a, step := adaptedRun(t, h)
				report := h.restoreBeside()
				if got := fates(report); got[h.uuids[0]] != agent.EntryReturned || !report.Clean() {
					t.Errorf("fates %v", got)
				}
				h.wantLocked(free, free)
				notice(h, a, step)
				h.wantFree()
				if r := a.State().Runs[0]; !strings.Contains(r.HandsOff,
					"another process gave its clocks back") {
					t.Errorf("hands off %q", r.HandsOff)
				}
				if left := h.journal.files(".returned"); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
				_, ending := a.End(t.Context(), 1, "n1")
				if got, err := a.Apply(t.Context(), h.run("next", 9, dvfsmodel.Setting{Core: 1380},
					0)); err != nil || ending != nil || !got.Locked {
					t.Errorf("the next run: %+v, %v, %v", got, err, ending)
				}
			})
		})
	}
}

// A call of a restore comes back after the restore has given up on the GPU, while it waits
// for another one: the entry stays the agent's.
func TestALateAnswerToARestoreLeavesTheEntryToTheAgentThatLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, twoGPUs)
		h.claims = &claims{owners: map[string]*fuse{}}
		a := h.started()
		apply(h, a, "r1", 1, slow, 0, 1)
		for i, delay := range []time.Duration{600 * time.Millisecond, time.Second} {
			h.faults.Add(gpu.Fault{GPU: i, Op: gpu.OpRelease, Kind: gpu.FaultSlow, Delay: delay, Count: 1})
		}
		if report := h.restoreBeside(); report.Clean() {
			t.Errorf("%+v", report)
		}
		sleep(time.Minute)
		for i, uuid := range h.uuids {
			for _, ending := range []string{".json", ".returned"} {
				if len(h.journal.files(uuid+ending)) == 0 {
					t.Errorf("GPU %d: %s is gone", i, ending)
				}
			}
		}
		if _, err := a.Sweep(t.Context(), alive, alive); err != nil {
			t.Error(err)
		}
		h.wantFree()
	})
}

func TestARestoreLeavesTheGPUsOfAnotherAgentAlone(t *testing.T) {
	h := left(t)
	h.claims = &claims{owners: map[string]*fuse{h.uuids[1]: nil}}
	if err := h.sims[1].Set(gpu.CoreClock, 1700); err != nil { // for its job
		t.Fatal(err)
	}
	report := h.restoreBeside()
	if got := fates(report); got[h.uuids[0]] != agent.EntryRestored || got[h.uuids[1]] != agent.EntryKept {
		t.Errorf("fates %v", got)
	}
	if h.locked(0) != free || h.locked(1).Core != 1700 {
		t.Errorf("locked at %v, %v", h.locked(0), h.locked(1))
	}
}

func TestALostGPULeavesTheOthersServedAndIsAdoptedWhenItIsBack(t *testing.T) {
	h := newHost(t, "sim:4,model=GTX1080Ti,profiles")
	before := h.started()
	for i := range h.sims {
		apply(h, before, "r"+h.uuids[i], uint32(i+1), slow, i)
	}
	if err := h.sims[1].InjectFault(gpu.FaultLost); err != nil {
		t.Fatal(err)
	}
	report, err := agent.RestoreJournal(t.Context(), agent.Options{
		Journal: fused{h.journal, &fuse{}}, Library: h.library, Boot: "boot-1", Driver: "driver-1",
	})
	got := fates(report)
	if !errors.Is(err, gpu.ErrLost) || len(got) != 4 || got[h.uuids[1]] != agent.EntryKept || report.Clean() {
		t.Errorf("restored: %v, %v", got, err)
	}
	for _, i := range []int{0, 2, 3} {
		if h.locked(i) != free || got[h.uuids[i]] != agent.EntryRestored {
			t.Errorf("GPU %d: %v, locked at %v", i, got[h.uuids[i]], h.locked(i))
		}
	}
	a := h.agent(nil)
	if _, err := a.Start(t.Context()); !errors.Is(err, gpu.ErrLost) {
		t.Errorf("start: %v", err)
	}
	for _, id := range a.GPUs().Identities() {
		if id.UUID == h.uuids[1] {
			t.Error("the lost GPU is looked after")
		}
	}
	if in := a.GPUs().Inventory(); len(in) != 4 || in[1] != (gpu.Identity{}) || in[2].UUID != h.uuids[2] {
		t.Errorf("inventory %v", in)
	}
	if _, err := a.Sweep(t.Context(), ignoreMissing, ignoreMissing); !errors.Is(err, gpu.ErrLost) {
		t.Errorf("sweep: %v", err)
	}
	if got, err := a.Apply(t.Context(), h.run("next", 7, slow, 0, 2, 3)); err != nil || !got.Locked {
		t.Errorf("%+v, %v", got, err)
	}
	h.wantLocked(slow)
	if err := h.sims[1].Reboot(); err != nil { // a reset of the GPU alone: the boot is the same
		t.Fatal(err)
	}
	if _, err := a.Sweep(t.Context(), alive, alive); err != nil {
		t.Errorf("sweep when it is back: %v", err)
	}
	if len(a.GPUs().Identities()) != 4 || len(h.journal.files(h.uuids[1]+".json")) > 0 {
		t.Errorf("%v, journal %v", a.GPUs().Identities(), h.journal.files(".json"))
	}
	if got, err := a.Apply(t.Context(), h.run("back", 8, quick, 1)); err != nil || !got.Locked ||
		h.locked(1) != quick {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAGPUThatWasLostWhileTheAgentRanIsOpenedAnewWhenItIsBack(t *testing.T) {
	h := newHost(t, "sim:2,model=GTX1080Ti,minor=reverse")
	a := h.started()
	if err := h.sims[1].InjectFault(gpu.FaultLost); err != nil {
		t.Fatal(err)
	}
	if got, err := a.Apply(t.Context(), h.run("r1", 1, slow, 1)); !errors.Is(err, gpu.ErrLost) || got.Locked {
		t.Errorf("%+v, %v", got, err)
	}
	if err := h.library.Reboot(); err != nil { // the driver is back, and numbers the device files anew
		t.Fatal(err)
	}
	if _, err := a.Sweep(t.Context(), ignoreMissing, ignoreMissing); err != nil {
		t.Errorf("sweep: %v", err)
	}
	if got, err := a.Apply(t.Context(), h.run("r2", 1, slow, 1)); err != nil || !got.Locked {
		t.Errorf("%+v, %v", got, err)
	}
	for _, id := range slices.Concat(a.GPUs().Identities(), a.GPUs().Inventory()) {
		if want := slices.Index(h.uuids, id.UUID); id.Minor != want {
			t.Errorf("%s has the minor number %d, want %d", id.UUID, id.Minor, want)
		}
	}
}

func TestAGPUIsOneProcesssAtATime(t *testing.T) {
	dir := t.TempDir()
	folder := func(journal string) *agent.ClaimFolder {
		t.Helper()
		path := filepath.Join(dir, journal)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := agent.OpenClaims(filepath.Join(dir, "gpus"), path)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	release, err := folder("journal").Claim("GPU-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := folder("journal").Claim("GPU-1"); !errors.Is(err, agent.ErrSameJournal) {
		t.Errorf("with the same journal: %v", err)
	}
	if _, err := folder("other").Claim("GPU-1"); !errors.Is(err, agent.ErrTaken) ||
		!strings.Contains(err.Error(), filepath.Join(dir, "journal")) {
		t.Errorf("with another journal: %v", err)
	}
	if other, err := folder("other").Claim("GPU-2"); err != nil {
		t.Errorf("another GPU: %v", err)
	} else {
		other()
	}
	release()
	again, err := folder("other").Claim("GPU-1")
	if err != nil {
		t.Fatalf("once it was given up: %v", err)
	}
	again()
	if err := os.Symlink(filepath.Join(dir, "x"), filepath.Join(dir, "gpus", "GPU-3.lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := folder("journal").Claim("GPU-3"); err == nil || errors.Is(err, agent.ErrTaken) {
		t.Errorf("through a link: %v", err)
	}
}

func TestAnAgentThatStartsWaitsForARestoreToEnd(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		open := func() *agent.ClaimFolder {
			f, err := agent.OpenClaims(filepath.Join(dir, "gpus"), dir)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		release, err := open().Claim("GPU-1")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.AfterFunc(300*time.Millisecond, release)
		again, err := open().WithWait().Claim("GPU-1")
		if took := time.Since(began); err != nil || took < 300*time.Millisecond ||
			took > 500*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		defer again()
		if _, err := open().WithWait().Claim("GPU-1"); !errors.Is(err, agent.ErrSameJournal) ||
			time.Since(began) < time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
