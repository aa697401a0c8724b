package powerbudget

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/steps"
)

// placeAll places all tasks, first those that run, then those with the least keys.
func (k *keeper) placeAll(how placing) *planner.Plan {
	k.placing = how
	order := slices.Clone(k.order)
	slices.SortStableFunc(order, func(a, b int) int {
		if ra, rb := k.runsNow(a), k.runsNow(b); ra != rb {
			if ra {
				return -1
			}
			return 1
		}
		return cmp.Compare(k.keys[a], k.keys[b])
	})
	for _, task := range order {
		k.place(task)
	}
	p, out := k.p, k.plan
	slices.SortFunc(out.Unplaced, func(a, b planner.Unplaced) int { return cmp.Compare(a.Task, b.Task) })
	out.CutIdle(p)
	out.Recount(p)
	return out
}

// hasChoice reports whether a task may run at another point than before.
func (k *keeper) hasChoice(task int) bool { return k.moves == nil || k.moves[task] }

// mayMove reports whether a task may run on other GPUs. Parts of GPUs, jobs on several nodes and jobs without
// GPUs stay where they are.
func (k *keeper) mayMove(task int, a *planner.Assignment) bool {
	return k.hasChoice(task) && !k.stay && k.p.Tasks[task].Share == 1 && len(a.More) == 0 && a.GPUs != 0
}

// runsNow reports whether a task runs at the present: it stays as it is.
func (k *keeper) runsNow(task int) bool { return k.runs != nil && k.runs[task] }

// keeper is a plan that is made anew.
type keeper struct {
	placing

	p      *planner.Problem
	old    *planner.Plan
	plan   *planner.Plan
	budget Budget
	order  []int
	runs   []bool         // by task, at the present: these stay as they are; nil: none does
	asleep dvfsmodel.Watt // of all nodes
	// byNode are the runs that were placed on each node; on is when the node is on, ascending.
	byNode []nodeRuns
	used   []steps.Function[float64] // by node: how many GPUs tasks have that have them alone
	nodeOf []int                     // by class: one of its nodes; -1: there is none
	on     [][]planner.Interval
	load   steps.Function[dvfsmodel.Watt] // what all take above the budget, if there is one
	known  map[run][]dvfsmodel.Point      // see search.points
}

// powerSpan is power over a time.
type powerSpan struct {
	planner.Interval

	Watts dvfsmodel.Watt
}

func newKeeper(p *planner.Problem, plan *planner.Plan, b Budget) *keeper {
	k := &keeper{
		p: p, old: plan, budget: b, runs: p.RunningTasks(),
		byNode: make([]nodeRuns, len(plan.Nodes)),
		used:   make([]steps.Function[float64], len(plan.Nodes)),
		on:     make([][]planner.Interval, len(plan.Nodes)),
	}
	next := *plan
	next.Assignments, next.Nodes = slices.Clone(plan.Assignments), slices.Clone(plan.Nodes)
	next.Unplaced, next.Least, next.Clocks = slices.Clone(plan.Unplaced), nil, nil
	k.plan = &next
	for i := range plan.Assignments {
		if plan.Assignments[i].Node >= 0 {
			k.order = append(k.order, i)
		}
	}
	slices.SortStableFunc(k.order, func(a, b int) int {
		return cmp.Compare(plan.Assignments[a].Start, plan.Assignments[b].Start)
	})
	k.nodeOf = slices.Repeat([]int{-1}, len(p.Cluster.Classes))
	for n := range plan.Nodes {
		k.used[n] = steps.Constant(0.0)
		k.nodeOf[plan.Nodes[n].Class] = n
		k.asleep += p.Cluster.Classes[plan.Nodes[n].Class].SleepW
	}
	k.load = steps.Constant(k.asleep)
	for i, step := range b {
		if above := k.asleep - step.Watts*(1+rounding); i == 0 {
			k.load = steps.Constant(above)
		} else {
			k.load = append(k.load, steps.Step[dvfsmodel.Watt]{From: step.From, Value: above})
		}
	}
	return k
}

// timeWeights are what a second of a GPU is worth, W, where points of a response are looked for.
var timeWeights = [...]float64{0, 30, 100, 300, 1000, 10000}

// optima returns some points at which a task may run by an option, the one that it has first.
func (k *keeper) optima(task int, option int32) []dvfsmodel.Point {
	t, a := &k.p.Tasks[task], &k.old.Assignments[task]
	own := []dvfsmodel.Point{a.Point}
	if t.Share < 1 || !k.hasChoice(task) {
		return own
	}
	if option != a.Option {
		own = nil
	}
	key := run{int32(task), option}
	all, known := k.known[key]
	if !known {
		response := t.Options[option].Response
		for _, weight := range timeWeights {
			pt, err := response.Optimum(dvfsmodel.Objective{EnergyWeight: 1, TimeWeight: weight}, t.Limit)
			if err == nil && !slices.Contains(all, pt) {
				all = append(all, pt)
			}
		}
		if k.known != nil {
			k.known[key] = all
		}
	}
	for _, pt := range all {
		if !slices.Contains(own, pt) {
			own = append(own, pt)
		}
	}
	return own[min(k.fast, max(0, len(own)-1)):]
}

// place places a task.
func (k *keeper) place(task int) {
	t, a := &k.p.Tasks[task], &k.plan.Assignments[task]
	if k.runsNow(task) {
		k.take(task)
		return
	}
	due := min(t.Due, t.Deadline)
	due += planner.DeadlineSlack * max(1, math.Abs(due))
	best, cost, found := *a, 0.0, false
	endBy := math.Inf(1) // later it is no better
	for _, at := range k.places(task) {
		for _, at.Point = range k.optima(task, at.Option) {
			if found && best.End <= due && k.energy(&at, t) >= cost {
				continue // it costs more whenever it runs
			}
			at, added, ok := k.soonest(task, at, endBy)
			if !ok {
				continue
			}
			better := !found
			switch {
			case !found:
			case (at.End <= due) != (best.End <= due):
				better = at.End <= due
			case at.End <= due:
				better = added < cost
			default:
				better = at.End < best.End
			}
			if better {
				best, cost, found = at, added, true
				endBy = max(due, best.End)
			}
		}
	}
	if !found {
		k.leaveOut(task)
		return
	}
	*a = best
	k.take(task)
}

// places returns where a task may run, with a node of each class: first where it ran.
func (k *keeper) places(task int) []planner.Assignment {
	t, a := &k.p.Tasks[task], k.plan.Assignments[task]
	all := []planner.Assignment{a}
	if !k.mayMove(task, &a) {
		return all
	}
	for class, node := range k.nodeOf {
		c := &k.p.Cluster.Classes[class]
		option := t.Option(c.Model)
		if node < 0 || class == k.old.Nodes[a.Node].Class || option < 0 || !c.CanRun(t, option) ||
			t.Options[option].NodeCount() > 1 || t.Options[option].GPUs == 0 {
			continue
		}
		at := a
		at.Node, at.Option, at.GPUs = int32(node), int32(option), planner.FirstGPUs(t.Options[option].GPUs)
		all = append(all, at)
	}
	return all
}

// energy returns what a task's run takes, J.
func (k *keeper) energy(a *planner.Assignment, t *planner.Task) float64 {
	gpus := float64(a.GPUCount())
	if t.Share < 1 {
		gpus = t.Share
	}
	return gpus * float64(a.Point.Energy)
}

// soonest returns where and when a task can run on nodes of a class at a point and end by a time, and what
// that adds, J.
func (k *keeper) soonest(task int, a planner.Assignment, endBy float64) (
	best planner.Assignment, cost float64, found bool,
) {
	t := &k.p.Tasks[task]
	run := k.energy(&a, t)
	watts := k.runPower(&a, t).Watts
	from := k.load.WhenAtMost(t.Arrival, a.Point.Time, -watts) // on any node
	try := func(at planner.Assignment) {
		if found && (k.eager || cost <= run) { // only an earlier start is better
			endBy = min(endBy, best.End)
		}
		if !k.findStart(task, &at, from, endBy) {
			return
		}
		added := run
		for _, need := range k.wakePower(&at) {
			added += float64(need.Watts) * need.Len()
		}
		less := cmp.Or(cmp.Compare(added, cost), cmp.Compare(at.Start, best.Start))
		if k.eager {
			less = cmp.Or(cmp.Compare(at.Start, best.Start), cmp.Compare(added, cost))
		}
		if !found || less < 0 {
			best, cost, found = at, added, true
		}
	}
	if try(a); !k.mayMove(task, &a) {
		return best, cost, found
	}
	for node := range k.old.Nodes {
		if at := a; k.old.Nodes[node].Class == k.old.Nodes[a.Node].Class && node != int(a.Node) {
			at.Node = int32(node)
			try(at)
		}
	}
	return best, cost, found
}

// findStart finds the first time, not before one, from which on a task has its GPUs and the watts to its end,
// by a time; GPUs of one node may be others than those it had.
func (k *keeper) findStart(task int, a *planner.Assignment, start, endBy float64) bool {
	t := &k.p.Tasks[task]
	for part := range a.Parts {
		start = max(start, k.p.Cluster.Classes[k.old.Nodes[part.Node].Class].TurnOnDelay)
	}
	for !math.IsInf(start, 1) {
		if slot := k.p.Cluster.Slot; k.p.Start != planner.StartContinuous {
			start = math.Ceil(start/slot) * slot
		}
		a.Start, a.End = start, start+a.Point.Time
		if a.End > endBy {
			return false
		}
		next := start
		for part := range a.Parts {
			next = max(next, k.nextFree(task, a, part))
		}
		if next == start {
			if next = k.nextPowered(a, t); next == start {
				return true
			}
		}
		start = next
	}
	return false
}

// nextFree returns the assignment's start if a task has room on a node beside those that are there until its
// end, else the next time that may be one. A task of whole GPUs of one node gets others there if its own
// aren't free.
func (k *keeper) nextFree(task int, a *planner.Assignment, part planner.Part) float64 {
	t, class := &k.p.Tasks[task], &k.p.Cluster.Classes[k.old.Nodes[part.Node].Class]
	if t.Share == 1 {
		free := k.used[part.Node].WhenAtMost(a.Start, a.Point.Time, float64(class.GPUs-part.GPUs.Len()))
		if free > a.Start {
			return free
		}
	}
	var held planner.GPUSet // by tasks that this one can't be beside on a GPU
	next, scarce := math.Inf(1), t.Share < 1 || class.CPUs > 0 || class.MemGiB > 0
	for other := range k.byNode[part.Node].during(planner.Interval{From: a.Start, To: a.End}) {
		next = min(next, other.To)
		if t.Share == 1 || k.p.Tasks[other.task].Share == 1 {
			held |= other.gpus
		}
	}
	if part.GPUs&held != 0 {
		free := planner.FirstGPUs(class.GPUs) &^ held
		if t.Share < 1 || len(a.More) > 0 || free.Len() < part.GPUs.Len() {
			return next
		}
		part.GPUs = free.Lowest(part.GPUs.Len())
		a.GPUs = part.GPUs
	}
	if scarce && !math.IsInf(next, 1) && !k.hasRoom(task, a, part, class) {
		return next
	}
	return a.Start
}

// hasRoom reports whether cores, memory and the shares of a GPU are enough for a task at each moment of its
// run.
func (k *keeper) hasRoom(task int, a *planner.Assignment, part planner.Part, class *planner.NodeClass) bool {
	enough := func(at float64) bool {
		t := &k.p.Tasks[task]
		cpus, mem := t.PerNode(int(a.Option))
		share := t.Share
		for other := range k.byNode[part.Node].during(planner.Interval{From: a.Start, To: a.End}) {
			if other.From > at || other.To <= at {
				continue
			}
			o := &k.p.Tasks[other.task]
			c, m := o.PerNode(int(k.plan.Assignments[other.task].Option))
			cpus, mem = cpus+c, mem+m
			if t.Share < 1 && other.gpus&part.GPUs != 0 {
				share += o.Share
			}
		}
		return share <= 1+rounding && (class.CPUs == 0 || cpus <= class.CPUs*(1+rounding)) &&
			(class.MemGiB == 0 || mem <= class.MemGiB*(1+rounding))
	}
	if !enough(a.Start) {
		return false
	}
	for other := range k.byNode[part.Node].during(planner.Interval{From: a.Start, To: a.End}) {
		if other.From > a.Start && !enough(other.From) {
			return false
		}
	}
	return true
}

// nextPowered returns the assignment's start if there are the watts for it to its end, else the next time
// that may be one.
func (k *keeper) nextPowered(a *planner.Assignment, t *planner.Task) float64 {
	own := k.runPower(a, t)
	if next := k.load.WhenAtMost(a.Start, a.Point.Time, -own.Watts); next > a.Start {
		return next
	}
	if wakes := k.wakePower(a); len(wakes) > 0 && !k.fits(append(wakes, own)) {
		return k.load.NextAfter(a.Start)
	}
	return a.Start
}

// take has a task take its watts, and its nodes be on.
func (k *keeper) take(task int) {
	a, t := &k.plan.Assignments[task], &k.p.Tasks[task]
	for _, add := range k.addedPower(a, t) {
		k.load.Add(add.Interval, add.Watts)
	}
	for part := range a.Parts {
		k.on[part.Node] = k.onTimesWith(int(part.Node), a)
		run := planner.Interval{From: a.Start, To: a.End}
		k.byNode[part.Node].add(nodeRun{Interval: run, task: task, gpus: part.GPUs})
		if t.Share == 1 {
			k.used[part.Node].Add(run, float64(part.GPUs.Len()))
		}
	}
}

// leaveOut says that a task has no place.
func (k *keeper) leaveOut(task int) {
	a, t := &k.plan.Assignments[task], &k.p.Tasks[task]
	least := dvfsmodel.Watt(math.Inf(1))
	for _, pt := range k.optima(task, a.Option) {
		at := *a
		at.Point, at.Start, at.End = pt, 0, pt.Time
		sum := k.asleep
		for _, need := range k.addedPower(&at, t) {
			sum += need.Watts
		}
		least = min(least, sum)
	}
	a.Node, a.More = -1, nil
	k.plan.Unplaced = append(k.plan.Unplaced, planner.Unplaced{
		Task: task, Earliest: math.Inf(1),
		Why: fmt.Sprintf("with its nodes it takes %.6g W, and the power budget of %.6g W never has room for that",
			float64(least), float64(k.budget.Most())),
	})
}

// onTimesWith returns when a node is on once a task runs there, too: it sleeps in gaps where that pays.
func (k *keeper) onTimesWith(node int, a *planner.Assignment) []planner.Interval {
	class := &k.p.Cluster.Classes[k.old.Nodes[node].Class]
	runs := append(slices.Clone(k.on[node]), planner.Interval{From: a.Start - class.TurnOnDelay, To: a.End})
	slices.SortFunc(runs, func(x, y planner.Interval) int { return cmp.Compare(x.From, y.From) })
	on := runs[:1]
	for _, run := range runs[1:] {
		if last := &on[len(on)-1]; class.IsSleepWorthwhile(run.From - last.To) {
			on = append(on, run)
		} else {
			last.To = max(last.To, run.To)
		}
	}
	return on
}

// subtractIntervals returns the parts of some intervals that others leave, both ascending.
func subtractIntervals(all, others []planner.Interval) (left []planner.Interval) {
	for _, iv := range all {
		for _, o := range others {
			if o.To <= iv.From || o.From >= iv.To {
				continue
			}
			if o.From > iv.From {
				left = append(left, planner.Interval{From: iv.From, To: o.From})
			}
			iv.From = o.To
		}
		if iv.From < iv.To {
			left = append(left, iv)
		}
	}
	return left
}

// addedPower returns what a task adds: its own power in place of that of idle GPUs, and its nodes where they
// weren't on.
func (k *keeper) addedPower(a *planner.Assignment, t *planner.Task) []powerSpan {
	return append(k.wakePower(a), k.runPower(a, t))
}

// wakePower returns what the nodes of a task take where they weren't on.
func (k *keeper) wakePower(a *planner.Assignment) (all []powerSpan) {
	for part := range a.Parts {
		for _, iv := range subtractIntervals(k.onTimesWith(int(part.Node), a), k.on[part.Node]) {
			all = append(all, powerSpan{iv, k.awakePower(int(part.Node))})
		}
	}
	return all
}

// awakePower returns what a node takes that is on and runs nothing, above sleeping.
func (k *keeper) awakePower(node int) dvfsmodel.Watt {
	return k.p.Cluster.Classes[k.old.Nodes[node].Class].PowerAboveSleep()
}

// runPower returns what a task takes while it runs, above its GPUs idling.
func (k *keeper) runPower(a *planner.Assignment, t *planner.Task) powerSpan {
	return powerSpan{planner.Interval{From: a.Start, To: a.End}, k.old.PowerAboveIdle(k.p, t, a)}
}

// rounding is the part by which sums of watts may be above a budget.
const rounding = 1e-9

// fits reports whether there are the watts for all of some spans.
func (k *keeper) fits(spans []powerSpan) bool {
	added := func(at float64) (sum dvfsmodel.Watt) {
		for _, s := range spans {
			if s.From <= at && at < s.To {
				sum += s.Watts
			}
		}
		return sum
	}
	at := func(time float64) bool { return k.load.At(time)+added(time) <= 0 }
	first, last := math.Inf(1), math.Inf(-1)
	for _, s := range spans {
		first, last = min(first, s.From), max(last, s.To)
		if s.From < s.To && !at(s.From) {
			return false
		}
	}
	for part := range k.load.During(planner.Interval{From: first, To: last}) {
		if part.From > first && !at(part.From) {
			return false
		}
	}
	return true
}
