package agent_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
	"github.com/epplan/epplan/live"
)

func TestAYoungRunThatEndedWhileThereWasNoAgentIsClosedWithSlurmsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, twoGPUs)
		apply(h, h.started(), "r1", 1, slow, 0)
		ended := time.Now().Add(5 * time.Second)
		sleep(10 * time.Second) // dead
		a := h.started()
		if err := a.Sample(t.Context()); err != nil {
			t.Fatal(err)
		}
		swept, err := a.Sweep(t.Context(), goneAt(ended), alive) // another job is on the GPU
		if err != nil || len(swept.Closed) != 1 {
			t.Fatalf("closed %+v, %v", swept.Closed, err)
		}
		got := swept.Closed[0].Outcome
		if !got.Ended.Equal(ended) || got.Restarted.TimeS.Or(0) != 5 || got.TimeS != (live.Number{}) {
			t.Errorf("ended %s after %s s, want %s after 5", got.Ended, got.Restarted.TimeS, ended)
		}
		if got.MeanPowerW != (live.Number{}) || got.Restarted.GPUEnergyJ != (live.Number{}) ||
			!got.Readings.IsZero() {
			t.Errorf("%s W and %s J of later than its end", got.MeanPowerW, got.Restarted.GPUEnergyJ)
		}
	})
}

func TestARunIsNotClosedByAStartOfTheAgentAlone(t *testing.T) {
	unsure := func(context.Context, live.Run) (live.Outlook, error) { return live.Outlook{}, nil }
	for name, probes := range map[string][2]agent.JobProbe{
		"it runs":                       {alive, ignoreMissing},
		"Slurm can't say":               {unsure, ignoreMissing},
		"Slurm forgot it, but GPUs run": {ignoreMissing, alive},
	} {
		h := newHost(t, twoGPUs)
		apply(h, h.started(), "r1", 1, slow, 0)
		a := h.started()
		if swept, err := a.Sweep(t.Context(), probes[0], probes[1]); err != nil || len(swept.Closed) != 0 ||
			len(a.State().Runs) != 1 {
			t.Errorf("%s: closed %+v, %v", name, swept.Closed, err)
		}
	}
}

func TestOfAJobThatSlurmForgotTheEndIsNotKnown(t *testing.T) {
	h := newHost(t, twoGPUs)
	apply(h, h.started(), "r1", 1, slow, 0)
	swept, err := h.started().Sweep(t.Context(), ignoreMissing, ignoreMissing)
	if err != nil || len(swept.Closed) != 1 {
		t.Fatalf("closed %+v, %v", swept.Closed, err)
	}
	if got := swept.Closed[0].Outcome; got.TimeS != (live.Number{}) || !got.Restarted.IsZero() {
		t.Errorf("%+v", got)
	}
}

func TestGPUsAreVacatedOfRunsWhoseJobsAreGoneAndOfNoOthers(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	apply(h, a, "r1", 1, slow, 0)
	apply(h, a, "r2", 2, slow, 1)
	a = h.started()
	apply(h, a, "r3", 3, slow, 0) // it began just now
	closed, err := a.CloseGoneOn(t.Context(), h.uuids[:1], goneAt(time.Now()), ignoreMissing)
	if err != nil || len(closed) != 1 || closed[0].Run.ID != "r1" {
		t.Errorf("closed %+v, %v", closed, err)
	}
	if open := a.State().Runs; len(open) != 3 || !open[0].Ended || open[1].Ended || open[2].Ended {
		t.Errorf("%+v", open)
	}
}

func TestARunOverARestartKeepsItsTimeAndTheEnergyThatTheCounterSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, twoGPUs)
		if err := h.sims[0].Run(anyWork); err != nil {
			t.Fatal(err)
		}
		apply(h, h.started(), "r1", 1, slow, 0)
		before, err := h.sims[0].Read()
		if err != nil {
			t.Fatal(err)
		}
		sleep(40 * time.Second)
		a := h.started()
		sleep(20 * time.Second)
		after, err := h.sims[0].Read()
		if err != nil {
			t.Fatal(err)
		}
		closed, err := a.End(t.Context(), 1, "n1")
		if err != nil {
			t.Fatal(err)
		}
		got, want := closed.Outcome, float64(after.Energy-before.Energy)
		if math.Abs(got.Restarted.GPUEnergyJ.Or(-1)-want) > 1e-3*want || got.TimeS != (live.Number{}) ||
			math.Abs(got.Restarted.TimeS.Or(0)-60) > 0.1 {
			t.Errorf("%+v and %s s, want %v J in 60 s", got.Restarted, got.TimeS, want)
		}
	})
}

func TestACounterThatBeganAnewSaysNothingOfARunOverARestart(t *testing.T) {
	for name, fault := range map[string]func(h *host){
		"another boot": func(h *host) { h.boot = "boot-2" },
		"a reset": func(h *host) {
			if err := h.sims[0].InjectFault(gpu.FaultReset); err != nil {
				h.t.Fatal(err)
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHost(t, twoGPUs)
			if err := h.sims[0].Run(anyWork); err != nil {
				t.Fatal(err)
			}
			sleep(time.Hour)
			apply(h, h.started(), "r1", 1, slow, 0)
			sleep(40 * time.Second)
			fault(h)
			a := h.started()
			sleep(20 * time.Second)
			closed, err := a.End(t.Context(), 1, "n1")
			if err != nil {
				t.Fatal(err)
			}
			if r := closed.Outcome.Restarted; r.GPUEnergyJ != (live.Number{}) || r.TimeS == (live.Number{}) {
				t.Errorf("%s: %s J in %s s", name, r.GPUEnergyJ, r.TimeS)
			}
		})
	}
}

func TestARunThatSlurmEndedBeforeKeepsWhatWasMeasuredUpToThen(t *testing.T) {
	for passed, seconds := range map[time.Duration]float64{2 * time.Minute: 60, 30 * time.Minute: 0} {
		watched(t, agent.WatchHooks{}, func(h *host, a *agent.Agent) {
			t := h.t
			apply(h, a, "r1", 1, slow, 0)
			ended := time.Now().Add(time.Minute)
			sleep(time.Minute + passed)
			swept, err := a.Sweep(t.Context(), goneAt(ended), alive)
			if err != nil || len(swept.Closed) != 1 {
				t.Fatalf("closed %+v, %v", swept.Closed, err)
			}
			got := swept.Closed[0].Outcome
			covered := 0.0
			for _, at := range got.Clocks {
				covered += at.Seconds
			}
			if !got.Ended.Equal(ended) || got.TimeS != live.Known(60) || !near(covered, seconds) ||
				(got.GPUEnergyJ != (live.Number{})) != (seconds > 0) {
				t.Errorf("%v later: ended %s, want %s with readings of %v s: %+v", passed, got.Ended, ended,
					seconds, got)
			}
		})
	}
}
