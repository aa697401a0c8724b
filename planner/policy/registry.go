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
	Queue Queue   // zero: DefaultQueue
}

// Queue are the numbers of the policies that choose from a queue.
type Queue struct {
	Greedy pick.Greedy
	Value  pick.Value
	Posted pick.PostedPrice
	Look   pick.Lookahead
}

// DefaultQueue are the numbers that were tuned on drawn queues of the PREDICT
// paper's kind (docs/papers.md); Value has the paper's own.
func DefaultQueue() Queue {
	return Queue{
		Greedy: pick.Greedy{Alpha: 1, Gamma: 1e4},
		Value:  pick.Value{Kappa: 1e-6},
		Posted: pick.PostedPrice{Base: 3, PerDay: 1, Price: 0.3, Steepness: 4},
		Look:   pick.Lookahead{PerKWh: 13000, Spread: 0.35, Futures: 150, Patience: 2, Seed: planner.DefaultSeed},
	}
}

// CoupledQueue are the numbers where a job's energy follows from its run time,
// so that a kWh is worth less waiting.
func CoupledQueue() Queue {
	q := DefaultQueue()
	q.Greedy.Gamma = 1e8
	q.Posted = pick.PostedPrice{Base: 3, PerDay: 0.2, Price: 0, Steepness: 1}
	q.Look.PerKWh = 650
	return q
}

// withQueue fills in the default numbers of queues where there are none.
func (q Params) withQueue() Params {
	if q.Queue == (Queue{}) {
		q.Queue = DefaultQueue()
	}
	return q
}

// DefaultParams are the paper's: no readjustment, two slots.
func DefaultParams() Params { return Params{Theta: 1, Rho: 2, Queue: DefaultQueue()} }

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
	{"marginal", "each task where it adds the least energy, idle time and turning on counted", func(q Params) planner.Policy {
		return planner.Policy{Tune: tune.Optimum(1), Place: place.Marginal, Pick: pick.EDF, Park: park.DRS{Rho: q.Rho}}
	}},
	{"late-binding", "our best online: tasks wait until they must start, GPUs of a node end together", func(q Params) planner.Policy {
		return planner.Policy{Tune: tune.Optimum(1), Place: place.Hold, Pick: pick.Held, Park: park.DRS{Rho: q.Rho}}
	}},
	{"simple", "head of the queue, on the first class with room; until it starts everybody waits (PREDICT)", atOnce(func(Queue) pickStage { return pick.Simple })},
	{"simple-backfill", "the same for every task of the queue", atOnce(func(Queue) pickStage { return pick.SimpleBackfill })},
	{"easy", "simple with backfilling that keeps a reservation for the head of the queue", atOnce(func(q Queue) pickStage { return pick.Easy{Spread: q.Look.Spread}.New })},
	{"greedy", "head of the queue, on the class with the least alpha·s + gamma·kWh, free or not (PREDICT algorithm 1)", atOnce(func(q Queue) pickStage { return q.Greedy.New })},
	{"value", "the highest 1/(GPUs·s) − kappa·kWh of all tasks and classes with room (PREDICT algorithm 2)", atOnce(func(q Queue) pickStage { return q.Value.New })},
	{"posted-price", "tasks bid for GPUs whose price rises with their use", atOnce(func(q Queue) pickStage { return q.Posted.New })},
	{"lookahead", "our best for queues: what costs least in many drawn futures, waits and energy", atOnce(func(q Queue) pickStage { return q.Look.New })},
	{"edl-align", "our best offline: the best of several starts, nodes realigned, tasks moved and swapped", edlAlign},
}

type pickStage = func(*planner.View, planner.Placer) planner.Picker

// atOnce is a policy that starts what Pick chooses at once or leaves it waiting.
func atOnce(stage func(Queue) pickStage) func(Params) planner.Policy {
	return func(q Params) planner.Policy {
		return planner.Policy{Tune: tune.Optimum(q.Theta), Place: place.AtOnce, Pick: stage(q.Queue), Park: park.DRS{Rho: q.Rho}}
	}
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
