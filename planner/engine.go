package planner

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// engine runs a policy over a problem: the one event loop of offline and
// online planning. Events are arrivals, times at which Pick wants to be asked,
// idle nodes going off, and, for an [EndObserver] or a [TaskObserver], ends of tasks.
type engine struct {
	problem  *Problem
	policy   *Policy
	view     *View
	calendar *calendar // the view's
	plan     *Plan     // as far as it is made

	// The stages of this run. Stages that also implement a wider interface are
	// kept under that one too, or nil.
	placer       Placer
	endObserver  EndObserver // the placer
	picker       Picker
	taskObserver TaskObserver // the picker
	idlePolicy   NodeParker   // nil: the policy's Parker decides
	answers      answerCheck

	arrivals arrivals
	placed   int          // number of tasks that are placed
	taken    []bool       // by task: it is placed
	givenUp  map[int]bool // the tasks of plan.Unplaced
	begun    bool         // the tasks that run at the present have their places

	switchOffs Agenda // nodes that may go off
	ends       Agenda // tasks that run or will; only with a finisher or a watcher

	truth     *truth          // nil: tasks run as predicted
	shared    *sharedGPUState // nil: no GPU is shared by profile
	memory    workspace
	intervals intervalPool
	started   func(task int) // Options.Started, or nil
}

// newEngine prepares a run. Truth and started are as in [Options].
func newEngine(p *Problem, policy *Policy, truth *Problem, started func(task int)) *engine {
	classes, memory := len(p.Cluster.Classes), takeWorkspace(p)
	v := &View{
		Problem: p, Tuner: policy.Tune(p), OnlyWholeGPUs: true, OnlyGPUsLimited: true,
		NeverSleeps: NeverSleeps(policy.Park, &p.Cluster),
		calendar: calendar{
			nodes: memory.nodes, free: memory.free, owner: memory.owner,
			onByClass: make([]int, classes), asleep: make([][]int32, classes),
		},
	}
	v.quotes = quotes{
		problem: p, tuner: v.Tuner, classes: classes, wants: memory.wants,
		asked: make([]wantState, len(memory.wants)),
	}
	for i := range p.Tasks {
		v.calendar.keepsReservations = v.calendar.keepsReservations || p.NeedsMoreThanGPUs(i)
		v.anyMultiGPU = v.anyMultiGPU || p.Tasks[i].isMultiGPU()
	}
	e := &engine{
		problem: p, policy: policy, view: v, calendar: &v.calendar,
		plan:    &Plan{Policy: policy.Name, Assignments: make([]Assignment, len(p.Tasks)), Nodes: []PlannedNode{}},
		answers: answerCheck{policy: policy, view: v}, arrivals: newArrivals(p, memory.order),
		taken: make([]bool, len(p.Tasks)), memory: memory,
	}
	if truth != nil {
		e.truth = newTruth(truth)
	}
	first := e.arrivals.nextTime()
	v.noteKinds(e.arrivals.due(first))
	v.PerGPUMode = policy.Map && truth == nil && p.Snapshot == nil && v.OnlyWholeGPUs && first == 0
	if v.PerGPUMode {
		e.calendar.grow(len(p.Tasks) / 2) // a guess: two tasks to a GPU
	}
	if policy.Share {
		e.addSharedNodes()
	}
	if w, ok := policy.Park.(AdaptiveParker); ok {
		e.idlePolicy = w.NewNodeParker(v)
	}
	e.makeStages()
	if p.Snapshot != nil && e.answers.refused == nil {
		e.placeRunning(p.Snapshot)
	}
	e.started = started
	return e
}

// release leaves the memory of the run to other runs; the view is of no use any more.
func (e *engine) release() {
	m, c := e.memory, e.calendar
	m.wants, m.nodes, m.free, m.owner = e.view.quotes.wants, c.nodes, c.free, c.owner
	*e.view, e.memory = View{}, workspace{}
	workspaces.Put(&m)
}

// makeStages makes fresh Place and Pick stages for the nodes there are and the
// tasks that wait.
func (e *engine) makeStages() {
	const none = "its constructor made no stage"
	if e.view.Tuner == nil {
		e.answers.refused = e.answers.fault("tune", -1, none)
		return
	}
	if e.placer = e.policy.Place(e.view); e.placer == nil {
		e.answers.refused = e.answers.fault("place", -1, none)
		return
	}
	if r, ok := e.placer.(ClusterChecker); ok {
		if e.answers.refused = r.CheckCluster(); e.answers.refused != nil {
			return // nothing is asked of it
		}
	}
	e.endObserver, _ = e.placer.(EndObserver)
	if e.picker = e.policy.Pick(e.view, e.placer); e.picker == nil {
		e.answers.refused = e.answers.fault("pick", -1, none)
		return
	}
	e.taskObserver, _ = e.picker.(TaskObserver)
	for n := range e.calendar.nodes {
		if e.calendar.nodes[n].on {
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
	for _, task := range e.arrivals.decided() {
		if e.taken[task] && e.plan.Assignments[task].End > e.view.Now {
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
	if e.placed+len(e.plan.Unplaced) == e.arrivals.next {
		return nil
	}
	var tasks []int
	for _, task := range e.arrivals.decided() {
		if !e.taken[task] && !e.givenUp[task] {
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// run plays all events. Between two of them it looks whether the context has
// ended.
func (e *engine) run(ctx context.Context) error {
	e.view.monitor = MonitorOf(ctx)
	for {
		if err := Cancelled(ctx); err != nil {
			return err
		}
		wake, err := e.answers.checkWake(e.picker.Wake())
		if err != nil {
			return err
		}
		now := min(e.arrivals.nextTime(), wake, e.nextEnd())
		if math.IsInf(now, 1) {
			break
		}
		e.advance(now)
		e.arrive(now)
		if err := e.offer(ctx); err != nil {
			return err
		}
		if e.view.PerGPUMode {
			e.mapToNodes()
		}
	}
	e.finish()
	return e.answers.refused
}

// arrive hands the tasks that are there by now to Pick, in input order. A task
// that no clocks of any node can save is reported instead.
func (e *engine) arrive(now float64) {
	batch, first := e.arrivals.due(now), e.arrivals.next
	if e.problem.Mode == Online {
		slices.Sort(batch)
	}
	if e.view.noteKinds(batch) { // the stages index single GPUs, which won't do any more
		e.makeStages()
		e.tellRunning()
	}
	e.arrivals.next += len(batch)
	possible := e.memory.ready[first:first:e.arrivals.next] // the picker may keep it
	for _, task := range batch {
		if why, earliest, ok := canEverRun(e.view, task); ok {
			possible = append(possible, task)
		} else {
			e.giveUp(task, why, earliest)
		}
	}
	e.picker.Arrive(possible)
}

// offer plays offers until Pick has none. Between two of them it looks whether
// the context has ended.
func (e *engine) offer(ctx context.Context) error {
	e.answers.waits = 0
	for {
		e.countWork()
		task, ok := e.picker.Next()
		if !ok {
			return e.answers.refused
		}
		if err := cmp.Or(Cancelled(ctx), e.checkOffer(task)); err != nil {
			return err
		}
		if e.shared != nil {
			e.shared.setTolerance(e.view, task)
		}
		placement, verdict := e.placer.Place(task)
		switch verdict {
		case Start:
			if err := e.answers.placement(task, &placement); err != nil {
				return err
			}
			e.commit(task, &placement)
			e.answers.rounds, e.answers.waits = 0, 0
		case Wait:
			if err := e.answers.checkWait(task, e.arrivals.next-e.placed-len(e.plan.Unplaced)); err != nil {
				return err
			}
			e.picker.Refused(task)
		case Reject:
			e.giveUp(task, "no node has room for it within its limit at the clocks that the policy sets",
				math.Inf(1))
		default:
			return e.answers.fault("place", task, "verdict %d, want start, wait or reject", verdict)
		}
	}
}

// countWork accounts for the work since it was called last, and says how far the plan is.
func (e *engine) countWork() {
	m := e.view.monitor
	if m == nil {
		return
	}
	m.Count(e.view.Evaluations + 1)
	e.view.Evaluations = 0
	const every = 1 << 6
	if e.placed%every == 0 && m.depth == 1 {
		m.SetPhase(e.policy.Name, e.placed, len(e.problem.Tasks))
	}
}

// checkOffer reports an offer of a task that doesn't wait.
func (e *engine) checkOffer(task int) error {
	switch {
	case task < 0 || task >= len(e.problem.Tasks):
		return e.answers.fault("pick", task, "offers task %d of %d", task, len(e.problem.Tasks))
	case e.taken[task]:
		return e.answers.fault("pick", task, "is offered again, and is placed")
	case e.givenUp[task]:
		return e.answers.fault("pick", task, "is offered again, and was rejected or can't be placed")
	case e.problem.Mode == Online && e.problem.Tasks[task].Arrival > e.view.Now:
		return e.answers.fault("pick", task, "is offered at %v s and arrives at %v s", e.view.Now,
			e.problem.Tasks[task].Arrival)
	}
	return nil
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
	a := &e.plan.Assignments[task]
	a.Node, a.Option, a.GPUs = e.occupy(task, pl.Node, pl.GPUs, pl), int32(pl.Option), pl.GPUs
	if pl.More != nil {
		e.occupyMore(task, a, pl)
	}
	a.Start, a.End = pl.Start, pl.Start+pl.Point.Time
	a.Point, a.Reason = pl.Point, pl.Reason
	if e.truth != nil {
		e.truth.bookActual(task, a)
	}
	if e.shared != nil {
		e.shared.bookTask(task, a, pl.Shared, e.view.Now)
	}
	for part := range a.Parts {
		if n := &e.calendar.nodes[part.Node]; a.End > n.off {
			n.off = a.End
		}
	}
	e.placed, e.taken[task] = e.placed+1, true
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
	if node < 0 {
		node = e.openNode(pl.Class, -1)
	} else if n := &e.calendar.nodes[node]; !n.on { // Place knows that it sleeps: it may be shared
		e.openNode(int(n.class), node)
	}
	if e.idlePolicy != nil {
		e.idlePolicy.Busy(node)
	}
	end := pl.Start + pl.Point.Time
	e.calendar.holdGPUs(node, gpus, end)
	if e.calendar.keepsReservations && !pl.Shared {
		e.calendar.holdResources(node, &e.problem.Tasks[task], pl.Option, gpus, e.view.Now, end)
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
		at := a.End
		if e.shared.isReserved(task) {
			at = a.Start
		}
		e.ends.Add(Event{at, task})
	}
	if e.shared != nil {
		e.reschedule()
	}
}

// notifyEnd tells the stages that a task has ended.
func (e *engine) notifyEnd(task int) {
	a := &e.plan.Assignments[task]
	if e.truth != nil {
		e.calendar.release(a)
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
			task := e.ends.Pop().What
			if e.shared.isReserved(task) {
				e.shared.startTask(task, e.view.Now)
				e.reschedule()
			} else {
				e.notifyEnd(task)
			}
		} else {
			e.switchOff()
		}
	}
	e.view.Now = now
}

// finish closes what is on, and completes the plan.
func (e *engine) finish() {
	e.intervals.reserve(len(e.calendar.nodes))
	for n := range e.calendar.nodes {
		if !e.calendar.nodes[n].on {
			continue
		}
		at := e.calendar.nodes[n].off
		if e.problem.Mode == Online {
			at = e.offAt(n)
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
