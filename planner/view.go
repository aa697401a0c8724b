package planner

import (
	"math"
	"slices"
)

// View is what a policy may see of a running plan: the problem as far as it is
// known, the time, and the nodes that are on with the time from which each of
// their GPUs is free. It answers in constant time unless a method says
// otherwise. It ends with the run: stages don't keep it, nor what it points to.
type View struct {
	Problem *Problem
	Now     float64
	Tuner   Tuner

	workspace
	classes     int   // of the cluster
	neverSleeps bool  // nodes never sleep
	perGPUMode  bool  // GPUs are placed one by one and mapped to nodes later
	restricted  []int // by task: the class that Pick offers it for, plus 1; 0, and nil: any

	// What the tasks that arrived so far allow.
	onlyWholeGPUs bool // each needs one whole GPU and nothing else that runs out
	nodeLimited   bool // one of them binds ([Problem.NeedsMoreThanGPUs]): reservations are looked at

	// What all tasks need, those that are still to come included: what is kept for
	// them is kept from the start.
	keepsReservations bool // one of them binds: reservations are kept in held
	anyMultiGPU       bool // one of them needs another number of GPUs than one

	reservations [][]reservation // by node: what runs or will run there; only when books
	onByClass    []int           // nodes on, by class
	// By class: nodes that are off and can be woken; of limited and of shared classes.
	asleep [][]int32
	shared *sharedGPUState // who is on GPUs that are shared by profile; nil: there are none

	evaluations int      // since the engine looked last
	monitor     *Monitor // nil: nobody watches the run
}

// wanted is the remembered answer of Tuner.Want for a task on a class.
type wanted struct {
	quote  Quote
	option int // of the task on the class, or -1
}

// wantState tells what is remembered of a want.
type wantState uint8

const (
	wantUnknown wantState = iota // not asked yet
	wantNone                     // the class doesn't suit, or no clocks meet the due time
	wantKnown
)

// nodeState is a node as the engine keeps it.
type nodeState struct {
	class int32
	first int32 // index of its first GPU
	gpus  int32
	on    bool
	since float64 // when it was switched on
	last  float64 // when its last task ends, as predicted
	off   float64 // when its last task ends, as the engine knows
}

// reservation is the part of a node that a task holds until it ends.
type reservation struct {
	end, cpus, mem, share float64
	gpus                  GPUSet
}

func newView(p *Problem, tuner Tuner) *View {
	v := &View{
		Problem:       p,
		Tuner:         tuner,
		onlyWholeGPUs: true,
		classes:       len(p.Cluster.Classes),
		workspace:     takeWorkspace(len(p.Tasks), len(p.Tasks)*len(p.Cluster.Classes)),
		onByClass:     make([]int, len(p.Cluster.Classes)),
		asleep:        make([][]int32, len(p.Cluster.Classes)),
	}
	for i := range p.Tasks {
		v.keepsReservations = v.keepsReservations || p.NeedsMoreThanGPUs(i)
		v.anyMultiGPU = v.anyMultiGPU || p.Tasks[i].isMultiGPU()
	}
	return v
}

// isMultiGPU reports whether the task needs more than one GPU of some model, or none.
func (t *Task) isMultiGPU() bool {
	for i := range t.Options {
		if t.Options[i].GPUs != 1 {
			return true
		}
	}
	return false
}

// noteKinds notes what kind of tasks arrived. It reports whether they were simple
// before and are no longer.
func (v *View) noteKinds(tasks []int) bool {
	if !v.keepsReservations && !v.anyMultiGPU {
		return false // all tasks are simple, now and later
	}
	before := v.onlyWholeGPUs
	for _, i := range tasks {
		v.nodeLimited = v.nodeLimited || (v.keepsReservations && v.Problem.NeedsMoreThanGPUs(i))
		v.onlyWholeGPUs = v.onlyWholeGPUs && !v.nodeLimited && !v.Problem.Tasks[i].isMultiGPU()
	}
	return before && !v.onlyWholeGPUs
}

// book keeps a reservation until it ends, and drops those that have ended.
func (v *View) book(node, task, option int, gpus GPUSet, end float64) {
	t := &v.Problem.Tasks[task]
	cpus, mem := t.PerNode(option)
	held := slices.DeleteFunc(v.reservations[node], func(r reservation) bool { return r.end <= v.Now })
	v.reservations[node] = append(held, reservation{
		end: end, cpus: cpus, mem: mem, share: t.Share, gpus: gpus,
	})
}

// OnlyWholeGPUs reports whether every task so far needs one whole GPU and nothing else
// that runs out, so that GPUs can be indexed one by one. When that ends, the
// stages are made anew.
func (v *View) OnlyWholeGPUs() bool { return v.onlyWholeGPUs }

// PerGPUMode reports whether GPUs are placed one by one now, to be mapped to nodes
// later: every node has one GPU then.
func (v *View) PerGPUMode() bool { return v.perGPUMode }

// OnlyGPUsLimited reports whether GPUs are all that a node can run out of: no task so far
// asks for CPUs, memory or part of a GPU.
func (v *View) OnlyGPUsLimited() bool { return !v.nodeLimited }

// Want is what the task wants on a class if it starts as soon as it can after
// its arrival: [Tuner.Want] with all the room there is. The answer is
// remembered. ok is false when the class doesn't suit the task or no clocks
// meet its due time.
func (v *View) Want(task, class int) (q *Quote, ok bool) {
	i := v.wantIndex(task, class)
	return &v.wants[i].quote, v.asked[i] == wantKnown
}

// Wanted is [View.Want] and [View.Option] in one.
func (v *View) Wanted(task, class int) (q *Quote, option int, ok bool) {
	i := v.wantIndex(task, class)
	return &v.wants[i].quote, v.wants[i].option, v.asked[i] == wantKnown
}

// Option is the task's option on a class, or -1: [Task.Option], remembered.
func (v *View) Option(task, class int) int { return v.wants[v.wantIndex(task, class)].option }

// wantIndex makes sure that it is known what the task wants on a class, and returns the
// place of it in wants and asked.
func (v *View) wantIndex(task, class int) (i int) {
	i = task*v.classes + class
	v.evaluations++
	if v.asked[i] == wantUnknown {
		v.askTuner(i, task, class)
	}
	return i
}

// askTuner asks Tune what the task wants, and remembers it.
func (v *View) askTuner(i, task, class int) {
	t, w := &v.Problem.Tasks[task], &v.wants[i]
	v.asked[i] = wantNone
	w.option = t.Option(v.Problem.Cluster.Classes[class].Model)
	if v.RestrictedClass(task) != AnyClass && v.RestrictedClass(task) != class ||
		!v.Problem.Cluster.Classes[class].admits(t) {
		w.option = -1
	}
	if w.option < 0 {
		w.quote = Quote{}
		return
	}
	var ok bool
	if w.quote, ok = v.Tuner.Want(task, w.option, class, t.TimeBudgetFrom(v.nextSlot(t.Arrival))); ok {
		v.asked[i] = wantKnown
	}
}

// IsDeadlinePrior reports whether the task's own optimum would take too long on
// every class (EDL definition 1).
func (v *View) IsDeadlinePrior(task int) bool {
	for class := range v.Problem.Cluster.Classes {
		if q, ok := v.Want(task, class); ok && q.Clocks != ClocksDeadline {
			return false
		}
	}
	return true
}

// CountEvaluations counts work of a stage that the view doesn't see: so many tasks looked at for
// a place. What the stages ask of the view is counted there. See [Monitor].
func (v *View) CountEvaluations(count int) { v.evaluations += count }

// IsStopped reports whether the run is to end without a plan, so that a stage needn't go on.
// One that thinks for long asks from time to time.
func (v *View) IsStopped() bool {
	v.monitor.Count(v.evaluations)
	v.evaluations = 0
	v.monitor.report()
	return v.monitor.IsUnfinished()
}

// NodeCount is the number of nodes ever used; some may be off.
func (v *View) NodeCount() int { return len(v.nodes) }

// NeverSleeps reports whether the policy keeps all nodes on, those that nothing
// ran on yet included.
func (v *View) NeverSleeps() bool { return v.neverSleeps }

// IsOn reports whether the node is on.
func (v *View) IsOn(node int) bool { return v.nodes[node].on }

// OnSince is when the node was last switched on.
func (v *View) OnSince(node int) float64 { return v.nodes[node].since }

// LastEnd is when the node's last task ends, as predicted; the time it was
// switched on when it has none.
func (v *View) LastEnd(node int) float64 { return v.nodes[node].last }

// ClassOf is the node's class.
func (v *View) ClassOf(node int) int { return int(v.nodes[node].class) }

// GPUs is the node's range of GPU numbers: from first, count of them. GPU
// numbers are unique over all nodes.
func (v *View) GPUs(node int) (first, count int) {
	n := &v.nodes[node]
	return int(n.first), int(n.gpus)
}

// NodeOf is the node that a GPU belongs to.
func (v *View) NodeOf(gpu int) int { return int(v.owner[gpu]) }

// FreeFrom is when the last task of the GPU ends; nothing is booked after that. Where
// run times aren't certain it is a prediction, and in the past once a task overruns.
func (v *View) FreeFrom(gpu int) float64 { return v.free[gpu] }

// StartAfter is the earliest start on a GPU that is free from the given time
// on: not before now, and at a whole slot where the start rule says so.
func (v *View) StartAfter(free float64) float64 {
	return v.nextSlot(max(v.Now, free))
}

// nextSlot rounds a time up to a whole slot where starts are bound to them.
func (v *View) nextSlot(t float64) float64 {
	if v.Problem.Start == StartContinuous {
		return t
	}
	slot := v.Problem.Cluster.Slot
	return math.Ceil(t/slot) * slot
}

// StartFor is the earliest start of a task on a GPU that is free from the
// given time on. It isn't before the task arrives.
func (v *View) StartFor(task int, free float64) float64 {
	return v.nextSlot(laterTime(laterTime(v.Now, free), v.Problem.Tasks[task].Arrival))
}

// laterTime is max for times, which are never NaN: the built-in one checks for that,
// at a cost that shows where every GPU is looked at.
func laterTime(a, b float64) float64 {
	if a > b {
		return a
	}
	return b
}

// StartOnNew is the earliest start of a task on a node of the class that is
// off.
func (v *View) StartOnNew(task, class int) float64 {
	return v.StartFor(task, v.Now+v.Problem.Cluster.Classes[class].TurnOnDelay)
}

// CanOpen reports whether another node of the class can be switched on that has
// room for the option, or for its part on one node.
func (v *View) CanOpen(task, option, class int) bool {
	if v.onlyWholeGPUs && option == v.Option(task, class) {
		return v.SleepingCount(class) > 0 // one GPU is all that it needs, and every node has one
	}
	k, t := &v.Problem.Cluster.Classes[class], &v.Problem.Tasks[task]
	return t.Options[option].Model == k.Model && k.HasRoom(t, option) && v.SleepingCount(class) > 0
}

// SleepingCount is how many more nodes of a class can be switched on.
func (v *View) SleepingCount(class int) int {
	k := &v.Problem.Cluster.Classes[class]
	if k.Count == 0 {
		return math.MaxInt
	}
	count := k.Count
	if v.perGPUMode {
		count *= k.GPUs
	}
	return count - v.onByClass[class]
}

// Earliest is the earliest start of a task on a node that is on and suits the
// option, and the GPUs it would get: those that are free first, the lowest
// ones among equals. Of a task on several nodes it is that of the part on this one;
// it may start at any later time, too. ok is false when the node doesn't suit. It
// takes time linear in the node's GPUs and reservations.
func (v *View) Earliest(task, option, node int) (start float64, gpus GPUSet, ok bool) {
	n, t := &v.nodes[node], &v.Problem.Tasks[task]
	k := &v.Problem.Cluster.Classes[n.class]
	o := &t.Options[option]
	if o.Model != k.Model || o.PerNode() > int(n.gpus) || !k.hasCPUsAndMemory(t, option) {
		return 0, 0, false
	}
	if !v.nodeLimited {
		gpus, free := v.firstFree(n, o.PerNode())
		return v.StartFor(task, free), gpus, true
	}
	return v.earliestReserved(task, option, node)
}

// firstFree is the count GPUs of a node that are free first, and from when all
// of them are.
func (v *View) firstFree(n *nodeState, count int) (gpus GPUSet, free float64) {
	all := v.free[n.first : n.first+n.gpus]
	for range count {
		best := -1
		for g := range all {
			if !gpus.Has(g) && (best < 0 || all[g] < all[best]) {
				best = g
			}
		}
		gpus |= 1 << uint(best)
		free = max(free, all[best])
	}
	return gpus, free
}

// earliestReserved tries the moments at which the node gives something back. What
// is reserved counts until it ends, whenever it starts.
func (v *View) earliestReserved(task, option, node int) (float64, GPUSet, bool) {
	n, held := &v.nodes[node], v.reservations[node]
	k := &v.Problem.Cluster.Classes[n.class]
	moments := make([]float64, 0, len(held)+1)
	moments = append(moments, n.since+k.TurnOnDelay)
	for i := range held {
		moments = append(moments, held[i].end)
	}
	slices.Sort(moments)
	for _, m := range moments {
		start := v.StartFor(task, m)
		if gpus, ok := k.fits(&v.Problem.Tasks[task], option, held, start); ok {
			return start, gpus, true
		}
	}
	return 0, 0, false
}

// fits finds GPUs for the task from start on, if a node of the class with these
// reservations has enough of all.
func (k *NodeClass) fits(t *Task, option int, held []reservation, start float64) (GPUSet, bool) {
	var used [MaxGPUs]float64
	count := t.Options[option].PerNode()
	cpus, mem := t.PerNode(option)
	for i := range held {
		h := &held[i]
		if h.end <= start {
			continue
		}
		cpus, mem = cpus+h.cpus, mem+h.mem
		for s := h.gpus; s != 0; s &= s - 1 {
			used[s.First()] += h.share
		}
	}
	if (k.CPUs > 0 && cpus > k.CPUs) || (k.MemGiB > 0 && mem > k.MemGiB) {
		return 0, false
	}
	var gpus GPUSet
	for g := 0; g < k.GPUs && gpus.Len() < count; g++ {
		if used[g]+t.Share <= 1+shareSlack {
			gpus |= 1 << uint(g)
		}
	}
	return gpus, gpus.Len() == count
}

// shareSlack lets shares that add up to 1 up to rounding share a GPU.
const shareSlack = 1e-9
