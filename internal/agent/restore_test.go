package agent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/live"
)

// left returns a host whose agent died with both GPUs locked.
func left(t *testing.T) *host {
	t.Helper()
	h := newHost(t, twoGPUs)
	apply(h, h.started(), "r1", 1, slow, 0, 1)
	h.wantLocked(slow, slow)
	return h
}

func fates(r agent.Report) map[string]agent.EntryResult {
	m := make(map[string]agent.EntryResult)
	for _, g := range r.GPUs {
		m[g.UUID] = g.Result
	}
	return m
}

func TestAnEntryThatCantBeReadFreesTheGPUAndIsKeptAside(t *testing.T) {
	valid := func(h *host) string { return string(h.journal.names[h.uuids[0]+".json"].data) }
	for name, change := range map[string]func(h *host) string{
		"empty":    func(*host) string { return "" },
		"torn":     func(h *host) string { return valid(h)[:40] },
		"not JSON": func(*host) string { return "\x00\xff" },
		"newer": func(h *host) string {
			return strings.Replace(valid(h), `"schema":1`, `"schema":2`, 1)
		},
		"another GPU": func(h *host) string {
			return strings.ReplaceAll(valid(h), h.uuids[0], h.uuids[1])
		},
		"unknown domain": func(h *host) string {
			return strings.Replace(valid(h), `"memory"`, `"shader"`, 1)
		},
		"no domain":      func(*host) string { return `{"schema":1}` },
		"two documents":  func(h *host) string { return valid(h) + valid(h) },
		"negative clock": func(h *host) string { return strings.Replace(valid(h), `1600`, `-1`, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			h := left(t)
			h.journal.put(h.uuids[0]+".json", change(h))
			report, err := h.agent(nil).Start(t.Context())
			if err != nil {
				t.Error(err)
			}
			got := fates(report)
			if got[h.uuids[0]] != agent.EntrySetAside || got[h.uuids[1]] != agent.EntryRestored {
				t.Errorf("fates %v", got)
			}
			h.wantFree()
			if len(h.journal.files(".aside")) != 1 {
				t.Error("the file wasn't kept aside")
			}
		})
	}
}

func TestAForeignFileInTheJournalIsMovedAsideAndNamed(t *testing.T) {
	h := newHost(t, twoGPUs)
	h.journal.put("readme", "x")
	h.journal.put("odd name.json", "{}")
	report, err := h.agent(nil).Start(t.Context())
	if err != nil || len(report.Notes) != 1 || fates(report)["odd name"] != agent.EntrySetAside {
		t.Errorf("%+v, %v", report, err)
	}
	if len(h.journal.files(".aside")) != 2 {
		t.Errorf("aside: %v", h.journal.files(".aside"))
	}
}

func TestARebootDropsEntriesWithoutTouchingTheGPU(t *testing.T) {
	h := left(t)
	h.reboot(false)
	if err := h.sims[0].Set(gpu.CoreClock, 1700); err == nil {
		t.Fatal("a stale handle locked")
	}
	fresh, err := h.library.Sims()
	if err != nil {
		t.Fatal(err)
	}
	if err := fresh[0].Set(gpu.CoreClock, 1700); err != nil { // the administrator's own, at boot
		t.Fatal(err)
	}
	report, err := h.agent(nil).Start(t.Context())
	if err != nil || fates(report)[h.uuids[0]] != agent.EntryDropped {
		t.Errorf("%+v, %v", report, err)
	}
	h.wantLocked(dvfsmodel.Setting{Core: 1700}, free)
	if len(h.journal.files(".json")) != 0 {
		t.Error("entries are left")
	}
}

func TestALostGPUKeepsItsEntryUntilItIsBack(t *testing.T) {
	h := left(t)
	if err := h.sims[1].InjectFault(gpu.FaultLost); err != nil {
		t.Fatal(err)
	}
	a := h.agent(nil)
	report, err := a.Start(t.Context())
	if !errors.Is(err, gpu.ErrLost) {
		t.Errorf("start said %v", err)
	}
	got := fates(report)
	if got[h.uuids[0]] != agent.EntryRestored || got[h.uuids[1]] != agent.EntryKept || report.Clean() {
		t.Errorf("fates %v", got)
	}
	if !errors.Is(report.Err(), agent.ErrNoGPU) {
		t.Errorf("said %v", report.Err())
	}
	if err := h.sims[1].Reboot(); err != nil { // a reset of the GPU alone: the boot is the same
		t.Fatal(err)
	}
	if _, err := a.Sweep(t.Context(), alive, alive); err != nil {
		t.Error(err)
	}
	h.wantFree()
}

func TestAGPUThatIsNotThereKeepsItsEntry(t *testing.T) {
	h := left(t)
	only := newHost(t, "sim:1,model=GTX1080Ti,profiles") // the first of the two
	only.journal = h.journal
	report, err := agent.RestoreJournal(t.Context(), agent.Options{
		Journal: fused{only.journal, &fuse{}}, Library: only.library, Boot: "boot-1", Driver: "driver-1",
	})
	got := fates(report)
	if err != nil || got[h.uuids[1]] != agent.EntryKept || got[h.uuids[0]] != agent.EntryRestored {
		t.Errorf("%v, %v", got, err)
	}
	if !errors.Is(report.Err(), agent.ErrNoGPU) {
		t.Errorf("said %v", report.Err())
	}
}

func TestRefusedUnlocksKeepTheEntryAndSayIt(t *testing.T) {
	h := left(t)
	h.faults.Add(gpu.Fault{GPU: 0, Op: gpu.OpRelease, Kind: gpu.FaultPermission})
	a := h.agent(nil)
	report, err := a.Start(t.Context())
	if err != nil || fates(report)[h.uuids[0]] != agent.EntryKept ||
		!errors.Is(report.Err(), gpu.ErrPermission) {
		t.Errorf("%+v, %v", report, err)
	}
	if _, err := a.Sweep(t.Context(), alive, alive); !errors.Is(err, gpu.ErrPermission) {
		t.Errorf("sweep said %v", err)
	}
	h.faults.Clear()
	if report, err := a.Restore(t.Context(), "by hand"); err != nil || !report.Clean() {
		t.Errorf("%+v, %v", report, err)
	}
	h.wantFree()
}

func TestAReloadedDriverIsOpenedAnewAndItsEntryCleared(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	apply(h, a, "r1", 1, slow, 0, 1)
	if err := h.sims[0].InjectFault(gpu.FaultReload); err != nil {
		t.Fatal(err)
	}
	report, err := a.Restore(t.Context(), "by hand")
	if err != nil || !report.Clean() {
		t.Errorf("%+v, %v", report, err)
	}
	for _, g := range report.GPUs {
		if g.UUID == h.uuids[0] && !strings.Contains(g.Note, "reloaded") {
			t.Errorf("note %q", g.Note)
		}
	}
	h.wantFree()
}

func TestRestoringTwiceOrOneGPUOnly(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	apply(h, a, "r1", 1, slow, 0)
	apply(h, a, "r2", 2, slow, 1)
	for range 2 {
		if report, err := a.Restore(t.Context(), "by hand", h.uuids[0]); err != nil || !report.Clean() {
			t.Errorf("%+v, %v", report, err)
		}
		h.wantLocked(free, slow)
	}
	for _, r := range a.State().Runs {
		if want := map[string]string{"r1": "by hand", "r2": ""}[r.ID]; r.HandsOff != want {
			t.Errorf("%s: hands off %q, want %q", r.ID, r.HandsOff, want)
		}
	}
}

func TestAJournalThatCantBeReadLocksNothingUntilASweepReadsIt(t *testing.T) {
	h := left(t)
	f := &fuse{fail: 1, last: 1 << 30}
	a := h.agent(f)
	if _, err := a.Start(t.Context()); !errors.Is(err, errFull) {
		t.Errorf("start: %v", err)
	}
	if _, err := a.Apply(t.Context(), h.run("r2", 2, quick, 0)); !errors.Is(err, agent.ErrJournal) {
		t.Errorf("apply: %v", err)
	}
	f.fail = 0
	if _, err := a.Sweep(t.Context(), alive, alive); err != nil {
		t.Errorf("sweep: %v", err)
	}
	h.wantFree()
	if got, err := a.Apply(t.Context(), h.run("r3", 3, quick, 1)); err != nil || !got.Locked {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAStopFreesTheGPUsAndKeepsTheRunsOnFile(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	apply(h, a, "r1", 1, slow, 0, 1)
	if report, err := a.Stop(t.Context()); err != nil || !report.Clean() {
		t.Errorf("%+v, %v", report, err)
	}
	h.wantFree()
	closed, err := h.started().End(t.Context(), 1, "n1")
	if err != nil || closed.Run.ID != "r1" || len(closed.Run.GPUs) != 2 ||
		closed.Outcome.TimeS != (live.Number{}) {
		t.Errorf("%+v, %v", closed, err)
	}
}

// A driver that hangs on seven GPUs keeps none of the others waiting, nor is it waited for seven times.
func TestARestoreWaitsForADriverThatHangsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, "sim:8,model=GTX1080Ti,profiles")
		a := h.started()
		for i := range h.sims {
			apply(h, a, fmt.Sprintf("r%d", i), uint32(i+1), slow, i)
			if i > 0 {
				h.faults.Add(gpu.Fault{GPU: i, Op: gpu.OpRelease, Kind: gpu.FaultSlow, Delay: time.Minute, Count: 1})
			}
		}
		began := time.Now()
		report, err := h.agent(nil).Start(t.Context())
		if took := time.Since(began); err != nil || took > 2*time.Second || len(report.GPUs) != 8 {
			t.Errorf("%+v, %v, after %s", report, err, took)
		}
		h.wantLocked(free)
		sleep(2 * time.Minute) // the driver comes back
		h.wantFree()
	})
}
