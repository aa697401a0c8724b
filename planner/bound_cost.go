package planner

import (
	"math"

	"github.com/epplan/epplan/dvfsmodel"
)

// boundOfCost is [Bound.Cost], given the bound of the energy: of plans that keep all due
// times where dues says so.
//
// For a sum of energy E and time T it is proved as an energy is. For E·T and E·T² the
// plans lie above lines a·E + b·T = c, each of which is proved like a sum; the least
// cost above such lines lies at a corner of theirs, as a product of the two is least at
// an end of any line that falls. A line by the slope of the cost at that corner lifts
// it, and so on.
func boundOfCost(p *Problem, energy dvfsmodel.Joule, dues bool) float64 {
	o := p.Objective
	if o.EnergyWeight == 0 && o.TimeWeight == 0 {
		o.EnergyWeight = 1
	}
	if o.DelayPower == 0 && o.TimeWeight == 0 {
		return o.EnergyWeight * float64(energy)
	}
	hull := costHull{{energy: 1, least: float64(energy)}, {time: 1, least: sumBound(p, 0, 1, dues)}}
	if o.DelayPower == 0 {
		return max(o.EnergyWeight*hull[0].least+o.TimeWeight*hull[1].least, sumBound(p, o.EnergyWeight, o.TimeWeight, dues))
	}
	const rounds, enough = 6, 1.0005
	least, at := hull.least(o)
	for range rounds {
		if !(at.Energy > 0 && at.Time > 0) {
			break
		}
		sum := o.EnergyWeight*float64(at.Energy) + o.TimeWeight*at.Time
		slope := o.TimeWeight + float64(o.DelayPower)*sum/at.Time // what a second adds, by what a joule adds
		hull = append(hull, costLine{o.EnergyWeight, slope, sumBound(p, o.EnergyWeight, slope, dues)})
		before := least
		if least, at = hull.least(o); least <= before*enough {
			break
		}
	}
	return least
}

// sumBound is a bound of energy·E + time·T: of plans that keep all due times where dues
// says so.
func sumBound(p *Problem, energy, time float64, dues bool) float64 {
	if p.sharable() { // a task may take any part of a GPU, at any clocks
		return 0
	}
	sum := 0.0
	tasks := boundTasks(p, energy, time)
	for i := range tasks {
		sum += tasks[i].least
	}
	if dues {
		sum = max(sum, NewDueDual(p, energy, time).Value)
	}
	return sum
}

// costLine says that no plan has energy·E + time·T below least.
type costLine struct{ energy, time, least float64 }

// costHull are lines that no plan is below.
type costHull []costLine

// least is the least cost of what is above all lines, and where that is.
func (h costHull) least(o dvfsmodel.Objective) (cost float64, at dvfsmodel.Point) {
	cost = math.Inf(1)
	consider := func(time float64) {
		pt := dvfsmodel.Point{Time: time}
		for _, l := range h {
			switch {
			case l.energy > 0:
				pt.Energy = max(pt.Energy, dvfsmodel.Joule((l.least-l.time*time)/l.energy))
			case l.time*time < l.least*(1-deadlineSlack):
				return // too short
			}
		}
		if c := o.Cost(pt); c < cost {
			cost, at = c, pt
		}
	}
	for i, a := range h {
		if a.energy == 0 {
			consider(a.least / a.time)
		}
		for _, b := range h[:i] {
			if turn := a.time*b.energy - b.time*a.energy; turn != 0 {
				consider(max(0, (a.least*b.energy-b.least*a.energy)/turn))
			}
		}
	}
	return cost, at
}
