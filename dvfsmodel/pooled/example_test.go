package pooled_test

import (
	"fmt"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/dvfsmodel/pooled"
)

// Two measured settings are enough to choose clocks, by what other workloads
// have in common.
func ExampleCurves_Condition() {
	base := dvfsmodel.Setting{Core: 1380, Mem: 877}
	runs := []dvfsmodel.Sample{
		{Core: 1380, Mem: 877, Time: 100, Power: 210},
		{Core: 1080, Mem: 877, Time: 112, Power: 140},
	}
	known, err := pooled.BuiltinCurves().Condition(runs, base, pooled.NoiseOf(runs))
	if err != nil {
		fmt.Println(err)
		return
	}
	var clocks []dvfsmodel.Setting
	for core := dvfsmodel.MHz(780); core <= 1380; core += 150 {
		clocks = append(clocks, dvfsmodel.Setting{Core: core, Mem: 877})
	}
	belief := known.Belief(clocks, 0)
	best := belief.At(belief.Best(nil))
	fmt.Printf("%v MHz: %.0f s at %.0f W\n", best.Core, best.Time, best.Power)
	next := belief.At(belief.NextProbe(nil, pooled.NoiseOf(runs)))
	fmt.Printf("measure %v MHz next\n", next.Core)
	// Output:
	// 930 MHz: 126 s at 123 W
	// measure 780 MHz next
}
