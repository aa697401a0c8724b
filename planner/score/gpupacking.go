package score

import (
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
)

// GpuPacking prefers busy GPUs, then idle GPUs of busy nodes, then idle nodes.
type GpuPacking struct{ Absolute }

// Score is 0 for tasks without GPUs.
func (GpuPacking) Score(d *fleet.Demand, n *fleet.Node) (float64, planner.GPUSet) {
	switch {
	case d.GPUs == 0:
		return 0, 0
	case n.BusyGPUs() == 0:
		return float64(33 - n.Kind.GPUs), 0
	case !d.IsShared():
		return float64(50 - d.GPUs), 0
	}
	left := n.GPU[n.TightestGPU(d.Milli).First()]
	if left == fleet.WholeGPU {
		return 50 - 1, 0
	}
	return float64(100 - left/100), 0
}
