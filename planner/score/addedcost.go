package score

import (
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
)

// Prices turn what a placement does to a node into watts.
type Prices struct {
	Fragment   float64 // W for each GPU of expected fragmentation added
	Strand     float64 // W for each free GPU more than the node's free CPU can serve
	CPUsPerGPU float64 // vCPU that a GPU needs to be of use
}

// DefaultPrices returns those of no trace in particular.
func DefaultPrices() Prices { return Prices{Fragment: 200, Strand: 100, CPUsPerGPU: 13} }

// AddedCost scores by one cost: the watts added, fragmentation and stranded GPUs
// at their prices.
type AddedCost struct {
	Absolute
	prices Prices
	meter  *fleet.FragmentationMeter
}

// NewAddedCost measures fragmentation for a target workload.
func NewAddedCost(m fleet.Workload, p Prices) *AddedCost {
	return &AddedCost{prices: p, meter: fleet.NewFragmentationMeter(m)}
}

// Score is minus the cost in watts, of the cheapest GPU that a task can share.
func (p *AddedCost) Score(d *fleet.Demand, n *fleet.Node) (float64, planner.GPUSet) {
	before := p.stateCost(n)
	return bestGPU(d, n, func(after fleet.Node) float64 { return before - p.stateCost(&after) })
}

func (p *AddedCost) stateCost(n *fleet.Node) float64 {
	stranded := max(0, float64(n.FreeMilli())/fleet.WholeGPU-float64(n.CPU)/1000/p.prices.CPUsPerGPU)
	return n.Cost() + float64(p.prices.Fragment*(p.meter.OfNode(n)/fleet.WholeGPU)) +
		float64(p.prices.Strand*stranded)
}
