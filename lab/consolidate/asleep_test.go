package consolidate_test

import (
	"testing"

	"github.com/epplan/epplan/lab/consolidate"
	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

func TestWithoutTasksEverythingSleeps(t *testing.T) {
	in := &sharing.Instance{
		Physics: sharing.PaperPhysics(), SLA: 1.2, SlotS: 60,
		Servers: []sharing.Server{{StaticW: 100, OtherW: 20, GPUMemGB: []float64{16, 32}}},
	}
	placement, watts := consolidate.Improve(t.Context(), in, share.Safe, share.Placement{},
		consolidate.ImproveOptions{})
	exact := consolidate.Exact(t.Context(), in, share.Safe, consolidate.ExactOptions{})
	if watts != 0 || exact.PowerW != 0 || !exact.Proven {
		t.Errorf("%v W, exactly %+v, want 0 W, proven", watts, exact)
	}
	for _, p := range []share.Placement{placement, exact.Placement} {
		if v := share.Evaluate(in, p); !v.Feasible() || v.GPUsOn != 0 || len(v.Faults) > 0 {
			t.Errorf("placement %+v is judged %+v, want all GPUs asleep", p, v)
		}
	}
}
