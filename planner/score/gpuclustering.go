package score

import (
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
)

// GpuClustering keeps tasks of one kind together: those that share GPUs, and
// those of each number of whole GPUs.
type GpuClustering struct{ Absolute }

// Score is 0 for tasks without GPUs.
func (GpuClustering) Score(d *fleet.Demand, n *fleet.Node) (float64, planner.GPUSet) {
	if d.GPUs == 0 {
		return 0, 0
	}
	score := 25 * (largestGPU - n.FreeMilli()) / largestGPU
	switch n.TaskMix(d) {
	case fleet.OnlySame:
		score += 75
	case fleet.SomeSame:
		score += 50
	case fleet.Alone:
		score += 25
	case fleet.OnlyOthers:
	}
	return float64(score), 0
}
