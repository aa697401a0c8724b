package planner

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"
)

// engine runs a policy over a problem: the one event loop of offline and
// online planning. Events are arrivals, times at which Pick wants to be asked,
// idle nodes going off, and, for an [EndObserver] or a [TaskObserver], ends of tasks.
type engine struct {
	problem *Problem
	policy  *Policy
	view    *View
	plan    *Plan // as far as it is made

	// The stages of this run. Stages that also implement a wider interface are
	// kept under that one too, or nil.
	placer       Placer
	endObserver  EndObserver // the placer
	picker       Picker
	taskObserver TaskObserver // the picker
	idlePolicy   NodeParker   // nil: the policy's Parker decides
	refused      error        // why the stages can't plan, or what one of them answered

	order   []int        // tasks by arrival
	next    int          // index in order of the next arrival
	placed  int          // number of tasks that are placed
	givenUp map[int]bool // the tasks of plan.Unplaced
	from    float64      // when the plan begins, seconds
	begun   bool         // the tasks that run at the present have their places

	switchOffs eventQueue // nodes that may go off
	ends       eventQueue // tasks that run or will; only with a finisher or a watcher

	truth     *truth          // nil: tasks run as predicted
	shared    *sharedGPUState // nil: no GPU is shared by profile
	intervals intervalPool
	started   func(task int) // Options.Started, or nil
	monitor   *Monitor
	loops     loopGuard
}

// newEngine prepares a run.
func newEngine(p *Problem, policy *Policy, opts *Options) *engine {
	e := &engine{
		problem: p,
		policy:  policy,
		view:    newView(p, policy.Tune(p)),
		plan:    &Plan{Policy: policy.Name, Assignments: make([]Assignment, len(p.Tasks)), Nodes: []Node{}},
	}
	if opts.Truth != nil {
		e.truth = newTruth(opts.Truth)
	}
	e.view.neverSleeps = math.IsInf(policy.Park.OffAt(&p.Cluster, 0), 1)
	e.queueArrivals()
	e.view.noteKinds(e.order[:e.arrivedBy(e.nextArrival())])
	e.view.perGPUMode = policy.Map && e.truth == nil && p.Snapshot == nil && e.view.OnlyWholeGPUs() &&
		e.nextArrival() == 0
	if e.view.perGPUMode {
		e.view.reserve(len(p.Tasks) / 2) // a guess: two tasks to a GPU
	}
	if policy.Share {
		e.addSharedNodes()
	}
	if w, ok := policy.Park.(AdaptiveParker); ok {
		e.idlePolicy = w.NewNodeParker(e.view)
	}
	e.makeStages()
	if p.Snapshot != nil && e.refused == nil {
		e.placeRunning(p.Snapshot)
	}
	e.started = opts.Started
	return e
}

// queueArrivals puts the tasks in the order in which they are decided; those that
// run at the present come first.
func (e *engine) queueArrivals() {
	e.order = e.view.order
	for i := range e.order {
		e.order[i] = i
	}
	if e.problem.Mode == Online {
		SortByKey(e.order, func(task int) float64 { return e.problem.Tasks[task].Arrival })
	}
	if present := e.problem.Snapshot; present != nil {
		e.from = present.Now
		present.arrivals(e.order)
	}
}

// makeStages makes fresh Place and Pick stages for the nodes there are and the
// tasks that wait.
func (e *engine) makeStages() {
	if e.view.Tuner == nil {
		e.refused = e.stageError("tune", -1, "its constructor made no stage")
		return
	}
	if e.placer = e.policy.Place(e.view); e.placer == nil {
		e.refused = e.stageError("place", -1, "its constructor made no stage")
		return
	}
	if r, ok := e.placer.(ClusterChecker); ok {
		if e.refused = r.CheckCluster(); e.refused != nil {
			return // nothing is asked of it
		}
	}
	e.endObserver, _ = e.placer.(EndObserver)
	if e.picker = e.policy.Pick(e.view, e.placer); e.picker == nil {
		e.refused = e.stageError("pick", -1, "its constructor made no stage")
		return
	}
	e.taskObserver, _ = e.picker.(TaskObserver)
	for n := range e.view.nodes {
		if e.view.nodes[n].on {
			e.placer.Opened(n)
		}
	}
	if waiting := e.waiting(); len(waiting) > 0 {
		e.picker.Arrive(waiting)
	}
}

// tellRunning tells fresh stages of the tasks that still run or are reserved, in
// the order of their starts.
func (e *engine) tellRunning() {
	e.ends = e.ends[:0]
	var tasks []int
	for _, task := range e.order[:e.next] {
		if e.view.taken[task] && e.plan.Assignments[task].End > e.view.Now {
			tasks = append(tasks, task)
		}
	}
	SortByKey(tasks, func(task int) float64 { return e.plan.Assignments[task].Start })
	for _, task := range tasks {
		e.notifyStart(task)
	}
}

// waiting lists the tasks that arrived and are neither placed nor given up, by
// arrival.
func (e *engine) waiting() []int {
	if e.placed+len(e.plan.Unplaced) == e.next {
		return nil
	}
	var tasks []int
	for _, task := range e.order[:e.next] {
		if !e.view.taken[task] && !e.givenUp[task] {
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// run plays all events. Between two of them it looks whether the context has
// ended.
func (e *engine) run(ctx context.Context) error {
	e.monitor = MonitorOf(ctx)
	e.view.monitor = e.monitor
	for {
		if err := Cancelled(ctx); err != nil {
			return err
		}
		wake, err := e.nextWake()
		if err != nil {
			return err
		}
		now := min(e.nextArrival(), wake, e.nextEnd())
		if math.IsInf(now, 1) {
			break
		}
		e.advance(now)
		e.arrive(now)
		if err := e.offer(ctx); err != nil {
			return err
		}
		if e.view.perGPUMode {
			e.mapToNodes()
		}
	}
	e.finish()
	return e.refused
}

// nextArrival is when the next batch is decided: at its arrival, or at the
// next slot where starts are bound to slots.
func (e *engine) nextArrival() float64 {
	if e.next == len(e.order) {
		return math.Inf(1)
	}
	return e.decisionTime(e.next)
}

// decisionTime is when the task at an index of the arrival order is decided.
func (e *engine) decisionTime(i int) float64 {
	if e.problem.Mode != Online {
		return 0
	}
	return e.view.nextSlot(max(e.problem.Tasks[e.order[i]].Arrival, e.from))
}

// arrivedBy is how many tasks are there by now.
func (e *engine) arrivedBy(now float64) int {
	if e.problem.Mode != Online {
		return len(e.order)
	}
	n := e.next
	for n < len(e.order) && e.decisionTime(n) <= now {
		n++
	}
	return n
}

// arrive hands the tasks that are there by now to Pick, in input order. A task
// that no clocks of any node can save is reported instead.
func (e *engine) arrive(now float64) {
	last := e.arrivedBy(now)
	batch := e.order[e.next:last]
	if e.problem.Mode == Online {
		slices.Sort(batch)
	}
	if e.view.noteKinds(batch) { // the stages index single GPUs, which won't do any more
		e.makeStages()
		e.tellRunning()
	}
	possible := e.view.ready[e.next:e.next:last] // the picker may keep it
	e.next = last
	for _, task := range batch {
		if why, earliest, ok := e.view.canEverRun(task); ok {
			possible = append(possible, task)
		} else {
			e.giveUp(task, why, earliest)
		}
	}
	e.picker.Arrive(possible)
}

// giveUp lists a task as one that can't be placed; earliest is as in [Unplaced].
func (e *engine) giveUp(task int, why string, earliest float64) {
	e.plan.Unplaced = append(e.plan.Unplaced, Unplaced{Task: task, Why: why, Earliest: earliest})
	if e.givenUp == nil {
		e.givenUp = make(map[int]bool)
	}
	e.givenUp[task] = true
}

// commit makes a placement effective.
func (e *engine) commit(task int, pl *Placement) {
	v, end := e.view, pl.Start+pl.Point.Time
	a := &e.plan.Assignments[task]
	a.Node, a.Option, a.GPUs = e.occupy(task, pl.Node, pl.GPUs, pl), int32(pl.Option), pl.GPUs
	if pl.More != nil {
		e.occupyMore(task, a, pl)
	}
	a.Start, a.End = pl.Start, end
	a.Point, a.Reason = pl.Point, pl.Reason
	if e.truth != nil {
		e.truth.bookActual(task, a)
	}
	if e.shared != nil {
		e.shared.bookTask(task, a, pl.Shared, v.Now)
	}
	for part := range a.Parts {
		if n := &v.nodes[part.Node]; a.End > n.off {
			n.off = a.End
		}
	}
	e.placed, v.taken[task] = e.placed+1, true
	if e.started != nil {
		e.started(task)
	}
	e.notifyStart(task)
}

// occupyMore has a task take its further nodes, and lists all of its nodes by number.
func (e *engine) occupyMore(task int, a *Assignment, pl *Placement) {
	parts := make([]Part, 1, 1+len(pl.More))
	parts[0] = Part{a.Node, a.GPUs}
	for _, part := range pl.More {
		parts = append(parts, Part{e.occupy(task, int(part.Node), part.GPUs, pl), part.GPUs})
	}
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Compare(a.Node, b.Node) })
	a.Node, a.GPUs, a.More = parts[0].Node, parts[0].GPUs, parts[1:]
}

// occupy has a task take GPUs of a node, or of one that is switched on for it, and
// tells which node that is.
func (e *engine) occupy(task, node int, gpus GPUSet, pl *Placement) int32 {
	v := e.view
	if node < 0 {
		node = e.openNode(pl.Class)
	} else if !v.nodes[node].on {
		e.wakeShared(node)
	}
	if e.idlePolicy != nil {
		e.idlePolicy.Busy(node)
	}
	n := &v.nodes[node]
	end := pl.Start + pl.Point.Time
	for s := gpus; s != 0; s &= s - 1 {
		g := n.first + int32(s.First())
		if end > v.free[g] {
			v.free[g] = end
		}
	}
	if end > n.last {
		n.last = end
	}
	if v.keepsReservations && !pl.Shared {
		v.book(node, task, pl.Option, gpus, end)
	}
	return int32(node)
}

// notifyStart tells the stages of a placement and notes its end if one of them
// cares.
func (e *engine) notifyStart(task int) {
	a := &e.plan.Assignments[task]
	told := a
	if e.truth != nil {
		told = e.truth.predicted(task, a)
	}
	e.placer.Committed(task, told)
	if e.taskObserver != nil {
		e.taskObserver.Committed(task, told)
	}
	if e.endObserver != nil || e.taskObserver != nil {
		heap.Push(&e.ends, queuedEvent{at: e.nextTaskEvent(task, a), what: task})
	}
	if e.shared != nil {
		e.reschedule()
	}
}

// notifyEnd tells the stages that a task has ended.
func (e *engine) notifyEnd(task int) {
	a := &e.plan.Assignments[task]
	if e.truth != nil {
		e.view.freeEnded(a)
	}
	if e.shared != nil {
		e.leaveShared(task, a)
	}
	if e.endObserver != nil {
		e.endObserver.Finished(task, a)
	}
	if e.taskObserver != nil {
		e.taskObserver.Finished(task, a)
	}
}

// openNode switches a node of the class on: one that sleeps, or a new one.
func (e *engine) openNode(class int) int {
	v := e.view
	node := len(v.nodes)
	if asleep := v.asleep[class]; len(asleep) > 0 {
		node = int(asleep[len(asleep)-1])
		v.asleep[class] = asleep[:len(asleep)-1]
	} else {
		e.addNode(class)
	}
	e.switchOn(node)
	return node
}

// switchOn switches on a node that is off. The caller has taken it from the list
// of those asleep.
func (e *engine) switchOn(node int) {
	v := e.view
	n := &v.nodes[node]
	class := n.class
	k := &e.problem.Cluster.Classes[class]
	since := v.Now
	if e.problem.Snapshot != nil && !e.begun { // it has been on for long
		since -= k.TurnOnDelay
	}
	ready := since + k.TurnOnDelay
	n.on, n.since, n.last, n.off = true, since, ready, ready
	if v.keepsReservations {
		v.reservations[node] = v.reservations[node][:0]
	}
	for g := n.first; g < n.first+n.gpus; g++ {
		v.free[g] = ready
	}
	v.onByClass[class]++
	e.placer.Opened(node)
	if e.problem.Mode == Online && !v.perGPUMode {
		heap.Push(&e.switchOffs, queuedEvent{at: e.offAt(node, n.off), what: node})
	}
}

// addNode appends a node of the class, which is off, to the view and to the plan.
// While GPUs are placed one by one it has a single GPU, and [engine.mapToNodes]
// makes the plan's nodes.
func (e *engine) addNode(class int) {
	v := e.view
	gpus := e.problem.Cluster.Classes[class].GPUs
	if v.perGPUMode {
		gpus = 1
	} else {
		e.plan.Nodes = append(e.plan.Nodes, Node{Class: class})
	}
	if v.keepsReservations {
		v.reservations = append(v.reservations, nil)
	}
	node := int32(len(v.nodes))
	v.nodes = append(v.nodes, nodeState{
		class: int32(class), first: int32(len(v.free)), gpus: int32(gpus),
	})
	for range gpus {
		v.free = append(v.free, 0)
		v.owner = append(v.owner, node)
	}
}

// advance plays what happens by itself until now: tasks end, and nodes that are
// due go off. One that is due in this very moment is gone before a task that
// arrives in it is placed.
func (e *engine) advance(now float64) {
	for {
		end, off := e.nextEnd(), e.switchOffs.nextTime()
		if min(end, off) > now {
			break
		}
		e.view.Now = min(end, off)
		if end <= off {
			e.playTaskEvent(heap.Pop(&e.ends).(queuedEvent).what) //nolint:errcheck // holds entries only
		} else {
			e.switchOff()
		}
	}
	e.view.Now = now
}

// switchOff switches off the node that is due next, unless it got another task:
// then the entry moves to when the node is due by now.
func (e *engine) switchOff() {
	top := e.switchOffs[0]
	n := &e.view.nodes[top.what]
	if e.shared != nil && e.shared.isOffOrBusy(top.what, n.on) {
		heap.Pop(&e.switchOffs)
		return
	}
	if at := e.offAt(top.what, n.off); at > top.at {
		e.switchOffs[0].at = at
		heap.Fix(&e.switchOffs, 0)
		return
	}
	heap.Pop(&e.switchOffs)
	e.closeNode(top.what, top.at)
}

// closeNode switches a node off at a time and notes how long it was on. Nodes that
// may be woken again are listed as asleep; of an unlimited class a new one will
// do as well.
func (e *engine) closeNode(node int, at float64) {
	n := &e.view.nodes[node]
	n.on = false
	on := &e.plan.Nodes[node].On
	if *on == nil {
		*on = e.intervals.newList()
	}
	*on = append(*on, Interval{From: max(0, n.since), To: at})
	e.view.onByClass[n.class]--
	if e.problem.Cluster.Classes[n.class].Count > 0 || (e.shared != nil && e.shared.isShared(node)) {
		e.view.asleep[n.class] = append(e.view.asleep[n.class], int32(node))
	}
	e.placer.Closed(node)
}

// finish closes what is on, and completes the plan.
func (e *engine) finish() {
	e.intervals.reserve(len(e.view.nodes))
	for n := range e.view.nodes {
		if !e.view.nodes[n].on {
			continue
		}
		at := e.view.nodes[n].off
		if e.problem.Mode == Online {
			at = e.offAt(n, at)
		}
		e.closeNode(n, at)
	}
	for _, task := range e.waiting() {
		e.giveUp(task, "the policy kept it waiting to the end", math.Inf(1))
	}
	for _, u := range e.plan.Unplaced {
		e.plan.Assignments[u.Task].Node = -1
	}
	if e.shared != nil {
		e.shared.addToPlan()
		e.plan.dropUnused()
	}
	e.plan.complete(e.problem, e.policy.Park)
}
