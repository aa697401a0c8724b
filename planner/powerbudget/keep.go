package powerbudget

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// Keep returns a plan of the same jobs on the same GPUs that is within a budget at every moment. Jobs that
// take more than the budget leaves whenever they start aren't placed. The error says what no plan can change.
//
// Jobs are placed one after the other, in the order of their starts, once more those first that must start
// first to end by their due times, and in some orders between, drawn by a seed of their own: each at that of
// some points of its response that ends by its due time and costs least, or else ends first. The best plan
// counts. On a node no two jobs run together that didn't before, so that cores, memory and shares suffice as
// they did.
func Keep(p *planner.Problem, plan *planner.Plan, b Budget) (*planner.Plan, error) {
	switch {
	case p.Mode == planner.Online:
		return nil, errors.New("a power budget is for jobs that are all there: with arrivals, by --clairvoyant")
	case p.Snapshot != nil:
		return nil, errors.New("a power budget isn't for what waits in Slurm: epd's is [budget] in its configuration")
	case plan.Shared != nil:
		return nil, errors.New("a power budget isn't for jobs that share GPUs by profile: want another policy")
	}
	if n := len(p.Tasks); n > mostTasks {
		return nil, fmt.Errorf("%d jobs are too many for a power budget, want at most %d", n, mostTasks)
	}
	k := newKeeper(p, plan, b)
	if k.asleep > b.Least() {
		return nil, fmt.Errorf("the nodes of the plan take %.6g W while they sleep, the budget is %.6g W",
			float64(k.asleep), float64(b.Least()))
	}
	start := func(task int) float64 { return plan.Assignments[task].Start }
	latest := func(task int) float64 {
		return min(p.Tasks[task].Due, p.Tasks[task].Deadline, 1e12) - plan.Assignments[task].Point.Time
	}
	best := k.run(start)
	try := func(key func(task int) float64) {
		if other := newKeeper(p, plan, b).run(key); p.RankOf(other).Compare(p.RankOf(best)) < 0 {
			best = other
		}
	}
	try(latest)
	rng := rand.New(rand.NewPCG(1, uint64(len(p.Tasks))))
	for range min(mostOrders, ordersByTask/max(1, len(p.Tasks))) {
		part, noise := rng.Float64(), make([]float64, len(p.Tasks))
		for i := range noise {
			noise[i] = 1 + (rng.Float64()-0.5)/2
		}
		try(func(task int) float64 { return noise[task] * (part*start(task) + (1-part)*latest(task)) })
	}
	return best, nil
}

// Orders that are tried: so many at most, and fewer of many tasks.
const (
	mostOrders   = 60
	ordersByTask = 6000
)

// mostTasks is how many jobs are placed within some seconds.
const mostTasks = 2000

// run places all tasks, of those whose nodes are done with what was before them always the one with the least
// key.
func (k *keeper) run(key func(task int) float64) *planner.Plan {
	waits := make(map[int]int) // for how many tasks each one waits
	next := make(map[int][]int)
	for _, task := range k.order {
		for _, other := range k.before(task) {
			waits[task]++
			next[other] = append(next[other], task)
		}
	}
	left := slices.Clone(k.order)
	for len(left) > 0 {
		at := -1
		for i, task := range left {
			if waits[task] == 0 && (at < 0 || key(task) < key(left[at])) {
				at = i
			}
		}
		task := left[at]
		left = slices.Delete(left, at, at+1)
		k.place(task)
		for _, other := range next[task] {
			waits[other]--
		}
	}
	p, out := k.p, k.plan
	slices.SortFunc(out.Unplaced, func(a, b planner.Unplaced) int { return cmp.Compare(a.Task, b.Task) })
	out.CutIdle(p)
	out.Recount(p)
	return out
}

// before returns the tasks on a task's nodes that were over when it started.
func (k *keeper) before(task int) (all []int) {
	a := &k.old.Assignments[task]
	for part := range a.Parts {
		for _, other := range k.byNode[part.Node] {
			if other != task && k.old.Assignments[other].End <= a.Start {
				all = append(all, other)
			}
		}
	}
	return all
}

// keeper is a plan that is made anew.
type keeper struct {
	p      *planner.Problem
	old    *planner.Plan
	plan   *planner.Plan
	budget Budget
	order  []int
	asleep dvfsmodel.Watt // of all nodes
	// byNode are the tasks of each node, in the order of their starts; on is when the node is on, ascending.
	byNode [][]int
	on     [][]planner.Interval
	load   profile
}

func newKeeper(p *planner.Problem, plan *planner.Plan, b Budget) *keeper {
	k := &keeper{
		p: p, old: plan, budget: b, byNode: make([][]int, len(plan.Nodes)),
		on: make([][]planner.Interval, len(plan.Nodes)), load: profile{{From: math.Inf(-1)}},
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
	k.load[0].Watts = k.asleep
	return k
}

// ready returns when a task may start at the earliest: it has arrived, its nodes may be on, and what was over
// on them before it is over again.
func (k *keeper) ready(task int) float64 {
	a, t := &k.old.Assignments[task], &k.p.Tasks[task]
	at := t.Arrival
	for part := range a.Parts {
		at = max(at, k.p.Cluster.Classes[k.old.Nodes[part.Node].Class].TurnOnDelay)
	}
	for _, other := range k.before(task) {
		if now := &k.plan.Assignments[other]; now.Node >= 0 {
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
	return all
}

// place places a task.
func (k *keeper) place(task int) {
	t, a := &k.p.Tasks[task], &k.plan.Assignments[task]
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
	for _, add := range k.needs(a, t) {
		k.load.add(add)
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

// span is power over a time.
type span struct {
	planner.Interval

	Watts dvfsmodel.Watt
}

// needs returns what a task adds: its own power in place of that of idle GPUs, and its nodes where they
// weren't on.
func (k *keeper) needs(a *planner.Assignment, t *planner.Task) []span {
	var all []span
	idle := dvfsmodel.Watt(0)
	for part := range a.Parts {
		class := &k.p.Cluster.Classes[k.old.Nodes[part.Node].Class]
		gpus := float64(part.GPUs.Len())
		if t.Share < 1 {
			gpus = t.Share
		}
		idle += class.IdleW * dvfsmodel.Watt(gpus)
		whole := (class.IdleW+class.HostW)*dvfsmodel.Watt(class.GPUs) - class.SleepW
		for _, iv := range without(k.with(int(part.Node), a), k.on[part.Node]) {
			all = append(all, span{iv, whole})
		}
	}
	return append(all, span{planner.Interval{From: a.Start, To: a.End}, a.Power(t) - idle})
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

// fits reports whether there are the watts for all of some spans.
func (k *keeper) fits(spans []span) bool {
	const rounding = 1e-9
	added := func(at float64) (sum dvfsmodel.Watt) {
		for _, s := range spans {
			if s.From <= at && at < s.To {
				sum += s.Watts
			}
		}
		return sum
	}
	at := func(time float64) bool {
		return k.load.at(time)+added(time) <= k.budget.At(time)*(1+rounding)
	}
	first, last := math.Inf(1), math.Inf(-1)
	for _, s := range spans {
		first, last = min(first, s.From), max(last, s.To)
		if s.From < s.To && !at(s.From) {
			return false
		}
	}
	for i := k.load.index(first) + 1; i < len(k.load) && k.load[i].From < last; i++ {
		if !at(k.load[i].From) {
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

// profile is power over time, ascending, each step from its time on.
type profile []Step

// index returns the step that holds at a time.
func (l profile) index(at float64) int {
	i, found := slices.BinarySearchFunc(l, at, func(s Step, at float64) int { return cmp.Compare(s.From, at) })
	if found {
		return i
	}
	return i - 1
}

func (l profile) at(at float64) dvfsmodel.Watt { return l[l.index(at)].Watts }

// split makes a step begin at a time, and returns its index.
func (l *profile) split(at float64) int {
	i := l.index(at)
	if (*l)[i].From == at {
		return i
	}
	*l = slices.Insert(*l, i+1, Step{From: at, Watts: (*l)[i].Watts})
	return i + 1
}

// add adds a span.
func (l *profile) add(s span) {
	if s.From >= s.To {
		return
	}
	from, to := l.split(s.From), l.split(s.To)
	for i := from; i < to; i++ {
		(*l)[i].Watts += s.Watts
	}
}
