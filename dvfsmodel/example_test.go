package dvfsmodel_test

import (
	"errors"
	"fmt"
	"math"

	"github.com/epplan/epplan/dvfsmodel"
)

// Six measured settings become a model, and the model chooses among all clocks
// that the GPU supports.
func ExampleFit() {
	samples := []dvfsmodel.Sample{
		{Core: 700, Mem: 800, Time: 149.5, Power: 87},
		{Core: 700, Mem: 1000, Time: 141.2, Power: 92},
		{Core: 850, Mem: 800, Time: 130.6, Power: 110},
		{Core: 850, Mem: 1000, Time: 121.4, Power: 114},
		{Core: 1000, Mem: 800, Time: 117.8, Power: 165},
		{Core: 1000, Mem: 1000, Time: 110.1, Power: 171},
	}
	base := dvfsmodel.Setting{Core: 1000, Mem: 1000} // the GPU's default clocks
	model, err := dvfsmodel.Fit(samples, base, nil)
	if err != nil {
		fmt.Println(err)
		return
	}

	var pairs []dvfsmodel.Setting
	for core := dvfsmodel.MHz(700); core <= 1000; core += 25 {
		pairs = append(pairs, dvfsmodel.Setting{Core: core, Mem: 800},
			dvfsmodel.Setting{Core: core, Mem: 1000})
	}
	table, err := dvfsmodel.NewTable(base, pairs, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, limit := range []float64{math.Inf(1), 115} {
		best, err := table.OptimumOf(model, dvfsmodel.MinEnergy(), limit)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("within %v s: %v/%v MHz, %.0f s, %.0f W\n", limit, best.Core, best.Mem,
			best.Time, best.Power)
	}
	// Output:
	// within +Inf s: 775/1000 MHz, 131 s, 93 W
	// within 115 s: 925/1000 MHz, 115 s, 140 W
}

// What can't be done in time is an answer: the shortest time that can.
func ExampleTable_Optimum() {
	params := dvfsmodel.Params{P0: 60, Gamma: 30, C: 110, D: 90, Delta: 0.6, T0: 10}
	table, err := dvfsmodel.NewTable(dvfsmodel.Setting{Core: 1000, Mem: 1000},
		[]dvfsmodel.Setting{{Core: 700, Mem: 1000}, {Core: 850, Mem: 1000}, {Core: 1000, Mem: 1000}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	best, err := table.Optimum(params, dvfsmodel.MinEnergy(), 120)
	fmt.Printf("%v MHz, %.1f s, %.0f J, %v\n", best.Core, best.Time, best.Energy, err)

	_, err = table.Optimum(params, dvfsmodel.MinEnergy(), 50)
	if infeasible, ok := errors.AsType[*dvfsmodel.InfeasibleError](err); ok {
		fmt.Println("the shortest is", infeasible.MinTime, "s")
	}
	// Output:
	// 850 MHz, 109.5 s, 15542 J, <nil>
	// the shortest is 100 s
}

// The paper's continuous range: a free optimum, and one that a deadline binds.
func ExampleRange_Optimum() {
	params := dvfsmodel.Params{P0: 60, Gamma: 30, C: 110, D: 90, Delta: 0.6, T0: 10}
	wide := dvfsmodel.WideRange()
	for _, limit := range []float64{math.Inf(1), 90} {
		best, err := wide.Optimum(params, dvfsmodel.MinEnergy(), limit)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("core %.3f, memory %.3f, voltage %.3f: %.1f s, %.0f J\n", best.Scaling.Fc, best.Scaling.Fm,
			best.Scaling.V, best.Time, best.Energy)
	}
	// Output:
	// core 0.700, memory 1.088, voltage 0.580: 120.2 s, 14253 J
	// core 1.080, memory 1.200, voltage 1.173: 90.0 s, 23346 J
}
