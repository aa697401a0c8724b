package score

import (
	"math"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
)

// FGD scores how little a placement fragments the node: 50 means that its
// expected fragmentation stays, 100 that it falls by far
// (data/openb/SEMANTICS.md, section 6).
type FGD struct {
	Absolute
	meter *fleet.FragmentationMeter
}

// NewFGD measures fragmentation for a target workload.
func NewFGD(m fleet.Workload) *FGD { return &FGD{meter: fleet.NewFragmentationMeter(m)} }

// Score returns the best of the GPUs that a task can share, the lowest of equals.
func (f *FGD) Score(d *fleet.Demand, n *fleet.Node) (float64, planner.GPUSet) {
	before := f.meter.OfNode(n)
	return bestGPU(d, n, func(after fleet.Node) float64 {
		return math.Trunc(1 / (1 + math.Exp(-((before - f.meter.OfNode(&after)) / fleet.WholeGPU))) * 100)
	})
}

// bestGPU returns the greatest worth of the node after the placement over the GPUs
// that the task can share, and the lowest GPU that reaches it. GPUs of the
// same share are worth the same.
func bestGPU(d *fleet.Demand, n *fleet.Node, worth func(after fleet.Node) float64) (float64, planner.GPUSet) {
	if !d.IsShared() {
		after := *n
		after.Place(d, n.WholeGPUs(d.GPUs))
		return worth(after), 0
	}
	best, gpu := math.Inf(-1), planner.GPUSet(0)
	var tried [fleet.WholeGPU/64 + 1]uint64
	for g, left := range n.GPU[:n.Kind.GPUs] {
		if int(left) < d.Milli || tried[left/64]>>(left%64)&1 == 1 {
			continue
		}
		tried[left/64] |= 1 << (left % 64)
		after := *n
		after.Place(d, 1<<uint(g))
		if x := worth(after); x > best {
			best, gpu = x, 1<<uint(g)
		}
	}
	return best, gpu
}
