package score

import (
	"math"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
)

// The largest node of the paper's cluster: rivals measure nodes by it.
const (
	largestCPU = 128_000 // milli-vCPU
	largestGPU = 8 * fleet.WholeGPU
)

// BestFit prefers nodes with little left after the placement.
type BestFit struct{}

// Score is 100 for a node that is full then.
func (BestFit) Score(d *fleet.Demand, n *fleet.Node) (float64, planner.GPUSet) {
	cpu := float64(float64(n.CPU-d.CPU) / largestCPU * 0.5)
	gpu := float64(float64(n.FreeMilli()-d.GPUMilli()) / largestGPU * 0.5)
	return math.Trunc(float64((1 - (cpu + gpu)) * 100)), 0
}

// Stretch is 0 for all nodes if they are equal.
func (BestFit) Stretch(score, lowest, highest float64) float64 {
	if lowest == highest {
		return 0
	}
	return scaleTo100(score, lowest, highest)
}
