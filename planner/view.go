package planner

import (
	"math"

	"github.com/epplan/epplan/dvfsmodel"
)

// View is what a policy may see of a running plan: the problem as far as it is
// known, the time, and the nodes that are on with the time from which each of
// their GPUs is free. It answers in constant time unless a method says
// otherwise. It ends with the run: stages don't keep it, nor what it points to,
// and change nothing of it but what a field or a method says.
type View struct {
	Problem *Problem
	Now     float64
	Tuner   Tuner

	// NeverSleeps: the policy keeps all nodes on, those that nothing ran on yet included.
	NeverSleeps bool
	// PerGPUMode: GPUs are placed one by one now, to be mapped to nodes later; every node
	// has one GPU until then.
	PerGPUMode bool
	// OnlyWholeGPUs: every task so far needs one whole GPU and nothing else that runs out,
	// so that GPUs can be indexed one by one. When that ends, the stages are made anew.
	OnlyWholeGPUs bool
	// OnlyGPUsLimited: GPUs are all that a node can run out of. No task so far asks for
	// CPUs, memory or part of a GPU.
	OnlyGPUsLimited bool
	// Shared is who is on GPUs that are shared by profile; nil: there are none.
	Shared *SharedGPUs
	// Evaluations is the work since the engine looked last: tasks looked at for a place.
	// What is asked of the view is counted, and stages add the rest. See [Monitor].
	Evaluations int

	quotes      quotes
	calendar    calendar
	anyMultiGPU bool // a task of the problem needs another number of GPUs than one
	monitor     *Monitor
}

// noteKinds notes what kind of tasks arrived. It reports whether they were simple
// before and are no longer.
func (v *View) noteKinds(tasks []int) bool {
	binds := v.calendar.keepsReservations
	if !binds && !v.anyMultiGPU {
		return false // all tasks are simple, now and later
	}
	before := v.OnlyWholeGPUs
	for _, i := range tasks {
		v.OnlyGPUsLimited = v.OnlyGPUsLimited && (!binds || !v.Problem.NeedsMoreThanGPUs(i))
		v.OnlyWholeGPUs = v.OnlyWholeGPUs && v.OnlyGPUsLimited && !v.Problem.Tasks[i].isMultiGPU()
	}
	return before && !v.OnlyWholeGPUs
}

// Want returns what the task wants on a class if it starts as soon as it can after
// its arrival: its option there, and [Tuner.Want] with all the room there is. The answer
// is remembered. ok is false when the class doesn't suit the task, whose option is -1
// then, or no clocks meet its due time.
func (v *View) Want(task, class int) (q *Quote, option int, ok bool) {
	v.Evaluations++
	i := v.quotes.index(task, class)
	return &v.quotes.wants[i].quote, v.quotes.wants[i].option, v.quotes.asked[i] == wantKnown
}

// Option returns the task's option on a class, or -1: [Task.Option], remembered.
func (v *View) Option(task, class int) int {
	v.Evaluations++
	return v.quotes.wants[v.quotes.index(task, class)].option
}

// IsDeadlinePrior reports whether the task's own optimum would take too long on
// every class (EDL definition 1).
func (v *View) IsDeadlinePrior(task int) bool {
	for class := range v.Problem.Cluster.Classes {
		if q, _, ok := v.Want(task, class); ok && q.Clocks != ClocksDeadline {
			return false
		}
	}
	return true
}

// RestrictTask lets Pick offer a task for one node class only, or for [AnyClass]
// again. Until it is confined otherwise, the view answers as if no other class
// suited the task.
func (v *View) RestrictTask(task, class int) { v.quotes.restrict(task, class) }

// RestrictedClass returns the class that a task is offered for, or [AnyClass].
func (v *View) RestrictedClass(task int) int { return v.quotes.restriction(task) }

// CanRunOn reports whether an empty node of a class has room for a task, and the
// task would keep its limit there.
func (v *View) CanRunOn(task, class int) bool {
	option, t := v.Option(task, class), &v.Problem.Tasks[task]
	if !v.Problem.Cluster.Classes[class].HasRoom(t, option) {
		return false
	}
	return math.IsInf(t.Limit, 1) ||
		dvfsmodel.MeetsLimit(v.Tuner.Fastest(task, option, class).Point.Time, t.Limit)
}

// Prediction is what a task takes on a class at the clocks that Tune would set
// if it started at its arrival.
type Prediction struct {
	Time   float64         // seconds
	Energy dvfsmodel.Joule // of all its GPUs
	GPUs   float64         // that it occupies: how many, or the share of one
}

// Predict returns what a task takes on a class that suits it: see [View.CanRunOn]. Where
// its due time can't be met the clocks are the fastest.
func (v *View) Predict(task, class int) Prediction {
	want, option, ok := v.Want(task, class)
	q := *want
	if !ok {
		q = v.Tuner.Fastest(task, option, class)
	}
	t := &v.Problem.Tasks[task]
	gpus := float64(t.Options[option].GPUs) * t.Share
	return Prediction{Time: q.Point.Time, Energy: q.Point.Energy * dvfsmodel.Joule(gpus), GPUs: gpus}
}

// IsStopped reports whether the run is to end without a plan, so that a stage needn't go on.
// One that thinks for long asks from time to time.
func (v *View) IsStopped() bool {
	v.monitor.Count(v.Evaluations)
	v.Evaluations = 0
	v.monitor.report()
	return v.monitor.IsUnfinished()
}

// NodeCount returns the number of nodes ever used; some may be off.
func (v *View) NodeCount() int { return len(v.calendar.nodes) }

// NodeState is a node of a run as it is now.
type NodeState struct {
	Class    int // of the cluster's
	FirstGPU int // its lowest GPU: their numbers are unique over all nodes
	GPUs     int
	On       bool
	Ready    float64 // from when on it can be used, since it was last switched on, seconds
	LastEnd  float64 // when its last task ends, as predicted; Ready when it has none
}

// Node returns a node as it is now.
func (v *View) Node(node int) NodeState {
	n := &v.calendar.nodes[node]
	return NodeState{
		Class: int(n.class), FirstGPU: int(n.first), GPUs: int(n.gpus), On: n.on,
		Ready: n.since + v.Problem.Cluster.Classes[n.class].TurnOnDelay, LastEnd: n.last,
	}
}

// NodeOf returns the node that a GPU belongs to.
func (v *View) NodeOf(gpu int) int { return int(v.calendar.owner[gpu]) }

// FreeFrom returns when the last task of the GPU ends; nothing is booked after that. Where
// run times aren't certain it is a prediction, and in the past once a task overruns.
func (v *View) FreeFrom(gpu int) float64 { return v.calendar.free[gpu] }

// StartAfter returns the earliest start on a GPU that is free from the given time
// on: not before now, and at a whole slot where the start rule says so.
func (v *View) StartAfter(free float64) float64 { return v.Problem.nextSlot(max(v.Now, free)) }

// StartFor returns the earliest start of a task on a GPU that is free from the
// given time on. It isn't before the task arrives.
func (v *View) StartFor(task int, free float64) float64 {
	return v.Problem.nextSlot(laterTime(laterTime(v.Now, free), v.Problem.Tasks[task].Arrival))
}

// laterTime is max for times, which are never NaN: the built-in one checks for that,
// at a cost that shows where every GPU is looked at.
func laterTime(a, b float64) float64 {
	if a > b {
		return a
	}
	return b
}

// StartOnNew returns the earliest start of a task on a node of the class that is
// off.
func (v *View) StartOnNew(task, class int) float64 {
	return v.StartFor(task, v.Now+v.Problem.Cluster.Classes[class].TurnOnDelay)
}

// CanOpen reports whether another node of the class can be switched on that has
// room for the option, or for its part on one node.
func (v *View) CanOpen(task, option, class int) bool {
	if v.OnlyWholeGPUs && option == v.Option(task, class) {
		return v.SleepingCount(class) > 0 // one GPU is all that it needs, and every node has one
	}
	k, t := &v.Problem.Cluster.Classes[class], &v.Problem.Tasks[task]
	return t.Options[option].Model == k.Model && k.HasRoom(t, option) && v.SleepingCount(class) > 0
}

// SleepingCount returns how many more nodes of a class can be switched on.
func (v *View) SleepingCount(class int) int {
	k := &v.Problem.Cluster.Classes[class]
	if k.Count == 0 {
		return math.MaxInt
	}
	count := k.Count
	if v.PerGPUMode {
		count *= k.GPUs
	}
	return count - v.calendar.onByClass[class]
}

// Earliest returns the earliest start of a task on a node that is on and suits the
// option, and the GPUs it would get: those that are free first, the lowest
// ones among equals. Of a task on several nodes it is that of the part on this one;
// it may start at any later time, too. ok is false when the node doesn't suit. It
// takes time linear in the node's GPUs and in the reservations that end after the start.
func (v *View) Earliest(task, option, node int) (start float64, gpus GPUSet, ok bool) {
	n, t := &v.calendar.nodes[node], &v.Problem.Tasks[task]
	k := &v.Problem.Cluster.Classes[n.class]
	o := &t.Options[option]
	if o.Model != k.Model || o.PerNode() > int(n.gpus) || !k.hasCPUsAndMemory(t, option) {
		return 0, 0, false
	}
	if v.OnlyGPUsLimited {
		gpus, free := FirstFree(v.calendar.free[n.first:n.first+n.gpus], o.PerNode())
		return v.StartFor(task, free), gpus, true
	}
	held := v.calendar.reservations[node]
	start = v.StartFor(task, max(n.since+k.TurnOnDelay, k.earliestRoom(t, option, held)))
	gpus, ok = k.gpusFreeFrom(t, option, held, start)
	return start, gpus, ok
}
