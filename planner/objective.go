package planner

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/epplan/epplan/dvfsmodel"
)

// Cost returns the problem's objective of a whole plan, less is better:
//
//	(EnergyWeight·E + TimeWeight·T) · T^DelayPower + WaitWeight·W
//
// with E the energy of everything, joules, idle GPUs, hosts, switching on and sleep
// included, T the time that tasks hold GPUs and W the time that they wait for them,
// both in GPU-seconds. W is never below 0, so that what bounds the cost without it
// bounds the cost with it. Tasks that aren't placed cost nothing: compare plans that
// place the same ones.
func (p *Problem) Cost(plan *Plan) float64 {
	cost := p.Objective.Cost(dvfsmodel.Point{Energy: plan.Ledger.Total(), Time: plan.GPUSeconds(p)})
	if p.WaitWeight > 0 {
		cost += p.WaitWeight * plan.WaitedGPUSeconds(p)
	}
	return cost
}

// PlanRank is what plans of a problem are preferred by: less is better, from the first
// field on.
type PlanRank struct {
	Unplaced int // tasks left out
	Misses   int // missed deadlines
	Late     int // tasks that end after their due times, which deadlines are, too
	Cost     float64
}

// RankOf is that of a plan.
func (p *Problem) RankOf(plan *Plan) PlanRank {
	return PlanRank{len(plan.Unplaced), len(plan.Misses), len(plan.PastDue(p)), p.Cost(plan)}
}

// Compare is below 0 where w is to be preferred, and above 0 where other is.
func (w PlanRank) Compare(other PlanRank) int {
	return cmp.Or(
		cmp.Compare(w.Unplaced, other.Unplaced), cmp.Compare(w.Misses, other.Misses),
		cmp.Compare(w.Late, other.Late), cmp.Compare(w.Cost, other.Cost),
	)
}

// DueByDeadlines returns the problem in which tasks are due at their deadlines alone; nil: they are already.
func (p *Problem) DueByDeadlines() *Problem {
	if !slices.ContainsFunc(p.Tasks, func(t Task) bool { return t.Due < t.Deadline }) {
		return nil
	}
	later := *p
	later.Tasks = slices.Clone(p.Tasks)
	for i := range later.Tasks {
		later.Tasks[i].Due = later.Tasks[i].Deadline
	}
	return &later
}

// Placing returns the problem of the tasks that a plan places: the others suit no GPU model there.
func (p *Problem) Placing(plan *Plan) *Problem {
	if len(plan.Unplaced) == 0 {
		return p
	}
	placed, runs := *p, p.RunningTasks()
	placed.Tasks = slices.Clone(p.Tasks)
	for _, u := range plan.Unplaced {
		if runs == nil || !runs[u.Task] {
			placed.Tasks[u.Task].Options = nil
		}
	}
	return &placed
}

// GPUSeconds returns how long the tasks hold GPUs, in all: a task's run time counts once
// for each of its GPUs, or by its share of one.
func (plan *Plan) GPUSeconds(p *Problem) float64 {
	sum := 0.0
	for i := range plan.Assignments {
		if a := &plan.Assignments[i]; a.Node >= 0 {
			sum += gpuWorth(&p.Tasks[i], a) * (a.End - a.Start)
		}
	}
	return sum
}

// WaitedGPUSeconds returns how long the tasks wait, in all: the time from a task's arrival
// to its start counts once for each of its GPUs, or by its share of one.
func (plan *Plan) WaitedGPUSeconds(p *Problem) float64 {
	sum := 0.0
	for i := range plan.Assignments {
		if a := &plan.Assignments[i]; a.Node >= 0 {
			sum += gpuWorth(&p.Tasks[i], a) * (a.Start - p.Tasks[i].Arrival)
		}
	}
	return sum
}

// CostUnit returns what [Problem.Cost] is in, such as "J", "J + 50·GPU·s", "J·GPU·s" or
// "J + 20·GPU·s waited": numbers are the weights. Where these are prices, it is their
// currency.
func (p *Problem) CostUnit() string {
	if p.Currency != "" {
		return p.Currency
	}
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
	if p.WaitWeight > 0 {
		sum += " + " + weighted(p.WaitWeight, seconds+" waited")
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
