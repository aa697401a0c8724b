package planner

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/sharing"
)

// sharedGPUState is who is on the GPUs that tasks may share by profile, and how far
// they are. A task has work left, in seconds alone at the highest frequency; it
// does it at a rate that changes with who is beside it and with the clocks of
// its GPUs. Clocks are set anew whenever a task begins or ends: a rule that
// looks every few milliseconds would come to the same, as nothing else changes
// what it sees.
//
// Nodes whose GPUs may be shared are the first ones of the engine and are the
// servers of the instance: nodes and GPUs have the same numbers in both.
type sharedGPUState struct {
	problem *Problem
	plan    *Plan
	clocks  func(running *sharing.State, gpu int) dvfsmodel.MHz
	in      *sharing.Instance
	SharedGPUs
	specs       []sharing.Task // by task: what the instance is to know of it
	active      *sharing.State // the tasks of Booked that run
	firstGPU    []int          // by server: its first GPU
	gpus        []sharedGPU
	tenants     []tenant // by task
	endsChanged []int    // tasks that end at another time since it was last looked at
}

type sharedGPU struct {
	mhz      dvfsmodel.MHz // 0: nothing runs
	since    float64       // when the frequency was set
	until    float64       // up to when energy is counted
	slowdown float64       // of its tasks, now
}

// tenant is a task as it goes on.
type tenant struct {
	phase  phase
	alone  float64 // run time alone at the highest frequency, seconds
	left   float64 // of it, at
	at     float64
	rate   float64 // work done by second
	energy float64 // its part of the energy of its GPUs so far, joules
	cycles float64 // frequency over time of its GPUs, MHz·s
}

// slowdownSlack is the relative rounding that a run time may carry beyond what
// a task tolerates: those who place tasks allow for half of it.
const slowdownSlack = 2 * sharing.Tolerance

type phase uint8

const (
	notShared     phase = iota // not on a GPU that is shared
	phaseReserved              // begins when its node is ready
	phaseRunning
	phaseEnded
)

// newSharedGPUState returns the nodes that the policy may put tasks on together; nil where
// there are none.
func newSharedGPUState(p *Problem, plan *Plan, tuner Tuner) *sharedGPUState {
	if !p.HasSharing() {
		return nil
	}
	y := &sharedGPUState{
		problem: p, plan: plan, in: p.sharingInstance(),
		tenants: make([]tenant, len(p.Tasks)),
	}
	y.IndexOf = slices.Repeat([]int{-1}, len(p.Tasks))
	y.clocks = func(*sharing.State, int) dvfsmodel.MHz { return y.in.Physics.Max() }
	if a, ok := tuner.(SharedClockTuner); ok {
		y.clocks = a.Clock
	}
	y.Booked, y.active = sharing.NewState(y.in), sharing.NewState(y.in)
	y.specs, y.in.Tasks = y.in.Tasks, nil // nothing about a task is used before it is offered
	y.gpus = make([]sharedGPU, y.Booked.GPUs())
	first := 0
	for server := range y.in.Servers {
		y.firstGPU = append(y.firstGPU, first)
		first += len(y.in.Servers[server].GPUMemGB)
	}
	plan.Shared = &Shared{}
	return y
}

func (y *sharedGPUState) isShared(node int) bool { return node < len(y.in.Servers) }

// setTolerance makes a task known to the instance that is about to be offered, and how much
// it may be slowed down so that it keeps its limit and its due time: no more than alone,
// where that is too late.
func (y *sharedGPUState) setTolerance(v *View, task int) {
	t := &y.problem.Tasks[task]
	if y.IndexOf[task] < 0 {
		y.IndexOf[task] = len(y.TaskAt)
		y.TaskAt = append(y.TaskAt, task)
		y.in.Tasks = append(y.in.Tasks, y.specs[task])
	}
	if t.Profile == nil {
		return
	}
	kappa := t.Profile.Kappa
	for class := range y.problem.Cluster.Classes {
		if option := v.Option(task, class); option >= 0 && y.problem.CanShareGPUs(class) {
			kappa = min(kappa,
				t.TimeBudgetFrom(v.StartOnNew(task, class))/t.Options[option].Response.Default().Time)
		}
	}
	y.in.Tasks[y.IndexOf[task]].Kappa = max(1, kappa)
}

// isReserved reports whether a task hasn't begun on its shared GPUs.
func (y *sharedGPUState) isReserved(task int) bool {
	return y != nil && y.tenants[task].phase == phaseReserved
}

// eachGPU goes through the GPUs of a task that may be shared.
func (y *sharedGPUState) eachGPU(a *Assignment, do func(gpu int)) {
	for part := range a.Parts {
		if !y.isShared(int(part.Node)) {
			continue
		}
		for s := part.GPUs; s != 0; s &= s - 1 {
			do(y.firstGPU[part.Node] + s.First())
		}
	}
}

// bookTask books GPUs for a task, together with others or for itself.
func (y *sharedGPUState) bookTask(task int, a *Assignment, shared bool, now float64) {
	y.eachGPU(a, func(gpu int) { y.Booked.Add(y.IndexOf[task], gpu) })
	if !shared {
		return
	}
	alone := y.problem.Tasks[task].Options[a.Option].Response.Default().Time
	y.tenants[task] = tenant{phase: phaseReserved, alone: alone, left: alone, at: a.Start}
	if a.Start <= now {
		y.startTask(task, now)
	}
}

func (y *sharedGPUState) startTask(task int, now float64) {
	y.tenants[task].phase, y.tenants[task].at = phaseRunning, now
	y.plan.Assignments[task].End = math.NaN() // unlike any, so that it counts as moved
	y.moveTask(task, now, y.active.Add)
}

// endTask gives the GPUs of a task back that has ended, and completes what is
// said of it.
func (y *sharedGPUState) endTask(task int, now float64) {
	a, n := &y.plan.Assignments[task], &y.tenants[task]
	y.eachGPU(a, func(gpu int) { y.Booked.Remove(y.IndexOf[task], gpu) })
	if n.phase != phaseRunning {
		return
	}
	y.moveTask(task, now, y.active.Remove)
	n.phase = phaseEnded
	gpus := float64(a.GPUs.Len())
	pt := y.problem.Tasks[task].Options[a.Option].Response.Default()
	pt.Time = a.End - a.Start
	pt.Energy = dvfsmodel.Joule(n.energy / gpus)
	pt.Power = dvfsmodel.Watt(n.energy / (gpus * pt.Time))
	mean := n.cycles / (gpus * pt.Time)
	pt.Core, pt.Scaling.Fc = dvfsmodel.MHz(mean), mean/float64(y.in.Physics.Max())
	a.Point = pt
}

// moveTask adds a task to its GPUs, or takes it off, and sets clocks and rates of
// all that are beside it anew.
func (y *sharedGPUState) moveTask(task int, now float64, move func(task, gpu int)) {
	a := &y.plan.Assignments[task]
	y.eachGPU(a, func(gpu int) { y.accrueEnergy(gpu, now) })
	y.eachGPU(a, func(gpu int) {
		move(y.IndexOf[task], gpu)
		y.setClock(gpu, now)
	})
	y.eachGPU(a, func(gpu int) {
		for _, beside := range y.active.Tasks(gpu) {
			y.updateRate(y.TaskAt[beside], now)
		}
	})
}

// accrueEnergy adds what a GPU took since it was last counted to its tasks, by what
// they use of it on average.
func (y *sharedGPUState) accrueEnergy(gpu int, now float64) {
	g := &y.gpus[gpu]
	seconds := now - g.until
	g.until = now
	tasks := y.active.Tasks(gpu)
	if len(tasks) == 0 || seconds <= 0 {
		return
	}
	used := y.active.MeanPct(gpu)
	for _, number := range tasks {
		part := 1 / float64(len(tasks))
		if used > 0 {
			part = sharing.MeanPct(y.in.Tasks[number].UtilPct) / used
		}
		n := &y.tenants[y.TaskAt[number]]
		n.energy += part * seconds * y.in.Physics.PowerAt(g.mhz)
		n.cycles += seconds * float64(g.mhz)
	}
}

// setClock sets a GPU's frequency for who is on it now.
func (y *sharedGPUState) setClock(gpu int, now float64) {
	g, mhz := &y.gpus[gpu], dvfsmodel.MHz(0)
	if y.active.IsBusy(gpu) {
		mhz = y.clocks(y.active, gpu)
		g.slowdown = y.active.Overload(gpu) * y.in.Physics.Stretch(mhz)
	}
	if mhz == g.mhz {
		return
	}
	y.endInterval(gpu, now)
	g.mhz, g.since = mhz, now
}

func (y *sharedGPUState) endInterval(gpu int, now float64) {
	g := &y.gpus[gpu]
	if g.mhz == 0 || now <= g.since {
		return
	}
	server := y.Booked.GPU(gpu).Server
	y.plan.Shared.ClockIntervals = append(y.plan.Shared.ClockIntervals, ClockInterval{
		Node: server, GPU: gpu - y.firstGPU[server], From: g.since, To: now, MHz: g.mhz,
	})
}

// updateRate settles what a task has done and says when it ends if nothing changes
// any more: it is as slow as the slowest of its GPUs.
func (y *sharedGPUState) updateRate(task int, now float64) {
	n, a := &y.tenants[task], &y.plan.Assignments[task]
	n.left = max(0, n.left-n.rate*(now-n.at))
	n.at = now
	slowest := 0.0
	y.eachGPU(a, func(gpu int) { slowest = max(slowest, y.gpus[gpu].slowdown) })
	n.rate = 1 / slowest
	if end := now + n.left*slowest; end != a.End {
		a.End = end
		y.endsChanged = append(y.endsChanged, task)
	}
}

// lastEnd returns when the last of a GPU's tasks ends if nothing changes any more.
func (y *sharedGPUState) lastEnd(gpu int) float64 {
	last := 0.0
	for _, number := range y.Booked.Tasks(gpu) {
		last = max(last, y.plan.Assignments[y.TaskAt[number]].End)
	}
	return last
}

// isStale reports whether an entry of the agenda says nothing any more: its task has
// ended or does so at another time.
func (y *sharedGPUState) isStale(at Event) bool {
	n, a := &y.tenants[at.What], &y.plan.Assignments[at.What]
	return n.phase == phaseEnded || (n.phase == phaseRunning && a.End != at.At)
}

// addToPlan adds to the plan what it says of tasks that share GPUs.
func (y *sharedGPUState) addToPlan() {
	s := y.plan.Shared
	for task := range y.tenants {
		n, a := &y.tenants[task], &y.plan.Assignments[task]
		if n.phase == notShared {
			continue
		}
		s.Tasks = append(s.Tasks, task)
		if a.End-a.Start > y.problem.Tasks[task].MaxSharedRunTime(n.alone)*(1+slowdownSlack) {
			s.Slowed = append(s.Slowed, task)
		}
	}
	if len(s.Tasks) == 0 {
		y.plan.Shared = nil
		return
	}
	slices.SortFunc(s.ClockIntervals, func(a, b ClockInterval) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.GPU, b.GPU), cmp.Compare(a.From, b.From))
	})
}
