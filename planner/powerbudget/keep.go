package powerbudget

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/steps"
)

// Keep returns a plan of the same jobs on the same GPUs that is within a budget at every moment. Jobs that
// take more than the budget leaves whenever they start aren't placed. The error says what no plan can change.
//
// Jobs are placed one after the other, in the order of their starts, once more those first that must start
// first to end by their due times, and in some orders between, drawn by a seed of their own, a few in every
// order: each at that of some points of its response, or of the faster ones of them, that ends by its due
// time and costs least, or else ends first. The best plan counts. On a node no two jobs run together that
// didn't before, so that cores, memory and shares suffice as they did. Of further plans, which may be nil, the
// places are tried, too.
func Keep(
	p *planner.Problem, plan *planner.Plan, b Budget, others ...*planner.Plan,
) (*planner.Plan, error) {
	best, err := keepOn(p, plan, b)
	for _, other := range others {
		if err != nil || other == nil || other.Shared != nil {
			continue
		}
		kept, err := keepOn(p, other, b)
		if err == nil && p.RankOf(kept).Compare(p.RankOf(best)) < 0 {
			kept.Policy, kept.From = best.Policy, other.Policy
			best = kept
		}
	}
	return best, err
}

// keepOn is Keep at the places of one plan.
func keepOn(p *planner.Problem, plan *planner.Plan, b Budget) (*planner.Plan, error) {
	switch {
	case p.Mode == planner.Online:
		return nil, errors.New("a power budget is for jobs that are all there: with arrivals, by --clairvoyant")
	case plan.Shared != nil:
		return nil, errors.New("a power budget isn't for jobs that share GPUs by profile: want another policy")
	}
	if n := len(p.Tasks); n > mostTasks {
		return nil, fmt.Errorf("%d jobs are too many for a power budget, want at most %d", n, mostTasks)
	}
	k := newKeeper(p, plan, b)
	if k.asleep > b.Least() {
		return nil, fmt.Errorf("%w %.6g W while they sleep, the budget is %.6g W", errAsleep,
			float64(k.asleep), float64(b.Least()))
	}
	start := func(task int) float64 { return plan.Assignments[task].Start }
	latest := func(task int) float64 {
		return min(p.Tasks[task].Due, p.Tasks[task].Deadline, 1e12) - plan.Assignments[task].Point.Time
	}
	best := k.placeAll(start)
	fast, inTurn := 0, true
	try := func(key func(task int) float64) {
		k := newKeeper(p, plan, b)
		k.fast, k.inTurn = fast, inTurn
		if other := k.placeAll(key); p.RankOf(other).Compare(p.RankOf(best)) < 0 {
			best = other
		}
	}
	try(latest)
	inTurn = false
	try(latest)
	for fast = 1; fast <= len(timeWeights); fast++ {
		try(start)
		try(latest)
	}
	fast = 0
	if n := len(p.Tasks); n <= mostPermuted {
		for places := range permutations(n) {
			for fast = range 1 + len(timeWeights) {
				try(func(task int) float64 { return float64(places[task]) })
			}
		}
		return best, nil
	}
	rng := rand.New(rand.NewPCG(1, uint64(len(p.Tasks))))
	for range min(mostOrders, ordersByTask/max(1, len(p.Tasks))) {
		part, noise := rng.Float64(), make([]float64, len(p.Tasks))
		for i := range noise {
			noise[i] = 1 + (rng.Float64()-0.5)/2
		}
		inTurn = rng.IntN(2) == 0
		try(func(task int) float64 { return noise[task] * (part*start(task) + (1-part)*latest(task)) })
	}
	return best, nil
}

var errAsleep = errors.New("the nodes of the plan take")

// Orders that are tried: so many at most, and fewer of many tasks.
const (
	mostOrders   = 60
	ordersByTask = 6000
)

// mostPermuted is up to how many tasks every order is tried.
const mostPermuted = 5

// permutations yields every order of the numbers below n.
func permutations(n int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		var permute func(k int) bool
		permute = func(k int) bool {
			if k == n {
				return yield(order)
			}
			for i := k; i < n; i++ {
				order[k], order[i] = order[i], order[k]
				if !permute(k + 1) {
					return false
				}
				order[k], order[i] = order[i], order[k]
			}
			return true
		}
		permute(0)
	}
}

// mostTasks is how many jobs are placed within some seconds.
const mostTasks = 2000

// placeAll places all tasks, first those that run, then those with the least keys, each on a node behind
// those that are there already and weren't beside it before.
func (k *keeper) placeAll(key func(task int) float64) *planner.Plan {
	keys := make(map[int]float64, len(k.order))
	for _, task := range k.order {
		keys[task] = key(task)
		if k.runs != nil && k.runs[task] {
			keys[task] = math.Inf(-1)
		}
		if !k.inTurn {
			continue
		}
		for other := range k.apart(task) {
			if before, ok := keys[other]; ok {
				keys[task] = max(keys[task], before)
			}
		}
	}
	order := slices.Clone(k.order)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	for _, task := range order {
		k.place(task)
		k.placed[task] = true
	}
	p, out := k.p, k.plan
	slices.SortFunc(out.Unplaced, func(a, b planner.Unplaced) int { return cmp.Compare(a.Task, b.Task) })
	out.CutIdle(p)
	out.Recount(p)
	return out
}

// apart yields the tasks on a task's nodes that didn't run beside it.
func (k *keeper) apart(task int) iter.Seq[int] {
	a := &k.old.Assignments[task]
	return func(yield func(int) bool) {
		for part := range a.Parts {
			for _, other := range k.byNode[part.Node] {
				b := &k.old.Assignments[other]
				if other != task && (b.End <= a.Start || a.End <= b.Start) && !yield(other) {
					return
				}
			}
		}
	}
}

// keeper is a plan that is made anew.
type keeper struct {
	p      *planner.Problem
	old    *planner.Plan
	plan   *planner.Plan
	budget Budget
	order  []int
	placed []bool         // by task
	inTurn bool           // what ran one after the other on a node keeps that order
	fast   int            // of the points of a task so many of the slowest aren't looked at
	runs   []bool         // by task, at the present: these stay as they are; nil: none does
	asleep dvfsmodel.Watt // of all nodes
	// byNode are the tasks of each node, in the order of their starts; on is when the node is on, ascending.
	byNode [][]int
	on     [][]planner.Interval
	load   steps.Function[dvfsmodel.Watt]
}

// span is power over a time.
type span struct {
	planner.Interval

	Watts dvfsmodel.Watt
}

func newKeeper(p *planner.Problem, plan *planner.Plan, b Budget) *keeper {
	k := &keeper{
		p: p, old: plan, budget: b, runs: p.RunningTasks(), placed: make([]bool, len(p.Tasks)),
		byNode: make([][]int, len(plan.Nodes)),
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
	for _, i := range k.order {
		for part := range plan.Assignments[i].Parts {
			k.byNode[part.Node] = append(k.byNode[part.Node], i)
		}
	}
	for n := range plan.Nodes {
		k.asleep += p.Cluster.Classes[plan.Nodes[n].Class].SleepW
	}
	k.load = steps.Constant(k.asleep)
	return k
}

// ready returns when a task may start at the earliest: it has arrived, its nodes may be on, and what it can't
// run beside is over.
func (k *keeper) ready(task int) float64 {
	a, t := &k.old.Assignments[task], &k.p.Tasks[task]
	at := t.Arrival
	for part := range a.Parts {
		at = max(at, k.p.Cluster.Classes[k.old.Nodes[part.Node].Class].TurnOnDelay)
	}
	for other := range k.apart(task) {
		if now := &k.plan.Assignments[other]; k.placed[other] && now.Node >= 0 {
			at = max(at, now.End)
		}
	}
	return at
}

// timeWeights are what a second of a GPU is worth, W, where points of a response are looked for.
var timeWeights = [...]float64{0, 30, 100, 300, 1000, 10000}

// points returns some at which a task may run, the one that it has first.
func (k *keeper) points(task int) []dvfsmodel.Point {
	t, a := &k.p.Tasks[task], &k.old.Assignments[task]
	all := []dvfsmodel.Point{a.Point}
	if t.Share < 1 {
		return all
	}
	response := t.Options[a.Option].Response
	for _, weight := range timeWeights {
		pt, err := response.Optimum(dvfsmodel.Objective{EnergyWeight: 1, TimeWeight: weight}, t.Limit)
		if err == nil && !slices.Contains(all, pt) {
			all = append(all, pt)
		}
	}
	return all[min(k.fast, len(all)-1):]
}

// place places a task.
func (k *keeper) place(task int) {
	t, a := &k.p.Tasks[task], &k.plan.Assignments[task]
	if k.runs != nil && k.runs[task] {
		k.take(a, t)
		return
	}
	from, due := k.ready(task), min(t.Due, t.Deadline)
	best, found := *a, false
	inTime := func(x *planner.Assignment) bool { return x.End <= due }
	for _, pt := range k.points(task) {
		at := *a
		at.Point = pt
		start, ok := k.earliest(&at, t, from)
		if !ok {
			continue
		}
		at.Start, at.End = start, start+pt.Time
		better := !found
		switch {
		case !found:
		case inTime(&at) != inTime(&best):
			better = inTime(&at)
		case inTime(&at):
			better = at.Point.Energy < best.Point.Energy
		default:
			better = at.End < best.End
		}
		if better {
			best, found = at, true
		}
	}
	if !found {
		k.leaveOut(task)
		return
	}
	*a = best
	k.take(a, t)
}

// take has a task take its watts, and its nodes be on.
func (k *keeper) take(a *planner.Assignment, t *planner.Task) {
	for _, add := range k.needs(a, t) {
		k.load.Add(add.Interval, add.Watts)
	}
	for part := range a.Parts {
		k.on[part.Node] = k.with(int(part.Node), a)
	}
}

// leaveOut says that a task has no place.
func (k *keeper) leaveOut(task int) {
	a, t := &k.plan.Assignments[task], &k.p.Tasks[task]
	least := dvfsmodel.Watt(math.Inf(1))
	for _, pt := range k.points(task) {
		at := *a
		at.Point, at.Start, at.End = pt, 0, pt.Time
		sum := k.asleep
		for _, need := range k.needs(&at, t) {
			sum += need.Watts
		}
		least = min(least, sum)
	}
	a.Node, a.More = -1, nil
	k.plan.Unplaced = append(k.plan.Unplaced, planner.Unplaced{
		Task: task, Earliest: math.Inf(1),
		Why: fmt.Sprintf("with its nodes it takes %.6g W, and the power budget of %.6g W never has room for that",
			float64(least), float64(k.budget.most())),
	})
}

// with returns when a node is on once a task runs there, too: it sleeps in gaps where that pays.
func (k *keeper) with(node int, a *planner.Assignment) []planner.Interval {
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

// without returns the parts of some intervals that others leave, both ascending.
func without(all, others []planner.Interval) (left []planner.Interval) {
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

// needs returns what a task adds: its own power in place of that of idle GPUs, and its nodes where they
// weren't on.
func (k *keeper) needs(a *planner.Assignment, t *planner.Task) []span {
	var all []span
	for part := range a.Parts {
		for _, iv := range without(k.with(int(part.Node), a), k.on[part.Node]) {
			all = append(all, span{iv, k.awake(int(part.Node))})
		}
	}
	return append(all, k.run(a, t))
}

// awake returns what a node takes that is on and runs nothing, above sleeping.
func (k *keeper) awake(node int) dvfsmodel.Watt {
	return k.p.Cluster.Classes[k.old.Nodes[node].Class].AboveSleep()
}

// run returns what a task takes while it runs, above its GPUs idling.
func (k *keeper) run(a *planner.Assignment, t *planner.Task) span {
	return span{planner.Interval{From: a.Start, To: a.End}, k.old.AboveIdle(k.p, t, a)}
}

// earliest returns the first time from which on a task has the watts to its end.
func (k *keeper) earliest(a *planner.Assignment, t *planner.Task, from float64) (start float64, ok bool) {
	try := func(at float64) bool {
		if slot := k.p.Cluster.Slot; k.p.Start != planner.StartContinuous {
			at = math.Ceil(at/slot) * slot
		}
		a.Start, a.End = at, at+a.Point.Time
		if k.fits(k.needs(a, t)) {
			start = at
			return true
		}
		return false
	}
	if try(from) {
		return start, true
	}
	for _, at := range k.load {
		if at.From > from && try(at.From) {
			return start, true
		}
	}
	for _, step := range k.budget {
		if step.From > from && try(step.From) {
			return start, true
		}
	}
	return 0, false
}

// rounding is the part by which sums of watts may be above a budget.
const rounding = 1e-9

// fits reports whether there are the watts for all of some spans.
func (k *keeper) fits(spans []span) bool {
	added := func(at float64) (sum dvfsmodel.Watt) {
		for _, s := range spans {
			if s.From <= at && at < s.To {
				sum += s.Watts
			}
		}
		return sum
	}
	at := func(time float64) bool {
		return k.load.At(time)+added(time) <= k.budget.At(time)*(1+rounding)
	}
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
	for _, step := range k.budget {
		if step.From > first && step.From < last && !at(step.From) {
			return false
		}
	}
	return true
}
