package place

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/pick"
)

// Replan plans anew what waits whenever a task arrives or ends, and starts what the
// plan starts now: which task, on which GPUs and at which clocks is one decision. It
// looks at tasks that have arrived only.
//
// The plan is a list schedule. Tasks are taken by what they take in GPU-seconds, those
// that have waited longer before; each gets the node, the start and the clocks that
// cost least together: the objective (energy, host power included), a part of the idle
// time that it causes on its node, and its time in the system at a price. Those that
// would end late are then taken first, and the cheaper plan is kept.
//
// The price of time says how far users may be made to wait for energy. It is held, for each pace,
// against what sites run: [pick.Conservative] plays default clocks beside the real run.
// While tasks spend less time here than there, time is cheap and clocks are slow; as the
// lead melts the price rises, to that of nearly fastest clocks. And what makes a task
// end much later than it would there costs more still. How long tasks may take there is the
// pace. Where waiting has a price by itself, [planner.Problem.WaitWeight], that comes on top.
//
// A gang takes the nodes of a class that together cost least, from when on all of them
// are free for it; what goes in front of it is gone by then.
//
// A Replan is its own [planner.Picker], as [LateBinding] is.
type Replan struct {
	// Stretch is the most by which clocks may lengthen a run, as a multiple of its
	// time at default clocks.
	Stretch float64
	// Pace is the mean time in the system that tasks may take, as a multiple of that under
	// EASY at default clocks, 1 or more. Tasks with a deadline of their own have none before that:
	// their time has less of a price. 0: all tasks keep a tenth ahead of EASY.
	Pace float64
}

// pacing is how a pace is kept, and how the tasks that have it fare against default clocks.
type pacing struct {
	pace   float64
	goal   float64 // time in the system at which time has its usual price, in that at default clocks
	slack  float64 // time in the system that costs nothing more, likewise
	least  float64 // the lowest price of time, in usual ones
	late   float64 // what it costs to be past due, in costs of the task and of a mean one
	rounds int     // schedules at most after the first one, in which other tasks come first

	// Time in the system of tasks that started, the latest ones most, and of them at default clocks, seconds.
	actualTime, defaultTime float64
	price                   float64 // of a second of a task's time, in the schedule under work
}

// newPacing returns how a pace is kept. Clocks are chosen before anybody knows who else will come: the
// goal is ahead of the pace, and never behind it.
func newPacing(pace float64) *pacing {
	if pace == 0 {
		return &pacing{goal: 0.9, slack: 1.1, least: 0.2, late: 2, rounds: 2}
	}
	beyond := pace - 1
	return &pacing{
		pace: pace, goal: min(0.82+1.8*beyond, pace), slack: 1.1 + beyond, late: 5, rounds: 8,
	}
}

// pacingOf returns how the pace of a task is kept.
func (p *replan) pacingOf(t *planner.Task) *pacing {
	if p.opts.Pace == 0 || t.Pace == 0 {
		return p.pacings[0]
	}
	k := slices.IndexFunc(p.pacings, func(s *pacing) bool { return s.pace == t.Pace })
	if k < 0 {
		k, p.pacings = len(p.pacings), append(p.pacings, newPacing(t.Pace))
	}
	return p.pacings[k]
}

// New returns the Place stage of one run.
func (r Replan) New(v *planner.View) planner.Placer {
	n := len(v.Problem.Tasks)
	p := &replan{
		atOnce: atOnce{v: v}, opts: r, pacings: []*pacing{newPacing(r.Pace)}, reference: pick.NewConservative(v),
		jobs: make([]*pendingTask, n), runs: make([]bool, n), task: -1,
	}
	if r.Pace > 0 && v.Problem.Cluster.Classes[0].Count == 0 && v.Problem.WaitWeight == 0 {
		p.holding = newLateBinding(v)
	}
	return p
}

type replan struct {
	atOnce
	opts      Replan
	pacings   []*pacing // the first one is that of tasks without a pace of their own
	reference *pick.Conservative
	// Starts the tasks, on as many nodes as they want, as long as none of them has a pace; nil
	// from then on.
	holding *lateBinding
	jobs    []*pendingTask // by task, while it waits
	beliefs beliefs
	runs    []bool // by task

	arrivedTasks []int          // tasks that arrived and weren't looked at yet
	unplaceable  []int          // tasks that no class suits: to be given up
	byAge        []*pendingTask // the tasks that wait, by arrival
	byWork       []*pendingTask // the same by compareWork
	byLatest     []*pendingTask // by compareLatest
	delays       delayAccount
	overdueFirst []*pendingTask // what has waited too long and goes first: one task at most
	plan         schedule
	stale        bool // something happened since the plan was made
	todo         []startDecision

	task int // offered; -1: nothing
	now  startDecision
}

// delayAccount sums up the tasks that arrived, at default clocks.
type delayAccount struct {
	cost, time float64 // by the objective, and seconds
	tasks      float64
}

// Arrive notes tasks, which are looked at in Next: by then it is known what runs.
func (p *replan) Arrive(tasks []int) {
	p.arrivedTasks = append(p.arrivedTasks, tasks...)
	p.stale = true
	if p.holding == nil {
		return
	}
	if slices.ContainsFunc(tasks, func(t int) bool { return math.IsInf(p.v.Problem.Tasks[t].Deadline, 1) }) {
		p.holding, p.unplaceable = nil, nil // those were offered
		return
	}
	p.holding.Arrive(tasks)
}

// Opened notes a node that is switched on.
func (p *replan) Opened(node int) {
	p.atOnce.Opened(node)
	if p.holding != nil {
		p.holding.Opened(node)
	}
}

// Closed notes a node that is switched off.
func (p *replan) Closed(node int) {
	p.atOnce.Closed(node)
	if p.holding != nil {
		p.holding.Closed(node)
	}
}

// Wake returns when the next task arrives that is known before: only of a clairvoyant
// problem there are such.
func (p *replan) Wake() float64 {
	next := math.Inf(1)
	if p.holding != nil {
		return p.holding.Wake()
	}
	if p.v.Problem.Mode == planner.Clairvoyant {
		for _, task := range p.arrivedTasks {
			next = min(next, p.v.StartFor(task, 0))
		}
	}
	return next
}

// Refused isn't called: what a plan offers starts.
func (p *replan) Refused(int) {}

// Next decides what starts now and where; Place repeats it.
func (p *replan) Next() (task int, ok bool) {
	p.admitArrived()
	if p.holding != nil {
		return p.holding.Next()
	}
	if len(p.unplaceable) > 0 {
		task, p.unplaceable = p.unplaceable[0], p.unplaceable[1:]
		return task, true
	}
	if p.stale {
		p.stale = false
		p.todo = p.replan()
	}
	if len(p.todo) == 0 {
		return 0, false
	}
	p.now, p.todo = p.todo[0], p.todo[1:]
	p.task = p.now.job.task
	return p.task, true
}

// admitArrived looks at the tasks that are there by now.
func (p *replan) admitArrived() {
	later := p.arrivedTasks[:0]
	for _, task := range p.arrivedTasks {
		if p.v.Problem.Mode == planner.Clairvoyant && p.v.Problem.Tasks[task].Arrival > p.v.Now {
			later = append(later, task)
			continue
		}
		j := p.newPending(task)
		if len(j.choices) == 0 {
			p.unplaceable = append(p.unplaceable, task)
			continue
		}
		p.jobs[task] = j
		p.byAge = append(p.byAge, j)
		p.byWork, p.byLatest = insertSorted(p.byWork, j, compareWork), insertSorted(p.byLatest, j, compareLatest)
	}
	p.arrivedTasks = later
}

func insertSorted(list []*pendingTask, j *pendingTask, compare func(a, b *pendingTask) int) []*pendingTask {
	i, _ := slices.BinarySearchFunc(list, j, compare)
	return slices.Insert(list, i, j)
}

// Place answers with the start that Next decided on.
func (p *replan) Place(task int) (planner.Placement, planner.Verdict) {
	if p.holding != nil {
		return p.holding.Place(task)
	}
	if task != p.task {
		return p.atOnce.Place(task)
	}
	d := &p.now
	start, why, more := 0.0, planner.PlaceOpened, []planner.Part(nil)
	for i := range d.parts {
		node := p.plan.nodes[d.parts[i].node].id
		if node >= 0 {
			why = planner.PlacePlanned
		}
		if start = max(start, earliestStartOn(p.v, task, d.choice.class, node)); i > 0 {
			more = append(more, planner.Part{Node: int32(node), GPUs: d.parts[i].gpus})
		}
	}
	q, room := *d.quote, p.v.Problem.Tasks[task].TimeBudgetFrom(start)
	if d.quote == &d.choice.quotes[0] && q.Clocks == planner.ClocksPaced && q.Point.Time > room {
		q.Clocks = planner.ClocksLate
	}
	first := d.parts[0]
	pl := newPlacement(p.plan.nodes[first.node].id, d.choice.class, d.choice.option, first.gpus, start,
		&q, room, why)
	pl.More = more
	return pl, planner.Start
}

// Committed notes a start. The engine tells it to Place, and then to Pick.
func (p *replan) Committed(task int, a *planner.Assignment) {
	if p.runs[task] {
		return
	}
	p.runs[task] = true
	p.beliefs.started(task, a)
	p.atOnce.Committed(task, a)
	if p.holding != nil {
		p.holding.Committed(task, a)
	}
	if task == p.task {
		p.noteOpened(a)
		p.task = -1
	}
	j := p.jobs[task]
	if j == nil {
		p.reference.BookRunning(p.v.Node(int(a.Node)).Class,
			float64(a.GPUCount())*p.v.Problem.Tasks[task].Share, a.End)
		return
	}
	j.pacing.noteStart(j, a.End)
	same := func(o *pendingTask) bool { return o == j }
	p.byAge = slices.DeleteFunc(p.byAge, same)
	p.byWork, p.byLatest = slices.DeleteFunc(p.byWork, same), slices.DeleteFunc(p.byLatest, same)
	p.jobs[task] = nil
}

// Finished gives back what a task held, once.
func (p *replan) Finished(task int, a *planner.Assignment) {
	if p.runs[task] {
		p.runs[task] = false
		p.beliefs.ended(task, a)
		p.reference.Belief = cmp.Or(p.beliefs.usual, 1)
		p.atOnce.Finished(task, a)
	}
}

// noteOpened notes which nodes were switched on for the task that has just started.
func (p *replan) noteOpened(a *planner.Assignment) {
	parts := p.now.parts
	for part := range a.Parts {
		is := func(b bookedNode) bool { return p.plan.nodes[b.node].id == int(part.Node) }
		if slices.ContainsFunc(parts, is) {
			continue
		}
		fresh := slices.IndexFunc(parts, func(b bookedNode) bool {
			return p.plan.nodes[b.node].id < 0 && b.gpus == part.GPUs
		})
		p.plan.nodes[parts[fresh].node].id = int(part.Node)
	}
}
