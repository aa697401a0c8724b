package agent_test

import (
	"errors"
	"math"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/internal/nodepower"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

// A site's own Epilog runs for seven seconds before the node's epd is told.
func TestOfARunWhoseEpilogIsLateOnlyTheJobsOwnTimeCounts(t *testing.T) {
	metered(t, noTrouble(t), func(h *host, a *agent.Agent, _ *atomic.Bool) {
		t := h.t
		if err := h.sims[0].Run(anyWork); err != nil {
			t.Fatal(err)
		}
		apply(h, a, "r1", 1, slow, 0)
		first, err := h.sims[0].Read()
		if err != nil {
			t.Fatal(err)
		}
		sleep(20*time.Second + 400*time.Millisecond) // between two looks
		ended := time.Now()
		last, err := h.sims[0].Read()
		if err != nil {
			t.Fatal(err)
		}
		if err := h.sims[0].Stop(anyWork.PID); err != nil {
			t.Fatal(err)
		}
		sleep(7 * time.Second)
		if _, err := a.End(t.Context(), 1, "n1"); err != nil {
			t.Fatal(err)
		}
		h.wantFree()
		closed, err := a.Runs().EndedAt("r1", ended)
		if err != nil {
			t.Fatal(err)
		}
		got := closed.Outcome
		wantCutOff(t, &got, ended, 20.4, float64(last.Energy-first.Energy))
		if host := hostOf(&got); math.Abs(host-200*20.4) > 1 {
			t.Errorf("host %v J, want %v", host, 200*20.4)
		}
		if again, err := a.Runs().EndedAt("r1", ended.Add(-10*time.Second)); err != nil ||
			!reflect.DeepEqual(again.Outcome, got) {
			t.Errorf("corrected twice: %+v, %v", again.Outcome, err)
		}
		if kept := h.started().Runs().Ended(); len(kept) != 1 || !kept[0].Outcome.Ended.Equal(ended) {
			t.Errorf("on file: %+v", kept)
		}
	})
}

// wantCutOff wants a run of one GPU at full work to have ended then. Its end lies
// between two looks, so that a part of a second is idle, as far as anybody can tell.
func wantCutOff(t *testing.T, got *record.Outcome, ended time.Time, seconds, joules float64) {
	t.Helper()
	if !got.Ended.Equal(ended) || math.Abs(got.TimeS.Or(-1)-seconds) > 0.01 || got.GPUSource != record.Counter {
		t.Errorf("ended %s, %s s from %s; want %s and %v s", got.Ended, got.TimeS, got.GPUSource, ended, seconds)
	}
	if math.Abs(got.GPUEnergyJ.Or(-1)-joules) > 0.03*joules {
		t.Errorf("%s J, want %v", got.GPUEnergyJ, joules)
	}
	if got.Utilisation.Or(0) < 0.97 || got.PeakMemoryBytes != live.Known(float64(anyWork.Mem)) ||
		len(got.Clocks) != 1 || got.Clocks[0].Core != slow.Core ||
		math.Abs(got.Clocks[0].Seconds-seconds) > 0.01 {
		t.Errorf("%+v", got)
	}
	if points := len(got.Readings.Power); points != 21 {
		t.Errorf("%d readings, want one a second", points)
	}
}

func TestAnEndThatIsNotTheRunsOrNotMuchEarlierLeavesItAsItWasMeasured(t *testing.T) {
	for name, at := range map[string]func(started, ended time.Time) time.Time{
		"nobody knows":   func(_, _ time.Time) time.Time { return time.Time{} },
		"a second":       func(_, ended time.Time) time.Time { return ended.Add(-time.Second) },
		"two":            func(_, ended time.Time) time.Time { return ended.Add(-2 * time.Second) },
		"later":          func(_, ended time.Time) time.Time { return ended.Add(time.Hour) },
		"its start":      func(started, _ time.Time) time.Time { return started },
		"before it":      func(started, _ time.Time) time.Time { return started.Add(-time.Hour) },
		"another job's":  func(_, _ time.Time) time.Time { return time.Unix(0, 0) },
		"in three years": func(_, ended time.Time) time.Time { return ended.AddDate(3, 0, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			watched(t, agent.WatchHooks{}, func(h *host, a *agent.Agent) {
				t := h.t
				apply(h, a, "r1", 1, slow, 0)
				sleep(30 * time.Second)
				was, err := a.End(t.Context(), 1, "n1")
				if err != nil {
					t.Fatal(err)
				}
				got, err := a.Runs().EndedAt("r1", at(was.Run.Started, was.Outcome.Ended))
				if err != nil || !reflect.DeepEqual(got, was) {
					t.Errorf("%+v, %v; want %+v", got, err, was)
				}
			})
		})
	}
}

func TestOnlyTheEndOfARunThatEndedIsCorrected(t *testing.T) {
	watched(t, agent.WatchHooks{}, func(h *host, a *agent.Agent) {
		t := h.t
		apply(h, a, "r1", 1, slow, 0)
		sleep(30 * time.Second)
		for _, id := range []string{"r1", "r2"} {
			if _, err := a.Runs().EndedAt(id, time.Now().Add(-10*time.Second)); !errors.Is(err, agent.ErrNoRun) {
				t.Errorf("%s: %v", id, err)
			}
		}
		was, err := a.End(t.Context(), 1, "n1")
		if err != nil {
			t.Fatal(err)
		}
		// After a restart nobody remembers what was measured when.
		again := h.started()
		got, err := again.Runs().EndedAt("r1", time.Now().Add(-10*time.Second))
		if err != nil || !got.Outcome.Ended.Equal(was.Outcome.Ended) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// Whatever a sampler is told later, until a time it is as one that was told no more.
func TestASamplerUntilATimeIsOneThatWasToldNoMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		uuids := []string{"GPU-1", "GPU-2"}
		run := live.Run{GPUs: uuids, Started: noon}
		whole, want := agent.NewSampler(run), agent.NewSampler(run)
		told := rapid.IntRange(1, 400).Draw(t, "readings")
		cut := rapid.IntRange(1, told).Draw(t, "of the run")
		at, end := noon, noon
		for i := range told {
			step := nodepower.EnergyStep{
				Energy: 50, Time: time.Duration(rapid.IntRange(1, 1500).Draw(t, "ms")) * time.Millisecond,
				Known: true,
			}
			at = at.Add(step.Time)
			for k, uuid := range uuids {
				r := gpu.Reading{
					At: at, Power: dvfsmodel.Watt(rapid.IntRange(-1, 300).Draw(t, "W")),
					Energy:      dvfsmodel.Joule(100 * (i + k)),
					Core:        dvfsmodel.MHz(rapid.IntRange(0, 3).Draw(t, "core")),
					Utilisation: rapid.Float64Range(0, 1).Draw(t, "used"),
					MemUsed:     int64(i), MemTotal: 1 << 20,
				}
				whole.Add(uuid, r)
				if i < cut {
					want.Add(uuid, r)
				}
			}
			whole.AddHost(at, step, 0.5)
			if i < cut {
				want.AddHost(at, step, 0.5)
				end = at
			}
		}
		got := whole.Until(end)
		if got == nil {
			if late := at.Sub(end); late <= 3*time.Minute {
				t.Fatalf("nothing is known of %v before", late)
			}
			return
		}
		if a, b := got.Close(end), want.Close(end); !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v, want %+v", a, b)
		}
	})
}

func TestWhatASamplerRemembersIsBounded(t *testing.T) {
	for every, want := range map[time.Duration]int{
		100 * time.Millisecond: 1801,
		2 * time.Millisecond:   20_000,
	} {
		s := agent.NewSampler(live.Run{GPUs: []string{"GPU-1"}, Started: noon})
		for i := range 100_000 {
			s.Add("GPU-1", gpu.Reading{At: noon.Add(time.Duration(i) * every), Power: 100})
		}
		if n := s.Remembered(); n != want {
			t.Errorf("%d readings, want %d", n, want)
		}
		if s.Until(noon.Add(time.Minute)) != nil {
			t.Error("what was long ago is known")
		}
	}
}
