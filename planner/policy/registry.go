// Package policy is the registry: the names of the policies that the papers
// describe and of ours, and how a policy is written on the command line.
package policy

import (
	"cmp"
	"slices"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/improve"
	"github.com/epplan/epplan/planner/park"
	"github.com/epplan/epplan/planner/pick"
	"github.com/epplan/epplan/planner/place"
	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/tune"
)

// Params are the numbers that a policy's stages take.
type Params struct {
	Theta float64 // θ of the θ-readjustment, 0 < θ ≤ 1
	Rho   float64 // ρ: slots that an idle node waits before it goes off
	// Stretch is the most by which chosen clocks may lengthen a run of a
	// queue's task, as a multiple of its time at default clocks; 0: any.
	Stretch float64
	// Pace is the mean turnaround that an online plan may take, as a multiple of that under EASY at default
	// clocks; 0: what its policy does by itself.
	Pace float64
	// Tolerance is the part by which an offline plan may cost more than the least found, for a shorter mean
	// turnaround.
	Tolerance float64
	Queue     QueueParams // zero: DefaultQueueParams
	// Effort is a multiple of the usual search for a better plan, of a policy that
	// searches; 0 means 1.
	Effort float64
	// AlwaysOn has the plans that others are held against keep their nodes on, see [NewReferences].
	AlwaysOn bool
}

// DefaultParams returns the paper's: no readjustment, two slots.
func DefaultParams() Params { return Params{Theta: 1, Rho: 2, Queue: DefaultQueueParams()} }

// registeredPolicy is a registered policy: its stages, before an option exchanges one.
type registeredPolicy struct {
	name   string
	doc    string
	stages stageNames
	// more sets the stages that have no name, or all; nil: there are none.
	more func(*planner.Policy, Params)
}

// build returns the policy with these numbers.
func (r *registeredPolicy) build(q Params) planner.Policy {
	p := planner.Policy{Map: true}
	for _, key := range sortedStages() {
		if change, err := parseStage(key, r.stages[key]); err == nil {
			change(&p, q)
		}
	}
	if r.more != nil {
		r.more(&p, q)
	}
	return p
}

// registry lists every policy, in the order in which they are shown.
var registry = append(slices.Clone(directPolicies),
	registeredPolicy{
		Constant, "the best single clock pair for each GPU model, as " +
			"nvidia-smi -lgc sets it; online it knows the future jobs",
		stageNames{"clocks": "constant", "park": "drs"},
		func(p *planner.Policy, q Params) { *p = constantClocks(q) },
	},
	registeredPolicy{
		SearchPolicy, "our best offline: the best of several starts, and a search over places, " +
			"order and clocks of all jobs",
		optimalStages("", ""),
		func(p *planner.Policy, q Params) { *p = edlAlign(q) },
	})

// policyNamed returns a registered policy; nil: there is none of that name.
func policyNamed(name string) *registeredPolicy {
	if i := slices.IndexFunc(registry, func(r registeredPolicy) bool { return r.name == name }); i >= 0 {
		return &registry[i]
	}
	return nil
}

// directPolicies are the policies that make a plan by themselves, in one pass.
var directPolicies = []registeredPolicy{
	{
		"baseline", "default clocks, first come, first served, as soon as a GPU is free",
		stageNames{"clocks": "default", "pick": "fcfs", "place": "soonest", "park": "drs"},
		nil,
	},
	{
		"edl", "EDL θ-readjustment, offline and online (algorithms 1–5)",
		optimalStages("deadline-first", "lightest"), nil,
	},
	{
		"edl-bin", "bin packing: worst fit, then first fit (algorithm 6)",
		optimalStages("edf", ""),
		func(p *planner.Policy, _ Params) { p.Place = place.BinPacking },
	},
	{
		"edf-bf", "earliest deadline first, best fit by utilisation",
		optimalStages("deadline-first", "best-fit"), nil,
	},
	{
		"edf-wf", "earliest deadline first, worst fit by utilisation",
		optimalStages("deadline-first", "worst-fit"), nil,
	},
	{
		"edf-bf-time", "earliest deadline first, best fit by finish time",
		optimalStages("deadline-first", "latest"), nil,
	},
	{
		"lpt-ff", "longest processing time first, first fit",
		optimalStages("lpt", "first-fit"), nil,
	},
	{
		"marginal", "places each task where it adds the least energy, including idle time and switching nodes on",
		optimalStages("edf", ""),
		func(p *planner.Policy, _ Params) { p.Place, p.Map = place.Marginal, false },
	},
	{
		"late-binding", "least energy online, with longer waits: delays each task to its latest start, and " +
			"aligns the end times on a node",
		optimalStages("", ""),
		func(p *planner.Policy, _ Params) {
			p.Place, p.Pick, p.Map = place.LateBinding, pick.ByPlacer, false
		},
	},
	{
		"replan", "our best online: plans the pending tasks again at each arrival and end, within the mean " +
			"turnaround of EASY at default clocks, or within pace times that (pace=1.1)",
		optimalStages("", ""), replan,
	},
	{
		"simple", "strict FIFO: the first job starts on the first node class with room; all " +
			"others wait (PREDICT)", optimalStages("simple", "at-once"), nil,
	},
	{
		"simple-backfill", "simple, for every task of the queue",
		optimalStages("simple-backfill", "at-once"), nil,
	},
	{
		"easy", "simple with backfilling and a reservation for the first job",
		optimalStages("easy", "at-once"), nil,
	},
	{
		"greedy", "the first job, on the node class with the least alpha·s + gamma·kWh, free or not " +
			"(PREDICT algorithm 1)", optimalStages("greedy", "at-once"), nil,
	},
	{
		"value", "the task and node class with room that have the highest 1/(GPUs·s) − kappa·kWh (PREDICT " +
			"algorithm 2)", optimalStages("value", "at-once"), nil,
	},
	{
		"posted-price", "tasks bid for GPUs whose price rises with their use",
		optimalStages("posted-price", "at-once"), nil,
	},
	{
		"lookahead", "our best for queues: simulates many possible futures and picks the choice with the lowest " +
			"mean cost (waiting and energy)",
		optimalStages("lookahead", "at-once"), nil,
	},
	{
		"cats", "tasks with different profiles share GPUs, with adapted frequencies (CATS " +
			"algorithms 1–4)",
		stageNames{"clocks": "adapted", "pick": "fcfs", "place": "share-cats", "park": "periodic"},
		nil,
	},
	{
		"cats-safe", "our best for sharing: places each task where it adds the least energy, contention " +
			"included, and all tasks keep the SLA",
		stageNames{"clocks": "cheapest", "pick": "fcfs", "place": leastAdded, "park": "break-even"},
		nil,
	},
	{
		"hotcloud", "tasks with profiles share GPUs up to a mean utilisation of 100 %, at the highest " +
			"frequency (HotCloud)",
		stageNames{"clocks": "default", "pick": "fcfs", "place": "share-hotcloud", "park": "periodic"},
		nil,
	},
	{
		"first", "hotcloud, by the utilisation at the start",
		stageNames{"clocks": "default", "pick": "fcfs", "place": "share-first", "park": "periodic"},
		nil,
	},
}

func useDefaultClocks(p *planner.Policy) {
	p.Tune = tune.None
	if p.Improve != nil {
		p.Improve = improve.AtClocks{Then: p.Improve}
	}
}

// stageChoice exchanges a stage of a policy.
type stageChoice struct {
	change stageChange
	// numbers are those that it asks for, theta aside: it counts where place asks clocks that are an
	// optimum for a shorter run.
	numbers []string
}

// stages are the exchangeable stages by key and name.
var stages = map[string]map[string]stageChoice{
	"clocks": {
		"default": {func(p *planner.Policy, _ Params) { useDefaultClocks(p) }, nil},
		"learned": {func(p *planner.Policy, _ Params) { p.Tune = learnedPairs }, nil},
		"optimum": {func(p *planner.Policy, q Params) { p.Tune = q.optimumTuner() }, []string{"stretch"}},
		"adapted": {
			func(p *planner.Policy, _ Params) { p.Tune = tune.WithSharedClocks(tune.None, share.AdaptedClock) },
			nil,
		},
		"lowest": {
			func(p *planner.Policy, q Params) { p.Tune = tune.WithLowestClocks(q.optimumTuner()) },
			[]string{"stretch"},
		},
		"cheapest": {
			func(p *planner.Policy, q Params) { p.Tune = tune.WithCheapestClocks(q.optimumTuner()) },
			[]string{"stretch"},
		},
	},
	"pick": {
		"fcfs":           {func(p *planner.Policy, _ Params) { p.Pick = pick.FCFS }, nil},
		"edf":            {func(p *planner.Policy, _ Params) { p.Pick = pick.EDF }, nil},
		"deadline-first": {func(p *planner.Policy, _ Params) { p.Pick = pick.DeadlineFirst }, nil},
		"lpt":            {func(p *planner.Policy, _ Params) { p.Pick = pick.LongestFirst }, nil},
		"largest": {
			func(p *planner.Policy, _ Params) { p.Pick = pick.Largest{Bound: pick.DayBound}.New }, nil,
		},
		"simple": {func(p *planner.Policy, _ Params) { p.Pick, p.Map = pick.Simple, false }, nil},
		"simple-backfill": {
			func(p *planner.Policy, q Params) { p.Pick, p.Map = q.Queue.Backfill.New, false },
			[]string{"patience"},
		},
		"easy": {
			func(p *planner.Policy, q Params) { p.Pick, p.Map = q.Queue.Easy.New, false },
			[]string{"spread"},
		},
		"greedy": {
			func(p *planner.Policy, q Params) { p.Pick, p.Map = q.Queue.Greedy.New, false },
			[]string{"alpha", "gamma", "patience"},
		},
		"value": {
			func(p *planner.Policy, q Params) { p.Pick, p.Map = q.Queue.Value.New, false },
			[]string{"kappa", "ageing", "patience"},
		},
		"posted-price": {
			func(p *planner.Policy, q Params) { p.Pick, p.Map = q.Queue.Posted.New, false },
			[]string{"base", "perday", "price", "steepness", "scale", "patience"},
		},
		"lookahead": {
			func(p *planner.Policy, q Params) { p.Pick, p.Map = q.Queue.Look.New, false },
			[]string{"weight", "perkwh", "spread", "futures", "ageing", "patience", "seed"},
		},
	},
	"place": {
		"at-once":   {func(p *planner.Policy, _ Params) { p.Place, p.Map = place.AtOnce, false }, nil},
		"lightest":  {func(p *planner.Policy, _ Params) { p.Place = place.Lightest }, nil},
		"first-fit": {func(p *planner.Policy, _ Params) { p.Place = place.ByRule(place.FirstRule) }, nil},
		"best-fit":  {func(p *planner.Policy, _ Params) { p.Place = place.ByRule(place.BestRule) }, nil},
		"worst-fit": {func(p *planner.Policy, _ Params) { p.Place = place.ByRule(place.WorstRule) }, nil},
		"soonest":   {func(p *planner.Policy, _ Params) { p.Place = place.Soonest }, nil},
		"latest":    {func(p *planner.Policy, _ Params) { p.Place = place.ByRule(place.LatestRule) }, nil},
	},
	"park": {
		"drs":        {func(p *planner.Policy, q Params) { p.Park = park.DRS{Rho: q.Rho} }, []string{"rho"}},
		neverPark:    {func(p *planner.Policy, _ Params) { p.Park = park.Never{} }, nil},
		"periodic":   {func(p *planner.Policy, _ Params) { p.Park = park.Periodic{Tau: park.PaperTau} }, nil},
		"break-even": {func(p *planner.Policy, _ Params) { p.Park = park.AdaptiveTimeout{} }, nil},
	},
}

// optimalStages returns those of a policy that chooses clocks; empty: a stage without a name.
func optimalStages(pick, place string) stageNames {
	return stageNames{"clocks": "optimum", "pick": pick, "place": place, "park": "drs"}
}

// replan keeps each run within the stretch, or what is usual where none is given.
func replan(p *planner.Policy, q Params) {
	const usual = 1.5
	stage := place.Replan{Stretch: cmp.Or(q.Stretch, usual), Pace: q.Pace}
	p.Place, p.Pick, p.Map = stage.New, pick.ByPlacer, false
}

// optimumTuner returns the Tune stage that chooses clocks.
func (q Params) optimumTuner() func(*planner.Problem) planner.Tuner {
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
	rescue := []improve.StartPolicy{{Policy: constantClocks(q)}}
	rescue[0].Name = Constant
	var online improve.StartPolicy
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
			sites.MaxTasks, start.MaxTasks = MaxQueued, MaxQueued
			rescue = append(rescue, sites, start)
		case PacedPolicy:
			start.MaxTasks = MaxQueued
			rescue = append(rescue, start)
			usual := q
			usual.Pace = 1
			online, online.Policy = start, directPolicies[i].build(usual)
			online.Name = start.Name + ",pace=1"
		case "simple", "simple-backfill", "greedy", "value", "posted-price":
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
		Others: others, Rescue: rescue, Online: online, Then: improve.Align{Effort: q.Effort},
		Last: improve.Retune{Effort: q.Effort}, Shorter: improve.Shorten{Part: q.Tolerance, Effort: q.Effort},
	}
	return edl
}

// alwaysOnSearch returns a search for a better plan where nodes never sleep, which also looks at the starts
// of the search with nodes that are on.
func alwaysOnSearch(search planner.Improver) planner.Improver {
	all := improve.AlwaysOn{Then: search}
	if f, ok := search.(improve.Portfolio); ok {
		all.Others = slices.Clone(f.Others)
	}
	for i := range all.Others {
		all.Others[i].Park = park.Never{}
	}
	return all
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
