package daemon_test

import (
	"context"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm/hooks"
)

// A job that doesn't use its GPU goes to the floor, which the status, the metrics
// and the outcome tell.
func TestARunIsAdaptedAsTheControllerSays(t *testing.T) {
	j := &judge{setting: dvfsmodel.Setting{Core: 1237}, reason: "adapted", adapt: &live.Adaptation{
		SLA: 1.2, TauS: 0.05, Writes: 30, Levels: []live.AdaptLevel{
			{Core: 1380, Stretch: 1, Cost: 1},
			{Core: 1237, Stretch: 1.12, Cost: 0.8},
			{Core: 802, Stretch: 1.19, Cost: 0.7},
		},
	}}
	h := open(t, t.TempDir(), "sim:1", "", j)
	if answer := h.hook(t, hooks.Prolog, 7, 0); !answer.Applied {
		t.Fatalf("%+v", answer)
	}
	eventually(t, "the clock is at the floor", func() bool { return h.core(t, 0) == 802 })
	var run epdapi.Run
	eventually(t, "the status says so", func() bool {
		status, err := h.client.Status(context.Background())
		if err != nil || len(status.Runs) != 1 {
			t.Fatalf("%+v, %v", status, err)
		}
		run = status.Runs[0]
		return run.Core == 802
	})
	if run.SLA != 1.2 || !(run.Slowdown >= 1 && run.Slowdown <= 1.2) {
		t.Errorf("%+v", run)
	}
	eventually(t, "the step is counted", func() bool {
		return h.node.Measure(context.Background()).Steps > 0
	})
	if m := h.node.Measure(context.Background()); m.Adapted != 1 || m.Steps < 1 {
		t.Errorf("%+v", m)
	}
	h.hook(t, hooks.Epilog, 7)
	eventually(t, "the outcome is recorded", func() bool { return j.count() == 1 })
	j.mu.Lock()
	for _, o := range j.kept {
		if slower, known := o.Slowdown.Get(); o.Setting != (dvfsmodel.Setting{Core: 802}) || !known ||
			slower > 1.2 {
			t.Errorf("%+v", o)
		}
	}
	j.mu.Unlock()
	if m := h.node.Measure(context.Background()); m.Adapted != 0 || m.GPUs[0].Locked.Core != 0 {
		t.Errorf("%+v", m)
	}
}
