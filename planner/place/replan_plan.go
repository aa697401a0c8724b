package place

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// The numbers here and in the price of time were chosen on drawn batches
// (docs/performance.md, "Online: replan").
const (
	maxListed     = 256    // tasks in a schedule
	minListed     = 64     // of those that wait, however many nodes there are
	hopeless      = 2      // schedules that cost no less, one after the other, after which no more are tried
	maxNodesTried = 16_000 // nodes that are looked at for all of them
	idleWeight    = 0.3    // of the idle energy that a task causes on its node: others will use the rest
	patientPrice  = 2      // what a second beyond costs, in usual prices of one
	// Of the price of time: a task with a deadline doesn't pay it, as its owner waits for that alone.
	unpacedDiscount = 0.7
	nearDeadline    = 4   // shortest run times; the discount is whole at twice that
	missCost        = 1e3 // what a missed deadline costs, in costs of a mean task
	// Of the time in the system at default clocks: who has been there longer goes first.
	maxStay = 1.5
	overrun = 0.1 // of a mean run: for so long a run goes on that should have ended
)

type schedule struct {
	nodes []plannedNode
	gpus  []plannedGPU
	frees []float64 // when the GPUs of each node are free for good, rising
	cost  float64
	ends  []taskEnd
	start []startDecision // what starts now, in order
	late  []*pendingTask  // what ends late and needn't
}

type startDecision struct {
	job    *pendingTask
	choice *classChoice
	quote  *planner.Quote
	parts  []bookedNode // one; those of a gang start together
}

type bookedNode struct {
	node int // index in the schedule's
	gpus planner.GPUSet
}

type taskEnd struct {
	job *pendingTask
	at  float64
}

type plannedNode struct {
	id    int // the node that is on, or -1: one to be switched on
	class int
	used  bool    // it is on, or is to be
	ready float64 // when it can be used at the earliest
	last  float64 // when the last of its tasks ends
	first int     // its GPUs in the schedule's
	count int
	gaps  bool         // GPUs are idle in front of what is planned
	room  freeCapacity // what is left of it beside what runs and what starts now
}

type plannedGPU struct {
	idle  bool    // nothing runs there, and nothing starts there now
	until float64 // for an idle one: when the first task of the plan begins
	free  float64 // when the last one ends
}

// replan makes a schedule and returns what it starts now.
func (p *replan) replan() []startDecision {
	if len(p.byAge) == 0 || !p.readNodes() {
		return nil
	}
	order := p.tasksInOrder()
	best := p.listSchedule(order)
	late, first, worse := best.late, []*pendingTask(nil), 0
	for range p.pacings[0].rounds {
		if p.opts.Pace > 0 {
			first = tasksToPutFirst(first, late)
			late = slices.Clone(first)
		}
		if len(late) == 0 {
			break
		}
		slices.SortStableFunc(late, func(a, b *pendingTask) int { return cmp.Compare(a.due, b.due) })
		rest := slices.DeleteFunc(slices.Clone(order), func(j *pendingTask) bool {
			return slices.Contains(late, j)
		})
		order = slices.Concat(rest[:len(p.overdueFirst)], late, rest[len(p.overdueFirst):])
		other := p.listSchedule(order)
		late = other.late
		if other.cost < best.cost {
			best, worse = other, 0
		} else if worse++; worse == hopeless {
			break
		}
	}
	for _, e := range best.ends {
		e.job.planned = e.at
	}
	p.plan.nodes = best.nodes
	return best.start
}

// tasksToPutFirst returns which tasks are to come first next: of those that came first the ones
// that weren't late even so, and what was late.
func tasksToPutFirst(first, late []*pendingTask) (next []*pendingTask) {
	for _, j := range first {
		if !slices.Contains(late, j) {
			next = append(next, j)
		}
	}
	for _, j := range late {
		if !slices.Contains(first, j) {
			next = append(next, j)
		}
	}
	return next
}

// longestWaiting returns the task that has waited longest of those that have been in the system for
// much longer than at default clocks, if there are any. By costs alone what needs many
// GPUs could wait for ever: it is cheaper to have one more small task start before.
func (p *replan) longestWaiting() []*pendingTask {
	for _, j := range p.byAge {
		if (!j.unpaced || p.v.Now > j.due) && p.v.Now-j.arrival > maxStay*(j.defaultEnd-j.arrival) {
			return []*pendingTask{j}
		}
	}
	return nil
}

// tasksInOrder returns the tasks to plan: the head, and the others by work, what waits longer
// before. Where too many wait they are those that have waited longest, those that must
// start first to be in time, and those that take least, as many of each.
func (p *replan) tasksInOrder() []*pendingTask {
	most := max(minListed, min(maxListed, maxNodesTried/max(1, len(p.plan.nodes))))
	order := make([]*pendingTask, 0, most)
	listed := make(map[*pendingTask]bool, most)
	fill := func(from []*pendingTask, upTo int) {
		for _, j := range from {
			if len(order) >= upTo {
				return
			}
			if !listed[j] {
				listed[j], order = true, append(order, j)
			}
		}
	}
	p.overdueFirst = p.longestWaiting()
	fill(p.overdueFirst, 1)
	if len(p.byAge) > most {
		savable, _ := slices.BinarySearchFunc(p.byLatest, p.v.Now, func(j *pendingTask, now float64) int {
			return cmp.Compare(j.latestStart(), now)
		})
		fill(p.byAge, most/3)
		fill(p.byLatest[savable:], 2*most/3)
		fill(p.byWork, most)
	} else {
		fill(p.byAge, most)
	}
	usual := p.delays.time / p.delays.tasks
	waited := p.v.Problem.WaitWeight / p.delays.usualCost()
	// Smith's rule: what the wait for it costs others, by what its own wait costs.
	key := func(j *pendingTask) float64 {
		return j.work / (1 + waited*j.size) / (1 + (p.v.Now-j.arrival)/usual)
	}
	slices.SortFunc(order[len(p.overdueFirst):], func(a, b *pendingTask) int {
		return cmp.Or(cmp.Compare(key(a), key(b)), cmp.Compare(a.task, b.task))
	})
	return order
}

// maxNodesWanted returns how many nodes all tasks that wait could want at once.
func (p *replan) maxNodesWanted() (most int) {
	for _, j := range p.byAge {
		most += j.nodes
	}
	return most
}

// readNodes takes the nodes as they are. It reports whether anything could start now.
func (p *replan) readNodes() (open bool) {
	s, v := &p.plan, p.v
	s.nodes, s.gpus, s.frees = s.nodes[:0], s.gpus[:0], s.frees[:0]
	classes := v.Problem.Cluster.Classes
	on, wanted := make([]int, len(classes)), min(p.maxNodesWanted(), maxListed)
	for n := range p.capacity {
		r := &p.capacity[n]
		if !r.isOn {
			continue
		}
		at := v.Node(n)
		on[at.Class]++
		b := plannedNode{id: n, class: at.Class, used: true, first: len(s.gpus), count: at.GPUs, room: *r}
		b.ready = v.StartAfter(at.Ready)
		b.last = b.ready
		for g := range at.GPUs {
			u := plannedGPU{idle: r.free.Has(g), until: math.Inf(1), free: b.ready}
			if !u.idle {
				if u.free = max(b.ready, v.FreeFrom(at.FirstGPU+g)); u.free <= v.Now {
					u.free = v.Now + overrun*p.delays.time/p.delays.tasks
				}
			}
			open = open || u.idle || !v.OnlyGPUsLimited
			b.last = max(b.last, u.free)
			s.gpus, s.frees = append(s.gpus, u), append(s.frees, 0)
		}
		s.nodes = append(s.nodes, b)
		s.sort(&b)
	}
	for class := range classes {
		k := &classes[class]
		spare := wanted
		if k.Count > 0 {
			spare = min(spare, k.Count-on[class])
		}
		for range spare {
			b := plannedNode{id: -1, class: class, first: len(s.gpus), count: k.GPUs}
			b.ready = v.StartAfter(v.Now + k.TurnOnDelay)
			b.last = b.ready
			b.room = freeCapacity{
				free: planner.FirstGPUs(k.GPUs), cpus: unlimitedIfZero(k.CPUs), mem: unlimitedIfZero(k.MemGiB),
			}
			for range k.GPUs {
				s.gpus = append(s.gpus, plannedGPU{idle: true, until: math.Inf(1), free: b.ready})
				s.frees = append(s.frees, b.ready)
			}
			s.nodes = append(s.nodes, b)
			open = true
		}
	}
	return open
}

func (s *schedule) sort(b *plannedNode) {
	frees := s.frees[b.first : b.first+b.count]
	for g := range frees {
		frees[g] = s.gpus[b.first+g].free
	}
	slices.Sort(frees)
}
