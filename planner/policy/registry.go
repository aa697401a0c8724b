// Package policy is the registry: the names of the policies that the papers
// describe and of ours, and how a policy is written on the command line.
package policy

import (
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/improve"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/tune"
)

// Params are the numbers that a policy's stages take.
type Params struct {
	Theta float64 // θ of the θ-readjustment, 0 < θ ≤ 1
	Rho   float64 // ρ: slots that an idle node waits before it goes off
}

// DefaultParams are the paper's: no readjustment, two slots.
func DefaultParams() Params { return Params{Theta: 1, Rho: 2} }

// entry is a registered policy.
type entry struct {
	name  string
	doc   string
	build func(Params) planner.Policy
}

// entries lists every policy, in the order in which they are shown.
var entries = []entry{
	{"baseline", "default clocks, first come first served, as soon as a GPU is free", func(q Params) planner.Policy {
		return planner.Policy{Tune: tune.None, Place: place.Soonest, Pick: pick.FCFS, Park: park.DRS{Rho: q.Rho}, Map: true}
	}},
	{"edl", "EDL θ-readjustment, offline and online (algorithms 1–5)", func(q Params) planner.Policy {
		return planner.Policy{Tune: tune.Optimum(q.Theta), Place: place.Lightest, Pick: pick.DeadlineFirst, Park: park.DRS{Rho: q.Rho}, Map: true}
	}},
	{"edl-bin", "bin packing: worst fit, then first fit (algorithm 6)", func(q Params) planner.Policy {
		return planner.Policy{Tune: tune.Optimum(1), Place: place.Bin, Pick: pick.EDF, Park: park.DRS{Rho: q.Rho}, Map: true}
	}},
	{"edf-bf", "earliest deadline first, best fit by utilisation", func(q Params) planner.Policy {
		return planner.Policy{Tune: tune.Optimum(1), Place: place.With(place.BestRule{}), Pick: pick.DeadlineFirst, Park: park.DRS{Rho: q.Rho}, Map: true}
	}},
	{"edf-wf", "earliest deadline first, worst fit by utilisation", func(q Params) planner.Policy {
		return planner.Policy{Tune: tune.Optimum(1), Place: place.With(place.WorstRule{}), Pick: pick.DeadlineFirst, Park: park.DRS{Rho: q.Rho}, Map: true}
	}},
	{"edf-bf-time", "earliest deadline first, best fit by finish time", func(q Params) planner.Policy {
		return planner.Policy{Tune: tune.Optimum(1), Place: place.With(place.LatestRule{}), Pick: pick.DeadlineFirst, Park: park.DRS{Rho: q.Rho}, Map: true}
	}},
	{"lpt-ff", "longest processing time first, first fit", func(q Params) planner.Policy {
		return planner.Policy{Tune: tune.Optimum(1), Place: place.With(place.FirstRule{}), Pick: pick.LongestFirst, Park: park.DRS{Rho: q.Rho}, Map: true}
	}},
	{"greedy", "each task where it adds the least energy, idle time and turning on counted", func(q Params) planner.Policy {
		return planner.Policy{Tune: tune.Optimum(1), Place: place.Marginal, Pick: pick.EDF, Park: park.DRS{Rho: q.Rho}}
	}},
	{"late-binding", "our best online: tasks wait until they must start, GPUs of a node end together", func(q Params) planner.Policy {
		return planner.Policy{Tune: tune.Optimum(1), Place: place.Hold, Pick: pick.Held, Park: park.DRS{Rho: q.Rho}}
	}},
	{"edl-align", "our best offline: the best of several starts, nodes realigned, tasks moved and swapped", edlAlign},
}

// edlAlign improves on EDL and, where nodes or tasks differ, on other starts.
func edlAlign(q Params) planner.Policy {
	edl := planner.Policy{Tune: tune.Optimum(1), Place: place.Lightest, Pick: pick.DeadlineFirst, Park: park.DRS{Rho: q.Rho}, Map: true}
	readjusted, greedy, latest := edl, edl, edl
	readjusted.Tune = tune.Optimum(readjust)
	greedy.Place, greedy.Map = place.Marginal, false
	latest.Place = place.With(place.LatestRule{})
	edl.Improve = improve.Portfolio{Others: []planner.Policy{readjusted, greedy, latest}, Then: improve.Align{}}
	return edl
}

// readjust is the θ of the second start of edl-align.
const readjust = 0.8
