package score

import (
	"math"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
)

// PWR scores how little a placement adds to the node's power: minus the watts,
// stretched over the nodes in whole steps (PWR+FGD paper, algorithm 1).
type PWR struct{}

// Score is minus the added watts. A task that shares a GPU gets the first of
// those where it adds the least: a busy one, or else an idle one.
func (PWR) Score(d *fleet.Demand, n *fleet.Node) (float64, planner.GPUSet) {
	p := &n.Kind.Power
	before := n.Cost()
	cpu := p.CPU(n.Kind.CPU, n.CPU-d.CPU)
	busy := n.BusyGPUs()
	if !d.IsShared() {
		return before - p.Cost(cpu+p.GPU(n.Kind.GPUs, busy+d.GPUs)), 0
	}
	first := [2]int{-1, -1} // busy and idle GPUs with room
	for g, left := range n.GPU[:n.Kind.GPUs] {
		idle := int(left) / fleet.WholeGPU
		if int(left) >= d.Milli && first[idle] < 0 {
			first[idle] = g
		}
	}
	best, gpu := math.Inf(-1), 0
	for idle, g := range first {
		x := before - p.Cost(cpu+p.GPU(n.Kind.GPUs, busy+idle))
		if g >= 0 && (x > best || (x == best && g < gpu)) {
			best, gpu = x, g
		}
	}
	return best, 1 << uint(gpu)
}

// Stretch is 100 for all nodes if they are equal.
func (PWR) Stretch(score, lowest, highest float64) float64 {
	if lowest == highest {
		return 100
	}
	return scaleTo100(score, lowest, highest)
}

// scaleTo100 maps lowest..highest onto 0..100, rounded down.
func scaleTo100(score, lowest, highest float64) float64 {
	return math.Trunc((score - lowest) * 100 / (highest - lowest))
}
