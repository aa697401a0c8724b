package improve

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/bound"
)

// Retune improves a finished plan of any problem whose tasks are all known. A search over
// lists of jobs, one a node, changes places, turns and clocks of all of them together:
// simulated annealing from the plan, and from where the prices of [bound.DueDual] would have
// each job. Of a job on a part of a GPU it changes the place and the turn. Then every task
// is stretched into the idle time that follows it, where that lowers the objective;
// starts, places and the time that nodes are on stay as they are then.
//
// The plan that comes back has no more tasks that are late than the one that was
// given, and costs no more by the problem's objective unless fewer are. When ctx ends,
// the search stops, and what it found by then is what counts.
type Retune struct {
	// Moves is how many moves are tried at most; 0 means 12 million. Small batches take
	// fewer, by their number of tasks, and none more than some seconds.
	Moves int
	// Effort is a multiple of all that; 0 means 1.
	Effort float64
	ended  float64 // what a second costs that a task ends later
	local  bool    // begin with the plan alone
}

// Improve is [planner.Improver].
func (r Retune) Improve(
	ctx context.Context, p *planner.Problem, plan *planner.Plan, rng *rand.Rand,
) (*planner.Plan, error) {
	if p.Mode == planner.Online || isAtBound(p, plan) {
		return plan, planner.Cancelled(ctx)
	}
	best := candidateOf(p, plan)
	if isListable(p, plan) {
		best.takeIfBetter(p, searchByLists(ctx, p, plan, r, rng))
	}
	best.takeIfBetter(p, stretchTasks(p, best.Plan))
	return best.Plan, planner.Cancelled(ctx)
}

// isAtBound reports whether nothing is to gain: the plan meets the lower bound.
func isAtBound(p *planner.Problem, plan *planner.Plan) bool {
	if o := p.Objective; o.DelayPower != 0 || o.TimeWeight != 0 || p.WaitWeight != 0 {
		return false
	}
	lower := bound.Lower(p)
	return lower.Gap(plan.Ledger.Total()) <= narrow
}

// stretchTasks gives each task the clocks that suit the time until something else
// needs its GPUs, with idling as the alternative. What runs at the present goes on.
func stretchTasks(p *planner.Problem, plan *planner.Plan) *planner.Plan {
	better := *plan
	better.Assignments = slices.Clone(plan.Assignments)
	binds, runs := p.AnyNeedsMoreThanGPUs(), p.RunningTasks()
	follow := make([][]float64, len(plan.Nodes)) // by node and GPU: when it is needed next
	for node := range follow {
		follow[node] = slices.Repeat([]float64{lastOffTime(plan, node)},
			p.Cluster.Classes[plan.Nodes[node].Class].GPUs)
	}
	for _, task := range slices.Backward(tasksByStart(plan)) {
		a, until := &better.Assignments[task], math.Inf(1)
		for part := range a.Parts {
			until = min(until, onUntil(&plan.Nodes[part.Node], a.Start))
			for _, g := range part.GPUs.Indexes() {
				until = min(until, follow[part.Node][g])
				follow[part.Node][g] = min(follow[part.Node][g], a.Start)
			}
		}
		if runs == nil || !runs[task] {
			stretchTask(p, &better, task, until, binds)
		}
	}
	better.Ledger = planner.Account(p, &better)
	return &better
}

// tasksByStart lists the tasks of a plan that have a place, by start.
func tasksByStart(plan *planner.Plan) []int {
	var tasks []int
	for i := range plan.Assignments {
		if plan.Assignments[i].Node >= 0 {
			tasks = append(tasks, i)
		}
	}
	slices.SortStableFunc(tasks, func(a, b int) int {
		return cmp.Compare(plan.Assignments[a].Start, plan.Assignments[b].Start)
	})
	return tasks
}

// tasksByNode lists the tasks of each node by start.
func tasksByNode(plan *planner.Plan) [][]int {
	tasks := make([][]int, len(plan.Nodes))
	for _, i := range tasksByStart(plan) {
		for part := range plan.Assignments[i].Parts {
			tasks[part.Node] = append(tasks[part.Node], i)
		}
	}
	return tasks
}

// lastOffTime returns when a node goes off for the last time.
func lastOffTime(plan *planner.Plan, node int) float64 {
	if on := plan.Nodes[node].On; len(on) > 0 {
		return on[len(on)-1].To
	}
	return 0
}

// onUntil returns the end of the time of being on that a moment falls into.
func onUntil(n *planner.PlannedNode, at float64) float64 {
	for _, on := range n.On {
		if at < on.To {
			return on.To
		}
	}
	return at
}

// stretchTask lengthens one task towards the time until which its GPUs would be
// idle after it. A part of a GPU, whose clocks belong to others too, stays as
// it is; so do late tasks, and those that hold CPUs or memory that others may
// wait for.
func stretchTask(p *planner.Problem, plan *planner.Plan, task int, until float64, binds bool) {
	t, a := &p.Tasks[task], &plan.Assignments[task]
	if t.Share < 1 || a.End > t.Due || (binds && (t.CPUs > 0 || t.MemGiB > 0)) {
		return
	}
	room := min(min(until, t.Due)-a.Start, t.Limit)
	if room <= a.Point.Time*(1+narrow) {
		return
	}
	class := plan.Nodes[a.Node].Class
	pr := pricingOf(p, class)
	// Host power is paid whether the GPU idles or not.
	pt, err := pr.optimum(t.Options[a.Option].Response, pr.idle, room)
	if err != nil || !(pr.cost(&pt)-pr.idle*pt.Time < pr.cost(&a.Point)-pr.idle*a.Point.Time) ||
		pt.Time <= a.Point.Time || pt.Time > room*(1+roundOff) {
		return
	}
	a.Reason.Clocks, a.Reason.Want, a.Reason.TimeBudget = planner.ClocksStretched, a.Point.Time, pt.Time
	a.Point = pt
	a.End = a.Start + pt.Time
}
