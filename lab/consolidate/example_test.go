package consolidate_test

import (
	"context"
	"fmt"

	"github.com/epplan/epplan/lab/consolidate"
	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

// An instance made by hand, placed by the paper's rule and by an exact search.
func ExampleExact() {
	in := &sharing.Instance{
		Physics: sharing.PaperPhysics(),
		SLA:     sharing.PaperSLA,
		SlotS:   60,
		Servers: []sharing.Server{{StaticW: 50, GPUMemGB: []float64{16, 16}}},
		Tasks: []sharing.Task{
			{ID: "a", MemGB: 6, GPUs: 1, Kappa: 1.2, UtilPct: []float64{70, 10}},
			{ID: "b", MemGB: 6, GPUs: 1, Kappa: 1.2, UtilPct: []float64{60, 20}},
			{ID: "c", MemGB: 6, GPUs: 1, Kappa: 1.2, UtilPct: []float64{20, 80}},
		},
	}
	if err := in.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	for _, policy := range share.Policies() {
		if policy.Name != "cats" {
			continue
		}
		placement := share.Place(in, policy.Rule, policy.Clocks)
		verdict := share.Evaluate(in, placement)
		fmt.Printf("%s: GPUs %v, %.0f W, %d tasks too slow\n", policy.Name, placement.GPUs, verdict.PowerW,
			verdict.Violations)
	}
	best := consolidate.Exact(context.Background(), in, share.Safe, consolidate.ExactOptions{})
	verdict := share.Evaluate(in, best.Placement)
	fmt.Printf("exact: %.0f W, proven %v, %d GPUs on, %d tasks too slow\n", verdict.PowerW, best.Proven,
		verdict.GPUsOn, verdict.Violations)
	// Output:
	// cats: GPUs [[0] [1] [0]], 299 W, 0 tasks too slow
	// exact: 299 W, proven true, 2 GPUs on, 0 tasks too slow
}
