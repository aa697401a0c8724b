package score

import (
	"math"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
)

// DotProd prefers nodes whose free CPUs and GPUs, taken as a vector, have the
// smallest dot product with the demand.
type DotProd struct{ Absolute }

// Score falls as the product grows.
func (DotProd) Score(d *fleet.Demand, n *fleet.Node) (float64, planner.GPUSet) {
	cpu := float64((float64(n.CPU) / largestCPU) * (float64(d.CPU) / largestCPU))
	gpu := float64((float64(n.FreeMilli()) / largestGPU) * (float64(d.GPUMilli()) / largestGPU))
	return math.Trunc(float64(100 * (1 - (cpu+gpu)/2))), 0
}
