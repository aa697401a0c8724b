package agent_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
)

// working returns a host of two GPUs at work.
func working(t *testing.T) *host {
	t.Helper()
	h := newHost(t, twoGPUs)
	for _, s := range h.sims {
		if err := s.Run(anyWork); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// unlock is what the end of a step with --gpu-freq of its own does, and nvidia-smi -rgc -rmc.
func (h *host) unlock(i int) {
	h.t.Helper()
	if err := errors.Join(h.sims[i].Release(gpu.CoreClock), h.sims[i].Release(gpu.MemClock)); err != nil {
		h.t.Fatal(err)
	}
}

// notes returns those of the run r1.
func notes(a *agent.Agent) string {
	runs := a.State().Runs
	i := slices.IndexFunc(runs, func(r agent.RunState) bool { return r.ID == "r1" })
	return strings.Join(runs[i].Notes, "; ")
}

// A step of the job locks clocks of its own, lower or higher, and resets them at its end.
func TestALockThatIsLostIsSetAgainAfterAMinuteAndTheRunSaysSo(t *testing.T) {
	for _, step := range []gpu.Value{1600, 1900} {
		watchedHost(t, agent.WatchHooks{}, working, func(h *host, a *agent.Agent) {
			t := h.t
			core := dvfsmodel.Setting{Core: 1700}
			apply(h, a, "r1", 1, core, 0, 1)
			sleep(10 * time.Minute)
			if err := h.sims[0].Fix(gpu.CoreClock, step); err != nil {
				t.Fatal(err)
			}
			sleep(30 * time.Second)
			h.unlock(0)
			sleep(25 * time.Second)
			h.wantLocked(free, core)
			sleep(45 * time.Second)
			h.wantLocked(core, core)
			if got := notes(a); strings.Count(got, "locked again") != 1 ||
				!strings.Contains(got, "was locked at 1700") {
				t.Errorf("step at %v: notes %q", float64(step), got)
			}
			closed, err := a.End(t.Context(), 1, "n1")
			if err != nil || closed.HandsOff != "" || len(closed.Outcome.Notes) != 1 {
				t.Errorf("step at %v: %q, %v, %q", float64(step), closed.HandsOff, err, closed.Outcome.Notes)
			}
			h.wantFree()
		})
	}
}

// A clock between the lock and the one at which the GPU runs when nobody sets any is
// somebody's choice.
func TestClocksAboveTheLockThatSomebodyChoseAreLeftToThemWhileTheyLast(t *testing.T) {
	watchedHost(t, agent.WatchHooks{}, working, func(h *host, a *agent.Agent) {
		t := h.t
		apply(h, a, "r0", 9, free, 0) // from it its default clocks are known
		sleep(time.Minute)
		end(a, 9)
		apply(h, a, "r1", 1, dvfsmodel.Setting{Core: 1600}, 0, 1)
		sleep(2 * time.Minute)
		theirs := dvfsmodel.Setting{Core: 1700}
		if err := h.sims[0].Fix(gpu.CoreClock, 1700); err != nil {
			t.Fatal(err)
		}
		sleep(10 * time.Minute)
		h.wantLocked(theirs, dvfsmodel.Setting{Core: 1600})
		if got, err := a.Apply(t.Context(), h.run("r2", 2, quick, 0)); got.Locked ||
			!errors.Is(err, agent.ErrExternalChange) {
			t.Errorf("another run: %+v, %v", got, err)
		}
		end(a, 2)
		h.wantLocked(theirs)
		if got := notes(a); !strings.Contains(got, "somebody set other clocks") {
			t.Errorf("notes %q", got)
		}
		h.unlock(0)
		sleep(10 * time.Second)
		h.wantLocked(dvfsmodel.Setting{Core: 1600}, dvfsmodel.Setting{Core: 1600})
		if got := a.State().GPUs; got[0].ExternalChange != "" || got[1].ExternalChange != "" {
			t.Errorf("%+v", got)
		}
		closed, err := a.End(t.Context(), 1, "n1")
		if err != nil || closed.HandsOff != "" {
			t.Errorf("%q, %v", closed.HandsOff, err)
		}
		h.wantFree()
	})
}

func TestALockThatIsTakenAwayAgainAndAgainIsGivenUp(t *testing.T) {
	watchedHost(t, agent.WatchHooks{}, working, func(h *host, a *agent.Agent) {
		t := h.t
		apply(h, a, "r1", 1, slow, 0, 1)
		again := 0
		for range 20 * 60 {
			sleep(time.Second)
			if h.locked(0) == slow {
				sleep(5 * time.Second)
				h.unlock(0)
				again++
			}
		}
		if again != 6 { // the first lock, and five more
			t.Errorf("taken away %d times", again)
		}
		h.wantLocked(free, free)
		if got, err := a.Apply(t.Context(), h.run("r2", 2, quick, 0)); got.Locked ||
			!errors.Is(err, agent.ErrExternalChange) {
			t.Errorf("another run: %+v, %v", got, err)
		}
		end(a, 2)
		closed, err := a.End(t.Context(), 1, "n1")
		if err != nil || !strings.Contains(closed.HandsOff, "somebody else sets the clocks") {
			t.Errorf("%q, %v", closed.HandsOff, err)
		}
		h.wantFree()
	})
}

// deafLibrary has GPUs that take locks and don't heed them.
type deafLibrary struct{ gpu.Library }

type deafDevice struct{ gpu.Device }

func (deafDevice) Set(gpu.Control, gpu.Value) error { return nil }

func (l deafLibrary) Devices() ([]gpu.Device, error) {
	devices, err := l.Library.Devices()
	for i := range devices {
		devices[i] = deafDevice{devices[i]}
	}
	return devices, err
}

// The lock is tried once more, in case that somebody took it away.
func TestALockWithoutEffectIsGivenBack(t *testing.T) {
	deaf := func(t *testing.T) *host {
		t.Helper()
		h := working(t)
		h.options = func(o *agent.Options) { o.Library = deafLibrary{h.library} }
		return h
	}
	watchedHost(t, agent.WatchHooks{}, deaf, func(h *host, a *agent.Agent) {
		apply(h, a, "r1", 1, dvfsmodel.Setting{Core: 1600, Mem: 4000}, 0)
		sleep(90 * time.Second)
		if got := a.State().Runs[0].HandsOff; got != "" {
			h.t.Errorf("given up at once: %s", got)
		}
		sleep(90 * time.Second)
		got := a.State().Runs[0].HandsOff
		if !strings.Contains(got, "no effect") || !strings.Contains(got, "locked at 1600,4000 MHz") {
			h.t.Errorf("%q", got)
		}
		h.wantFree()
		end(a, 1)
	})
}

func TestClocksBelowTheLockAreNobodyElses(t *testing.T) {
	for _, c := range []struct {
		lock, runs dvfsmodel.MHz
		note       string
	}{{1087, 945, ""}, {1380, 802, "far below"}} {
		v100 := func(t *testing.T) *host {
			t.Helper()
			h := newHost(t, "sim:1")
			if err := h.sims[0].Run(anyWork); err != nil {
				t.Fatal(err)
			}
			return h
		}
		watchedHost(t, agent.WatchHooks{}, v100, func(h *host, a *agent.Agent) {
			apply(h, a, "r1", 1, dvfsmodel.Setting{Core: c.lock}, 0)
			sleep(10 * time.Second)
			if err := h.sims[0].Set(gpu.CoreClock, gpu.Value(c.runs)); err != nil {
				h.t.Fatal(err)
			}
			sleep(time.Hour)
			s := a.State()
			if got := notes(a); s.GPUs[0].ExternalChange != "" || s.Runs[0].HandsOff != "" ||
				(got != "") != (c.note != "") || !strings.Contains(got, c.note) {
				h.t.Errorf("%v of %v MHz: %+v, notes %q", float64(c.runs), float64(c.lock), s.GPUs[0], got)
			}
			end(a, 1)
			h.wantFree()
		})
	}
}
