package planner

import (
	"strconv"

	"github.com/epplan/epplan/dvfsmodel"
)

// Cost is the problem's objective of a whole plan, less is better:
//
//	(EnergyWeight·E + TimeWeight·T) · T^DelayPower
//
// with E the energy of everything, joules, idle GPUs, hosts, switching on and sleep
// included, and T the time that tasks hold GPUs, GPU-seconds. Tasks that aren't
// placed cost nothing: compare plans that place the same ones.
func (p *Problem) Cost(plan *Plan) float64 {
	return p.Objective.Cost(dvfsmodel.Point{Energy: plan.Ledger.Total(), Time: plan.GPUSeconds(p)})
}

// GPUSeconds is how long the tasks hold GPUs, in all: a task's run time counts once
// for each of its GPUs, or by its share of one.
func (plan *Plan) GPUSeconds(p *Problem) float64 {
	sum := 0.0
	for i := range plan.Assignments {
		if a := &plan.Assignments[i]; a.Node >= 0 {
			sum += weight(&p.Tasks[i], a) * (a.End - a.Start)
		}
	}
	return sum
}

// CostUnit is what [Problem.Cost] is in, such as "J", "J + 50·GPU·s" or "J·GPU·s":
// numbers are the weights.
func (p *Problem) CostUnit() string {
	weighted := func(weight float64, unit string) string {
		if weight == 1 {
			return unit
		}
		return strconv.FormatFloat(weight, 'g', -1, 64) + "·" + unit
	}
	const seconds = "GPU·s"
	o, sum := p.Objective, "J"
	switch {
	case o.EnergyWeight > 0 && o.TimeWeight > 0:
		sum = weighted(o.EnergyWeight, "J") + " + " + weighted(o.TimeWeight, seconds)
	case o.TimeWeight > 0:
		sum = weighted(o.TimeWeight, seconds)
	case o.EnergyWeight > 0:
		sum = weighted(o.EnergyWeight, "J")
	}
	if o.DelayPower > 0 && o.EnergyWeight > 0 && o.TimeWeight > 0 {
		sum = "(" + sum + ")"
	}
	switch o.DelayPower {
	case 0:
		return sum
	case 1:
		return sum + "·" + seconds
	}
	return sum + "·(" + seconds + ")²"
}
