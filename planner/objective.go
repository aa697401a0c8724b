package planner

import "github.com/epplan/epplan/dvfsmodel"

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
