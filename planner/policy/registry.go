// Package policy is the registry: the names of the policies that the papers
// describe and of ours, and how a policy is written on the command line.
package policy

import (
	"slices"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/consolidate"
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
	// Stretch is the most by which chosen clocks may lengthen a run of a
	// queue's task, as a multiple of its time at default clocks; 0: any.
	Stretch float64
	Queue   QueueParams // zero: DefaultQueueParams
	// Effort is a multiple of the usual search for a better plan, of a policy that
	// searches; 0 means 1.
	Effort float64
}

// DefaultParams are the paper's: no readjustment, two slots.
func DefaultParams() Params { return Params{Theta: 1, Rho: 2, Queue: DefaultQueueParams()} }

// registeredPolicy is a registered policy.
type registeredPolicy struct {
	name  string
	doc   string
	build func(Params) planner.Policy
}

// registry lists every policy, in the order in which they are shown.
var registry = append(slices.Clone(directPolicies),
	registeredPolicy{Constant, "the best clocks that are the same for all jobs of a GPU model, as " +
		"nvidia-smi -lgc sets them; online it knows what is to come", constantClocks},
	registeredPolicy{"edl-align", "our best offline: the best of several starts, and a search over places, " +
		"turns and clocks of all jobs", edlAlign})

// directPolicies are the policies that make a plan by themselves, in one pass.
var directPolicies = []registeredPolicy{
	{
		"baseline", "default clocks, first come first served, as soon as a GPU is free",
		func(q Params) planner.Policy {
			return planner.Policy{
				Tune: tune.None, Place: place.Soonest, Pick: pick.FCFS, Park: park.DRS{Rho: q.Rho}, Map: true,
			}
		},
	},
	{"edl", "EDL θ-readjustment, offline and online (algorithms 1–5)", func(q Params) planner.Policy {
		return planner.Policy{
			Tune: q.optimum(), Place: place.Lightest, Pick: pick.DeadlineFirst,
			Park: park.DRS{Rho: q.Rho}, Map: true,
		}
	}},
	{"edl-bin", "bin packing: worst fit, then first fit (algorithm 6)", func(q Params) planner.Policy {
		return planner.Policy{
			Tune: q.optimum(), Place: place.BinPacking, Pick: pick.EDF, Park: park.DRS{Rho: q.Rho}, Map: true,
		}
	}},
	{"edf-bf", "earliest deadline first, best fit by utilisation", func(q Params) planner.Policy {
		return planner.Policy{
			Tune: q.optimum(), Place: place.ByRule(place.BestRule), Pick: pick.DeadlineFirst,
			Park: park.DRS{Rho: q.Rho}, Map: true,
		}
	}},
	{"edf-wf", "earliest deadline first, worst fit by utilisation", func(q Params) planner.Policy {
		return planner.Policy{
			Tune: q.optimum(), Place: place.ByRule(place.WorstRule), Pick: pick.DeadlineFirst,
			Park: park.DRS{Rho: q.Rho}, Map: true,
		}
	}},
	{"edf-bf-time", "earliest deadline first, best fit by finish time", func(q Params) planner.Policy {
		return planner.Policy{
			Tune: q.optimum(), Place: place.ByRule(place.LatestRule), Pick: pick.DeadlineFirst,
			Park: park.DRS{Rho: q.Rho}, Map: true,
		}
	}},
	{"lpt-ff", "longest processing time first, first fit", func(q Params) planner.Policy {
		return planner.Policy{
			Tune: q.optimum(), Place: place.ByRule(place.FirstRule), Pick: pick.LongestFirst,
			Park: park.DRS{Rho: q.Rho}, Map: true,
		}
	}},
	{
		"marginal", "each task where it adds the least energy, idle time and turning on counted",
		func(q Params) planner.Policy {
			return planner.Policy{
				Tune: q.optimum(), Place: place.Marginal, Pick: pick.EDF, Park: park.DRS{Rho: q.Rho},
			}
		},
	},
	{
		"late-binding", "least energy online, at the price of waiting: tasks wait until they must start, " +
			"GPUs of a node end together", func(q Params) planner.Policy {
			return planner.Policy{
				Tune: q.optimum(), Place: place.LateBinding, Pick: pick.ByPlacer, Park: park.DRS{Rho: q.Rho},
			}
		},
	},
	{
		"replan", "our best online: what waits is planned anew at each arrival and end; clocks and places " +
			"keep pace with EASY at default clocks", replan,
	},
	{
		"simple", "head of the queue, on the first class with room; until it starts everybody " +
			"waits (PREDICT)", atOnce(func(QueueParams) pickStage { return pick.Simple }),
	},
	{
		"simple-backfill", "the same for every task of the queue",
		atOnce(func(q QueueParams) pickStage { return q.Backfill.New }),
	},
	{
		"easy", "simple with backfilling that keeps a reservation for the head of the queue",
		atOnce(func(q QueueParams) pickStage { return q.Easy.New }),
	},
	{
		"greedy", "head of the queue, on the class with the least alpha·s + gamma·kWh, free or not " +
			"(PREDICT algorithm 1)", atOnce(func(q QueueParams) pickStage { return q.Greedy.New }),
	},
	{
		"value", "the highest 1/(GPUs·s) − kappa·kWh of all tasks and classes with room (PREDICT " +
			"algorithm 2)", atOnce(func(q QueueParams) pickStage { return q.Value.New }),
	},
	{
		"posted-price", "tasks bid for GPUs whose price rises with their use",
		atOnce(func(q QueueParams) pickStage { return q.Posted.New }),
	},
	{
		"lookahead", "our best for queues: what costs least in many drawn futures, waits and energy",
		atOnce(func(q QueueParams) pickStage { return q.Look.New }),
	},
	{
		"cats", "tasks with profiles share GPUs with those unlike them, frequencies adapted (CATS " +
			"algorithms 1–4)", func(Params) planner.Policy {
			return sharingPolicy(consolidate.CATS{},
				tune.WithSharedClocks(tune.None, consolidate.AdaptedClock))
		},
	},
	{
		"cats-safe", "our best for sharing: where a task adds least energy and everybody keeps the SLA, " +
			"contention counted", catsSafe,
	},
	{
		"hotcloud", "tasks with profiles share GPUs up to 100 % on average, at the highest " +
			"frequency (HotCloud)", func(Params) planner.Policy {
			return sharingPolicy(consolidate.HotCloud{}, tune.None)
		},
	},
	{"first", "the same by their utilisation at first", func(Params) planner.Policy {
		return sharingPolicy(consolidate.FirstSlotFit{}, tune.None)
	}},
}

// sharingPolicy is a policy that lets tasks share GPUs by a rule, with periodic sleep.
func sharingPolicy(rule consolidate.Rule, clocks func(*planner.Problem) planner.Tuner) planner.Policy {
	return planner.Policy{
		Tune: clocks, Place: place.Colocate{Rule: rule}.New, Pick: pick.FCFS,
		Park: park.Periodic{Tau: park.PaperTau}, Share: true,
	}
}

// safeColocation places tasks on shared GPUs so that nobody is slowed down more than it
// tolerates.
var safeColocation = place.Colocate{NewRule: place.LeastAddedEnergy, KeepTolerances: true}

// catsSafe slows nobody down more than it tolerates.
func catsSafe(q Params) planner.Policy {
	p := sharingPolicy(nil, tune.WithCheapestClocks(q.optimum()))
	p.Place = safeColocation.New
	p.Park = park.BreakEven{}
	return p
}

// atOnce is a policy that starts what Pick chooses at once or leaves it waiting.
func atOnce(stage func(QueueParams) pickStage) func(Params) planner.Policy {
	return func(q Params) planner.Policy {
		return planner.Policy{
			Tune: q.optimum(), Place: place.AtOnce, Pick: stage(q.Queue), Park: park.DRS{Rho: q.Rho},
		}
	}
}

// replan keeps each run within the stretch, or what is usual where none is given.
func replan(q Params) planner.Policy {
	const usual = 1.5
	stage := place.Replan{Stretch: q.Stretch}
	if stage.Stretch == 0 {
		stage.Stretch = usual
	}
	return planner.Policy{
		Tune: q.optimum(), Place: stage.New, Pick: pick.ByPlacer, Park: park.DRS{Rho: q.Rho},
	}
}

// optimum is the Tune stage that chooses clocks.
func (q Params) optimum() func(*planner.Problem) planner.Tuner {
	if q.Stretch > 0 {
		return tune.Stretched(q.Theta, q.Stretch)
	}
	return tune.Optimum(q.Theta)
}

// edlAlign improves on EDL and on other starts. Among them are what sites run,
// first come, first served and EASY at default clocks: where one of these keeps
// every due time, so does the plan.
func edlAlign(q Params) planner.Policy {
	edl := planner.Policy{
		Tune: tune.Optimum(1), Place: place.Lightest, Pick: pick.DeadlineFirst,
		Park: park.DRS{Rho: q.Rho}, Map: true,
	}
	readjusted, greedy, latest := edl, edl, edl
	readjusted.Name, readjusted.Tune = "edl:0.8", tune.Optimum(readjust)
	greedy.Name, greedy.Place, greedy.Map = "marginal", place.Marginal, false
	latest.Name, latest.Place = "edl,place=latest", place.ByRule(place.LatestRule)
	others := []improve.StartPolicy{{Policy: readjusted}, {Policy: greedy}, {Policy: latest}}
	rescue := []improve.StartPolicy{{Policy: constantClocks(q), MaxTasks: maxConstant}}
	rescue[0].Name = Constant
	for i := range directPolicies {
		start := improve.StartPolicy{Policy: directPolicies[i].build(q)}
		start.Name = directPolicies[i].name
		switch start.Name {
		case "baseline":
			start.IsSitePolicy = true
			others = append(others, start)
		case "easy":
			sites := start
			sites.Name, sites.Tune = EasyDefault, tune.None
			sites.MaxTasks, sites.IsSitePolicy = maxQuickQueue, true
			others = append(others, sites)
			sites.MaxTasks = MaxQueued
			rescue = append(rescue, sites)
			fallthrough
		case "replan", "simple", "simple-backfill", "greedy", "value", "posted-price":
			start.MaxTasks = MaxQueued
			rescue = append(rescue, start)
		case "lookahead": // plays so many futures that nobody would wait for it
		default:
			if start.Share { // where nobody shares, it looks at all that wait whenever a job ends
				start.MaxTasks = MaxQueued
			}
			rescue = append(rescue, start)
		}
	}
	edl.Improve = improve.Portfolio{
		Others: others, Rescue: rescue, Then: improve.Align{Effort: q.Effort},
		Last: improve.Retune{Effort: q.Effort},
	}
	return edl
}

// MaxQueued is the most tasks for which policies that choose from a queue are
// asked unless somebody names them: their work grows with the square, or nearly so.
const MaxQueued = 5_000

// maxQuickQueue is the most tasks for which that doesn't matter.
const maxQuickQueue = 2_000

// EasyDefault is what sites run: EASY backfilling at default clocks.
const EasyDefault = "easy,clocks=default"

// readjust is the θ of the second start of edl-align.
const readjust = 0.8
