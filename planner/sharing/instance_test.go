package sharing_test

import (
	"math"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/sharing"
)

// byHand returns an instance that no file says.
func byHand() *sharing.Instance {
	return &sharing.Instance{
		Physics: sharing.PaperPhysics(), SLA: sharing.PaperSLA, SlotS: 1,
		Servers: []sharing.Server{{StaticW: 50, GPUMemGB: []float64{16, 16}}},
		Tasks: []sharing.Task{
			{ID: "a", MemGB: 4, GPUs: 1, Kappa: 1.2, UtilPct: []float64{20, 30}},
			{ID: "b", MemGB: 4, GPUs: 1, Kappa: 1.2, UtilPct: []float64{30, 20}},
		},
	}
}

func TestAnInstanceThatMakesNoSenseIsNamed(t *testing.T) {
	for said, spoil := range map[string]func(*sharing.Instance){
		"":               func(*sharing.Instance) {},
		"frequencies []": func(in *sharing.Instance) { in.Physics = sharing.Physics{} },
		"frequencies [900 100]": func(in *sharing.Instance) {
			in.Physics.LevelsMHz = []dvfsmodel.MHz{900, 100}
		},
		"power NaN W":           func(in *sharing.Instance) { in.Physics.BaseW = math.NaN() },
		"step of 0 MHz":         func(in *sharing.Instance) { in.Physics.StepMHz = 0 },
		"slots of 0 s":          func(in *sharing.Instance) { in.SlotS = 0 },
		"contention":            func(in *sharing.Instance) { in.Contention = &sharing.Curve{} },
		"1 servers and 0 tasks": func(in *sharing.Instance) { in.Tasks = nil },
		"0 servers and 2 tasks": func(in *sharing.Instance) { in.Servers = nil },
		"draws -1 W":            func(in *sharing.Instance) { in.Servers[0].StaticW = -1 },
		"has no GPUs":           func(in *sharing.Instance) { in.Servers[0].GPUMemGB = nil },
		"GPU 1 has NaN GB":      func(in *sharing.Instance) { in.Servers[0].GPUMemGB[1] = math.NaN() },
		"takes NaN GB":          func(in *sharing.Instance) { in.Tasks[0].MemGB = math.NaN() },
		"needs 0 GPUs":          func(in *sharing.Instance) { in.Tasks[1].GPUs = 0 },
		"needs 3 GPUs":          func(in *sharing.Instance) { in.Tasks[1].GPUs = 3 },
		"kappa 0":               func(in *sharing.Instance) { in.Tasks[1].Kappa = 0 },
		`task 1, "b": 1 slots`:  func(in *sharing.Instance) { in.Tasks[1].UtilPct = []float64{1} },
		"utilisation NaN":       func(in *sharing.Instance) { in.Tasks[0].UtilPct[0] = math.NaN() },
	} {
		in := byHand()
		spoil(in)
		if err := in.Validate(); (err == nil) != (said == "") ||
			(err != nil && !strings.Contains(err.Error(), said)) {
			t.Errorf("error is %v, want one with %q", err, said)
		}
	}
}
