package bound

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// boundOfCost is [Bound.Cost], given the bound of the energy: of plans that keep all due
// times where dues says so. What waiting costs at least is proved by itself.
func boundOfCost(p *planner.Problem, energy dvfsmodel.Joule, dues bool) float64 {
	cost := boundOfRuns(p, energy, dues)
	if p.WaitWeight > 0 {
		cost += p.WaitWeight * waitTimeBound(p)
	}
	return cost
}

// waitTimeBound returns how many GPU-seconds tasks wait at least that are all there at 0.
//
// A task of g GPUs that runs for t seconds from s on is half done at s + t/2. Were all
// GPUs one machine that many tasks may use at once at any rates, the least
// Σ g·(s + t/2) came of one after the other, those with the shortest t first; with
// times and GPUs as small as they can be, no plan has less.
func waitTimeBound(p *planner.Problem) float64 {
	if p.HasSharing() || p.Snapshot != nil ||
		slices.ContainsFunc(p.Tasks, func(t planner.Task) bool { return t.Arrival != 0 }) {
		return 0
	}
	delay, gpus := math.Inf(1), 0.0
	for i := range p.Cluster.Classes {
		k := &p.Cluster.Classes[i]
		delay = min(delay, k.TurnOnDelay)
		if gpus += float64(k.Count * k.GPUs); k.Count == 0 {
			gpus = math.Inf(1)
		}
	}
	tasks := boundTasks(p, 1, 0)
	slices.SortFunc(tasks, func(a, b boundTask) int { return cmp.Compare(a.shortest, b.shortest) })
	before, half, least := 0.0, 0.0, 0.0
	for i := range tasks {
		work := tasks[i].gpus * tasks[i].shortest
		half += tasks[i].gpus*(delay+(before+work/2)/gpus) - work/2
		least += tasks[i].gpus * delay
		before += work
	}
	return max(half, least)
}

// boundOfRuns returns the bound of what energy and time cost.
//
// For a sum of energy E and time T it is proved as an energy is. For E·T and E·T² the
// plans lie above lines a·E + b·T = c, each of which is proved like a sum; the least
// cost above such lines lies at a corner of theirs, as a product of the two is least at
// an end of any line that falls. A line by the slope of the cost at that corner lifts
// it, and so on.
func boundOfRuns(p *planner.Problem, energy dvfsmodel.Joule, dues bool) float64 {
	o := p.Objective
	if o.EnergyWeight == 0 && o.TimeWeight == 0 {
		o.EnergyWeight = 1
	}
	if o.DelayPower == 0 && o.TimeWeight == 0 {
		return o.EnergyWeight * float64(energy)
	}
	hull := costHull{{energy: 1, least: float64(energy)}, {time: 1, least: sumBound(p, 0, 1, dues)}}
	if o.DelayPower == 0 {
		return max(o.EnergyWeight*hull[0].least+o.TimeWeight*hull[1].least,
			sumBound(p, o.EnergyWeight, o.TimeWeight, dues))
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

// sumBound returns a bound of energy·E + time·T: of plans that keep all due times where dues
// says so.
func sumBound(p *planner.Problem, energy, time float64, dues bool) float64 {
	if p.HasSharing() { // a task may take any part of a GPU, at any clocks
		return 0
	}
	sum := 0.0
	tasks := boundTasks(p, energy, time)
	for i := range tasks {
		sum += tasks[i].least
	}
	if dues {
		sum = max(sum, dueBound(p, energy, time))
	}
	return sum
}

// costLine says that no plan has energy·E + time·T below least.
type costLine struct{ energy, time, least float64 }

// costHull are lines that no plan is below.
type costHull []costLine

// least returns the least cost of what is above all lines, and where that is.
func (h costHull) least(o dvfsmodel.Objective) (cost float64, at dvfsmodel.Point) {
	cost = math.Inf(1)
	consider := func(time float64) {
		pt := dvfsmodel.Point{Time: time}
		for _, l := range h {
			switch {
			case l.energy > 0:
				pt.Energy = max(pt.Energy, dvfsmodel.Joule((l.least-l.time*time)/l.energy))
			case l.time*time < l.least*(1-planner.DeadlineSlack):
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
