// Package bound proves what no plan of a problem goes below: in energy, and in what the
// problem's objective makes of energy, time and waiting. It looks at no plan but to see
// what that promises.
package bound

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/sharing"
)

// Bound is an energy that no plan of a problem can go below if it places every
// task that can be placed and meets every deadline that can be met. It holds
// for offline, online and clairvoyant plans alike.
type Bound struct {
	Value dvfsmodel.Joule // Run + Extra
	Run   dvfsmodel.Joule // the sum of the tasks' own minima, host power included
	Extra dvfsmodel.Joule // what is proved beyond it, the sum of Terms
	Terms []Term
	Cost  float64 // what [planner.Problem.Cost] of such a plan can't go below; 0: nothing is proved of it
}

// Term is one part of [Bound.Extra].
type Term struct {
	Name  string
	Value dvfsmodel.Joule
}

// Names of the terms of a bound.
const (
	TermIdle   = "idle"      // of the node that runs the longest task
	TermTurnOn = "turn-on"   // of the nodes that must be on at once
	TermDue    = "due times" // of time on GPUs of which there are too few, and of GPUs idle beside tasks
)

// Gap returns how far an energy lies above the bound, as a fraction of the bound;
// +Inf where the bound is 0 and the energy isn't.
func (b *Bound) Gap(energy dvfsmodel.Joule) float64 {
	if energy == b.Value {
		return 0
	}
	return float64(energy/b.Value) - 1
}

// Lower proves a lower bound for a problem that [planner.Problem.Validate] has nothing
// against.
//
// Run: a plan's run and host energy is at least the sum over tasks of the least
// that each can take by itself, on any GPU model, within its limit and the time
// between arrival and deadline; host power counts for as long as the task
// occupies its GPUs. Everything else that a plan pays is not negative. Tasks
// that nothing can place or finish in time add nothing.
//
// Idle: the node of the longest task is on for at least that task's run time M,
// all its l GPUs. Together the tasks fill at most their run times of it, so at
// least l·M − Σt GPU-seconds are idle if that is positive. For any price β
// between 0 and the idle power the plan costs at least
//
//	min over M of β·l·M + Σ min over t ≤ M of (cost of t − β·t)
//
// (weak duality); the term is the excess of the best β over Run. See idleBound.
//
// Turn-on: tasks that must be running at the same moment, whatever their
// clocks, need that many GPUs at once; every node that is on then was switched
// on once, and its GPUs waited for the switching. See turnOnBound.
//
// Where GPUs may be shared by profile, Run alone is proved: see sharedCost. Of a plan
// from the present nothing is proved by turning on: who knows which nodes are on.
func Lower(p *planner.Problem) Bound {
	tasks := boundTasks(p, 1, 0)
	var b Bound
	for i := range tasks {
		b.Run += dvfsmodel.Joule(tasks[i].least)
	}
	if !p.HasSharing() {
		b.add(TermIdle, idleBound(p, tasks))
		if p.Snapshot == nil {
			b.add(TermTurnOn, turnOnBound(p, tasks))
		}
	}
	b.Value = b.Run + b.Extra
	return b
}

// Of returns an energy that no plan of the tasks that the given one places goes below that promises what it
// keeps: where it ends every task by its due time, [NewDueDual] and the nodes that tasks keep on may prove
// more than [Lower].
func Of(p *planner.Problem, plan *planner.Plan) Bound {
	p = p.Placing(plan)
	b := Lower(p)
	dues := !p.HasSharing() && p.Snapshot == nil && len(plan.PastDue(p)) == 0
	if dues {
		value := dvfsmodel.Joule(dueBound(p, 1, 0))
		for _, term := range b.Terms {
			if term.Name == TermTurnOn {
				value += term.Value
			}
		}
		if value > b.Value {
			b.Terms = append(b.Terms, Term{Name: TermDue, Value: value - b.Value})
			b.Extra += value - b.Value
			b.Value = value
		}
	}
	b.Cost = boundOfCost(p, b.Value, dues)
	return b
}

// add adds a term, joules, unless nothing was proved.
func (b *Bound) add(name string, value float64) {
	if value > 0 {
		b.Terms = append(b.Terms, Term{Name: name, Value: dvfsmodel.Joule(value)})
		b.Extra += dvfsmodel.Joule(value)
	}
}

// boundTask is what the bound needs of a task that can be done in time. Times are
// seconds.
type boundTask struct {
	task       int
	timeBudget float64 // longest run time: limit, or deadline − earliest start
	least      float64 // least cost by itself
	time       float64 // run time at that cost
	weight     float64 // GPUs at that cost, or the share of one
	shortest   float64 // shortest possible run time
	gpus       float64 // fewest GPUs, or the share of one
}

// boundTasks finds each task's own optimum, for weights of a joule and of a second of a
// GPU, and leaves out the tasks that nothing can do in time.
func boundTasks(p *planner.Problem, energy, time float64) []boundTask {
	tasks := make([]boundTask, 0, len(p.Tasks))
	for i := range p.Tasks {
		t := &p.Tasks[i]
		b := boundTask{
			task: i, timeBudget: min(t.Deadline-earliestStart(p, t), t.Limit) * (1 + planner.DeadlineSlack),
			least: math.Inf(1), shortest: math.Inf(1), gpus: math.Inf(1),
		}
		for class := range p.Cluster.Classes {
			b.consider(p, class, energy, time)
		}
		if !math.IsInf(b.least, 1) {
			tasks = append(tasks, b)
		}
	}
	return tasks
}

// earliestStart returns the first moment at which the start rule lets a task start. An
// arrival that is beyond a whole slot by rounding only counts as being at it: the
// bound must not be too high.
func earliestStart(p *planner.Problem, t *planner.Task) float64 {
	if p.Start != planner.StartSlot {
		return t.Arrival
	}
	return math.Ceil(t.Arrival/p.Cluster.Slot-planner.DeadlineSlack) * p.Cluster.Slot
}

// consider takes into account what the task could do on nodes of a class.
func (b *boundTask) consider(p *planner.Problem, class int, energy, time float64) {
	t, k := &p.Tasks[b.task], &p.Cluster.Classes[class]
	o := t.Option(k.Model)
	if !k.CanRun(t, o) {
		return
	}
	weight := gpuWeight(t, o)
	goal := dvfsmodel.Objective{EnergyWeight: energy, TimeWeight: time + energy*float64(k.HostW)}
	pt, ok := cheapest(t, o, goal, b.timeBudget)
	if !ok {
		return
	}
	cost := weight * goal.Cost(pt)
	if t.Profile != nil && p.CanShareGPUs(class) {
		cost = min(cost, weight*sharedCost(p, t, o, class))
	}
	if cost < b.least {
		b.least, b.time, b.weight = cost, pt.Time, weight
	}
	b.gpus = min(b.gpus, weight)
	if t.Share < 1 {
		b.shortest = min(b.shortest, pt.Time)
		return
	}
	b.shortest = min(b.shortest, t.Options[o].Response.MinTime(), t.Options[o].Response.Default().Time)
}

// gpuWeight returns how many GPUs' worth a task occupies by an option.
func gpuWeight(t *planner.Task, option int) float64 {
	if t.Share < 1 {
		return t.Share
	}
	return float64(t.Options[option].GPUs)
}

// cheapest returns the best point of a task within a room: of those that clocks can
// be set to, and of the default, which needs no setting.
func cheapest(
	t *planner.Task, option int, o dvfsmodel.Objective, room float64,
) (best dvfsmodel.Point, ok bool) {
	response := t.Options[option].Response
	if t.Share == 1 {
		pt, err := response.Optimum(o, room)
		best, ok = pt, err == nil
	}
	if at := response.Default(); dvfsmodel.MeetsLimit(at.Time, room) && (!ok || o.Cost(at) < o.Cost(best)) {
		best, ok = at, true
	}
	return best, ok
}

// appendCheapest appends what [cheapest] returns for each of some objectives, from the one with the highest
// price of time to the one with the lowest; nothing where the task can't be done within the room.
func appendCheapest(
	to []dvfsmodel.Point, t *planner.Task, option int, goals []dvfsmodel.Objective, room float64,
) []dvfsmodel.Point {
	response := t.Options[option].Response
	at := response.Default()
	inTime := dvfsmodel.MeetsLimit(at.Time, room)
	if t.Share == 1 {
		to = dvfsmodel.AppendOptima(to, response, goals, room)
	}
	if len(to) == 0 && inTime {
		return append(to, slices.Repeat([]dvfsmodel.Point{at}, len(goals))...)
	}
	for n := range to {
		if inTime && goals[n].Cost(at) < goals[n].Cost(to[n]) {
			to[n] = at
		}
	}
	return to
}

// turnOnBound returns the least energy of switching nodes on, and of their GPUs while
// they do. A task that arrives at a, is due at d and takes at least s runs during
// all of [d−s, a+s] if that isn't empty, whatever the plan. At any moment the
// nodes that are on have GPUs for all tasks that run.
func turnOnBound(p *planner.Problem, tasks []boundTask) float64 {
	if len(tasks) == 0 {
		return 0
	}
	perGPU, perNode := math.Inf(1), math.Inf(1)
	for i := range p.Cluster.Classes {
		k := &p.Cluster.Classes[i]
		cost := float64(k.IdleW+k.HostW) * k.TurnOnDelay
		if p.Mode != planner.Offline || p.Cluster.OfflineTurnOn {
			cost += float64(k.TurnOn)
		}
		perGPU, perNode = min(perGPU, cost), min(perNode, cost*float64(k.GPUs))
	}
	if perGPU == 0 {
		return 0
	}
	atOnce := maxGPUsAtOnce(p, tasks)
	if len(p.Cluster.Classes) == 1 {
		l := float64(p.Cluster.Classes[0].GPUs)
		atOnce = l * math.Ceil(atOnce/l-planner.DeadlineSlack)
	}
	return max(perNode, perGPU*atOnce)
}

// maxGPUsAtOnce returns the most GPUs that are in use at one moment in every plan.
func maxGPUsAtOnce(p *planner.Problem, tasks []boundTask) float64 {
	type change struct{ at, gpus float64 }
	changes := make([]change, 0, 2*len(tasks))
	for i := range tasks {
		b := &tasks[i]
		t := &p.Tasks[b.task]
		// Rounding must not make intervals longer.
		from := t.Deadline + planner.DeadlineSlack*max(1, math.Abs(t.Deadline)) - b.shortest
		to := earliestStart(p, t) + b.shortest*(1-planner.DeadlineSlack)
		if from < to {
			changes = append(changes, change{from, b.gpus}, change{to, -b.gpus})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { // ends before starts
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.gpus, b.gpus))
	})
	now, most := 0.0, 0.0
	for _, c := range changes {
		now += c.gpus
		most = max(most, now)
	}
	return most
}

// sharedCost returns the least that a task can add by GPU where GPUs are shared.
// However many tasks are on a GPU, in a second at frequency f it does at most
// one second's work at full utilisation, divided by the stretch of f, for its
// power and its part of the host's. A curve of contention takes no less time
// than [sharing.LinearCurve], for which that holds.
func sharedCost(p *planner.Problem, t *planner.Task, option, class int) float64 {
	ph, least := &p.Cluster.Sharing.Physics, math.Inf(1)
	for _, mhz := range ph.LevelsMHz {
		least = min(least, (ph.PowerAt(mhz)+float64(p.Cluster.Classes[class].HostW))*ph.Stretch(mhz))
	}
	return least * t.Options[option].Response.Default().Time * sharing.MeanPct(t.Profile.UtilPct) / 100
}
