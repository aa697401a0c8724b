package agent_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
)

func TestARunsProfileIsOfEachOfItsGPUsAndSmall(t *testing.T) {
	outcome, _ := sampled(1001, func(i int) gpu.Reading {
		r := gpu.Reading{Power: 100, Utilisation: float64(i / 500 % 2), MemUsed: 4 << 30, MemTotal: 16 << 30}
		if i > 500 {
			r.MemUsed = 8 << 30
		}
		return r
	})
	p := &outcome.Profile
	if !p.Alone || len(p.GPUs) != 1 {
		t.Fatalf("%+v", p)
	}
	g := &p.GPUs[0]
	if g.Utilisation.Len() > record.MaxProfilePoints || g.Utilisation.Interval() != 16*time.Second ||
		g.PeakMem != 8<<30 || g.MemTotal != 16<<30 {
		t.Errorf("%d points of %v, peak %d of %d", g.Utilisation.Len(), g.Utilisation.Interval(),
			g.PeakMem, g.MemTotal)
	}
	if g.Utilisation.At(10) != live.Known(0) || g.Utilisation.At(50) != live.Known(1) ||
		g.Memory.At(10) != live.Known(0.25) || g.Memory.At(50) != live.Known(0.5) {
		t.Errorf("utilisation %v, %v, memory %v, %v", g.Utilisation.At(10), g.Utilisation.At(50),
			g.Memory.At(10), g.Memory.At(50))
	}
}

func TestAProfileWithoutMemoryHasNoSeriesOfIt(t *testing.T) {
	outcome, _ := sampled(10, func(int) gpu.Reading { return gpu.Reading{Utilisation: 0.5, MemUsed: -1} })
	g := &outcome.Profile.GPUs[0]
	if g.PeakMem != -1 || g.MemTotal != -1 || g.Memory.Len() != 0 || g.Utilisation.Len() != 9 {
		t.Errorf("%+v", g)
	}
}

// The outcome waits in the run's file, over restarts, until it is safe elsewhere.
func TestAProfileOutlivesTheAgentUntilItsRunIsForgotten(t *testing.T) {
	h := newHost(t, "sim:1")
	a := h.started()
	if _, err := a.Apply(t.Context(), h.run("r", 1, dvfsmodel.Setting{}, 0)); err != nil {
		t.Fatal(err)
	}
	closed, err := a.End(t.Context(), 1, "n1")
	if err != nil {
		t.Fatal(err)
	}
	ended := h.started().Runs().Ended()
	if len(ended) != 1 || !reflect.DeepEqual(ended[0].Outcome.Profile, closed.Outcome.Profile) ||
		!ended[0].Outcome.Profile.Alone {
		t.Errorf("%+v, want the profile %+v", ended, closed.Outcome.Profile)
	}
}

// However short the time was in which another run had the GPU, too.
func TestOnlyARunThatNobodyWasBesideHasItsProfileAlone(t *testing.T) {
	h := newHost(t, "sim:2")
	a := h.started()
	for _, r := range []live.Run{
		h.run("long", 1, dvfsmodel.Setting{}, 0), h.run("alone", 2, dvfsmodel.Setting{}, 1),
		h.run("short", 3, dvfsmodel.Setting{}, 0),
	} {
		if _, err := a.Apply(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		job   uint32
		alone bool
	}{{3, false}, {1, false}, {2, true}} {
		closed, err := a.End(t.Context(), c.job, "n1")
		if err != nil || closed.Outcome.Profile.Alone != c.alone || len(closed.Outcome.Profile.GPUs) != 1 {
			t.Errorf("job %d: %+v, %v", c.job, closed.Outcome.Profile, err)
		}
	}
}
