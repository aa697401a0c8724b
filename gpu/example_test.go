package gpu_test

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
)

// board describes the one GPU model of the examples.
func board(string) (*dvfsmodel.Board, error) {
	clocks := []dvfsmodel.Setting{{Core: 800, Mem: 877}, {Core: 1380, Mem: 877}}
	return &dvfsmodel.Board{
		Name: "V100", Default: clocks[1], Clocks: clocks, Planned: clocks, IdleW: 30, BusyW: 250,
	}, nil
}

// A lock holds until it is released, whoever runs on the GPU. A simulated GPU shows what it costs and saves.
func ExampleOpenSim() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	machine, err := gpu.OpenSim("sim:2", board, &gpu.SimOptions{Now: func() time.Time { return now }})
	if err != nil {
		fmt.Println(err)
		return
	}
	sims, err := machine.Sims()
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, core := range []gpu.Value{1380, 800} {
		d := sims[i]
		locking := d.Set(gpu.CoreClock, core)
		working := d.Run(gpu.Work{PID: 7, Model: dvfsmodel.Params{P0: 80, Gamma: 20, C: 150, D: 3600, Delta: 0.5}})
		if err := errors.Join(locking, working); err != nil {
			fmt.Println(err)
			return
		}
	}
	now = now.Add(2 * time.Hour)
	for _, d := range sims {
		work, err := d.Ended()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%.0f s, %.0f kJ\n", work[0].Took, float64(work[0].Energy)/1000)
		if err := d.Release(gpu.CoreClock); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 3600 s, 900 kJ
	// 4905 s, 603 kJ
}

// Without a counter, energy is power over time.
func ExampleEnergyMeter() {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var meter gpu.EnergyMeter
	for i, power := range []dvfsmodel.Watt{100, 200, 100} {
		meter.Add(gpu.Reading{
			At: begin.Add(time.Duration(10*i) * time.Second), Power: power, Energy: dvfsmodel.Joule(math.NaN()),
		})
	}
	sum := meter.Sum()
	fmt.Println(sum.Joules, sum.Source, sum.Mean(), sum.Peak)
	// Output:
	// 3000 integrated 150 200
}
