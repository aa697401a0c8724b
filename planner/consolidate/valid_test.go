package consolidate_test

import (
	"math"
	"strings"
	"testing"

	"github.com/epplan/epplan/planner/consolidate"
)

// byHand is an instance that no file says.
func byHand() *consolidate.Instance {
	return &consolidate.Instance{
		Physics: consolidate.PaperPhysics(), SLA: consolidate.PaperSLA, SlotS: 1,
		Servers: []consolidate.Server{{StaticW: 50, GPUMemGB: []float64{16, 16}}},
		Tasks: []consolidate.Task{
			{ID: "a", MemGB: 4, GPUs: 1, Kappa: 1.2, UtilPct: []float64{20, 30}},
			{ID: "b", MemGB: 4, GPUs: 1, Kappa: 1.2, UtilPct: []float64{30, 20}},
		},
	}
}

func TestAnInstanceThatMakesNoSenseIsNamed(t *testing.T) {
	for said, spoil := range map[string]func(*consolidate.Instance){
		"":                       func(*consolidate.Instance) {},
		"frequencies []":         func(in *consolidate.Instance) { in.Physics = consolidate.Physics{} },
		"frequencies [900 100]":  func(in *consolidate.Instance) { in.Physics.LevelsMHz = []float64{900, 100} },
		"power NaN W":            func(in *consolidate.Instance) { in.Physics.BaseW = math.NaN() },
		"step of 0 MHz":          func(in *consolidate.Instance) { in.Physics.StepMHz = 0 },
		"slots of 0 s":           func(in *consolidate.Instance) { in.SlotS = 0 },
		"contention":             func(in *consolidate.Instance) { in.Contention = &consolidate.Curve{} },
		"1 servers and 0 tasks":  func(in *consolidate.Instance) { in.Tasks = nil },
		"0 servers and 2 tasks":  func(in *consolidate.Instance) { in.Servers = nil },
		"draws -1 W":             func(in *consolidate.Instance) { in.Servers[0].StaticW = -1 },
		"has no GPUs":            func(in *consolidate.Instance) { in.Servers[0].GPUMemGB = nil },
		"GPU 1 has NaN GB":       func(in *consolidate.Instance) { in.Servers[0].GPUMemGB[1] = math.NaN() },
		"1 names of 2 GPUs":      func(in *consolidate.Instance) { in.Servers[0].GPUIDs = []string{"x"} },
		"takes NaN GB":           func(in *consolidate.Instance) { in.Tasks[0].MemGB = math.NaN() },
		"needs 0 GPUs":           func(in *consolidate.Instance) { in.Tasks[1].GPUs = 0 },
		"needs 3 GPUs":           func(in *consolidate.Instance) { in.Tasks[1].GPUs = 3 },
		"kappa 0":                func(in *consolidate.Instance) { in.Tasks[1].Kappa = 0 },
		`task 1, "b": 1 slots`:   func(in *consolidate.Instance) { in.Tasks[1].UtilPct = []float64{1} },
		"utilisation NaN":        func(in *consolidate.Instance) { in.Tasks[0].UtilPct[0] = math.NaN() },
		"runs on 2 GPUs, want 1": func(in *consolidate.Instance) { in.Tasks[0].On = []int{0, 1} },
		"runs on GPU 7":          func(in *consolidate.Instance) { in.Tasks[0].On = []int{7} },
	} {
		in := byHand()
		spoil(in)
		if err := in.Validate(); (err == nil) != (said == "") || (err != nil && !strings.Contains(err.Error(), said)) {
			t.Errorf("error is %v, want one with %q", err, said)
		}
	}
}

func TestWithoutTasksEverythingSleeps(t *testing.T) {
	in := byHand()
	in.Tasks = nil
	placement, watts := consolidate.Improve(t.Context(), in, consolidate.Safe, consolidate.Placement{}, consolidate.ImproveOptions{})
	exact := consolidate.Exact(t.Context(), in, consolidate.Safe, consolidate.ExactOptions{})
	moved := consolidate.Rearrange(t.Context(), in, consolidate.Safe, nil, consolidate.MoveOptions{Most: 1})
	if watts != 0 || exact.PowerW != 0 || !exact.Proven || len(moved.ByMoves) != 1 || moved.ByMoves[0] != 0 {
		t.Errorf("%v W, exactly %+v, rearranged %+v, want 0 W, proven, without a move", watts, exact, moved)
	}
	for _, p := range []consolidate.Placement{placement, exact.Placement, moved.Placement} {
		if v := consolidate.Judge(in, p); !v.Feasible() || v.GPUsOn != 0 || len(v.Faults) > 0 {
			t.Errorf("placement %+v is judged %+v, want all GPUs asleep", p, v)
		}
	}
}
