package place

import (
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
// The price of time says how far users may be made to wait for energy. It is held
// against what sites run: [pick.Conservative] plays default clocks beside the real run.
// While tasks spend less time here than there, time is cheap and clocks are slow; as the
// lead melts the price rises, to that of nearly fastest clocks. And what makes a task
// end much later than it would there costs more still.
//
// It books one node for a task. As soon as a task on several nodes has arrived, all that
// waits, and what comes after it, goes by Gangs and at default clocks instead.
//
// A Replan is its own [planner.Picker], as [Hold] is.
type Replan struct {
	// Stretch is the most by which clocks may lengthen a run, as a multiple of its
	// time at default clocks.
	Stretch float64
	// Gangs is the Pick stage for tasks on several nodes and all after the first of
	// them; nil: EASY.
	Gangs func(*planner.View, planner.Placer) planner.Picker
}

// New is the Place stage of one run.
func (r Replan) New(v *planner.View) planner.Placer {
	n := len(v.Problem.Tasks)
	p := &replan{
		atOnce: atOnce{opening: opening{v}}, how: r, beside: pick.NewConservative(v),
		jobs: make([]*asking, n), runs: make([]bool, n), task: -1,
	}
	if r.Gangs == nil {
		r.Gangs = pick.Easy{}.New
	}
	p.line = r.Gangs(v, p)
	return p
}

type replan struct {
	atOnce
	how    Replan
	beside *pick.Conservative
	jobs   []*asking // by task, while it waits
	runs   []bool    // by task

	fresh    []int     // tasks that arrived and weren't looked at yet
	lost     []int     // tasks that no class suits: to be given up
	byAge    []*asking // the tasks that wait, by arrival
	byWork   []*asking // the same by compareWork
	byLatest []*asking // by compareLatest
	standing standing
	plan     schedule
	stale    bool // something happened since the plan was made
	todo     []decision

	task int // offered; -1: nothing
	now  decision

	line planner.Picker // of tasks once one on several nodes is among them
	gang bool           // one is
}

// standing is how the tasks that arrived fare against default clocks.
type standing struct {
	ours, theirs float64 // time in the system of tasks that started, the latest ones most, seconds
	cost, time   float64 // sums over tasks at default clocks: by the objective, and seconds
	tasks        float64
}

// Arrive notes tasks, which are looked at in Next: by then it is known what runs.
func (p *replan) Arrive(tasks []int) {
	if !p.gang && slices.ContainsFunc(tasks, p.gangs) {
		p.gang = true
		waiting := make([]int, 0, len(p.byAge)+len(p.lost)+len(p.fresh))
		for _, j := range p.byAge {
			waiting = append(waiting, j.task)
		}
		p.line.Arrive(append(append(waiting, p.lost...), p.fresh...))
		p.byAge, p.byWork, p.byLatest, p.lost, p.fresh, p.todo = nil, nil, nil, nil, nil, nil
	}
	if p.gang {
		p.line.Arrive(tasks)
		return
	}
	p.fresh = append(p.fresh, tasks...)
	p.stale = true
}

// Wake is when the next task arrives that is known before: only of a clairvoyant
// problem there are such.
func (p *replan) Wake() float64 {
	if p.gang {
		return p.line.Wake()
	}
	next := math.Inf(1)
	if p.v.Problem.Mode == planner.Clairvoyant {
		for _, task := range p.fresh {
			next = min(next, p.v.StartFor(task, 0))
		}
	}
	return next
}

// Refused is called for tasks of the line alone: what a plan offers starts.
func (p *replan) Refused(task int) { p.line.Refused(task) }

// Next decides what starts now and where; Place repeats it.
func (p *replan) Next() (task int, ok bool) {
	if p.gang {
		return p.line.Next()
	}
	p.welcome()
	if len(p.lost) > 0 {
		task, p.lost = p.lost[0], p.lost[1:]
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

// welcome looks at the tasks that are there by now.
func (p *replan) welcome() {
	later := p.fresh[:0]
	for _, task := range p.fresh {
		if p.v.Problem.Mode == planner.Clairvoyant && p.v.Problem.Tasks[task].Arrival > p.v.Now {
			later = append(later, task)
			continue
		}
		j := p.ask(task)
		if len(j.choices) == 0 {
			p.lost = append(p.lost, task)
			continue
		}
		p.jobs[task] = j
		p.byAge = append(p.byAge, j)
		p.byWork, p.byLatest = inserted(p.byWork, j, compareWork), inserted(p.byLatest, j, compareLatest)
	}
	p.fresh = later
}

// inserted adds a task to a list in an order.
func inserted(list []*asking, j *asking, compare func(a, b *asking) int) []*asking {
	i, _ := slices.BinarySearchFunc(list, j, compare)
	return slices.Insert(list, i, j)
}

// Place answers with the start that Next decided on.
func (p *replan) Place(task int) (planner.Placement, planner.Verdict) {
	if p.gang {
		return p.atDefault(task)
	}
	if task != p.task {
		return p.atOnce.Place(task)
	}
	d := &p.now
	node, class := p.plan.nodes[d.node].id, d.choice.class
	start, why := p.v.StartOnNew(task, class), planner.PlaceOpened
	if node >= 0 {
		ready := p.v.Since(node) + p.v.Problem.Cluster.Classes[class].TurnOnDelay
		start, why = p.v.StartFor(task, ready), planner.PlacePlanned
	}
	q, room := *d.quote, p.v.Problem.Tasks[task].RoomFrom(start)
	if d.quote == &d.choice.quotes[0] && q.Clocks == planner.ClocksPaced && q.Point.Time > room {
		q.Clocks = planner.ClocksLate
	}
	return placement(node, class, d.choice.option, d.gpus, start, &q, room, why), planner.Start
}

// atDefault starts a task of the line, at default clocks where its limit allows them.
func (p *replan) atDefault(task int) (planner.Placement, planner.Verdict) {
	pl, verdict := p.atOnce.Place(task)
	if verdict != planner.Start {
		return pl, verdict
	}
	t := &p.v.Problem.Tasks[task]
	if at := t.Options[pl.Option].Response.Default(); at.Time <= t.Limit && pl.Reason.Clocks != planner.ClocksNoModel {
		pl.Point, pl.Reason.Clocks = at, planner.ClocksDefault
	}
	return pl, verdict
}

// Committed notes a start. The engine tells it to Place, and then to Pick.
func (p *replan) Committed(task int, a *planner.Assignment) {
	if p.runs[task] {
		return
	}
	p.runs[task] = true
	p.atOnce.Committed(task, a)
	if line, ok := p.line.(planner.Watcher); ok {
		line.Committed(task, a)
	}
	if task == p.task {
		p.plan.nodes[p.now.node].id = int(a.Node)
		p.task = -1
	}
	j := p.jobs[task]
	if j == nil {
		p.beside.Runs(p.v.ClassOf(int(a.Node)), float64(a.GPUs.Len())*p.v.Problem.Tasks[task].Share, a.End)
		return
	}
	p.standing.started(j, a.End)
	same := func(o *asking) bool { return o == j }
	p.byAge = slices.DeleteFunc(p.byAge, same)
	p.byWork, p.byLatest = slices.DeleteFunc(p.byWork, same), slices.DeleteFunc(p.byLatest, same)
	p.jobs[task] = nil
}

// Finished gives back what a task held, once.
func (p *replan) Finished(task int, a *planner.Assignment) {
	if p.runs[task] {
		p.runs[task] = false
		p.atOnce.Finished(task, a)
		if line, ok := p.line.(planner.Watcher); ok {
			line.Finished(task, a)
		}
	}
}
