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
	mostListed  = 256    // tasks in a schedule
	leastListed = 64     // of those that wait, however many nodes there are
	mostPlaces  = 16_000 // nodes that are looked at for all of them
	rounds      = 2      // schedules at most after the first one
	idlePart    = 0.3    // of the idle energy that a task causes on its node: others will use the rest
	easySlack   = 1.1    // how much longer than at default clocks a task may be in the system before that costs
	easyPrice   = 2      // what a second beyond costs, in usual prices of one
	lateCost    = 2      // what it costs to be past due, in costs of the task and of a mean one
	missCost    = 1e3    // what a missed deadline costs, in costs of a mean task
	mostStay    = 1.5    // of the time in the system at default clocks: who has been there longer goes first
	overrun     = 0.1    // of a mean run: for so long a run goes on that should have ended
)

// schedule is a plan for the tasks that wait.
type schedule struct {
	nodes []berth
	gpus  []lot
	frees []float64 // when the GPUs of each node are free for good, rising
	cost  float64
	ends  []ending
	start []decision // what starts now, in order
	late  []*asking  // what ends late and needn't
}

// decision is a task that starts now.
type decision struct {
	job    *asking
	choice *choice
	quote  *planner.Quote
	parts  []booked // one; those of a gang start together
}

// booked is what a task takes of a node.
type booked struct {
	node int // index in the schedule's
	gpus planner.GPUSet
}

// ending is when a task ends by a schedule.
type ending struct {
	job *asking
	at  float64
}

// berth is a node of a schedule.
type berth struct {
	id    int // the node that is on, or -1: one to be switched on
	class int
	used  bool    // it is on, or is to be
	ready float64 // when it can be used at the earliest
	last  float64 // when the last of its tasks ends
	first int     // its GPUs in the schedule's
	count int
	gaps  bool     // GPUs are idle in front of what is planned
	room  roomLeft // what is left of it beside what runs and what starts now
}

// lot is a GPU of a schedule.
type lot struct {
	idle  bool    // nothing runs there, and nothing starts there now
	until float64 // for an idle one: when the first task of the plan begins
	free  float64 // when the last one ends
}

// replan makes a schedule and returns what it starts now.
func (p *replan) replan() []decision {
	if len(p.byAge) == 0 || !p.survey() {
		return nil
	}
	order := p.ordered()
	best := p.list(order)
	late := best.late
	for range rounds {
		if len(late) == 0 {
			break
		}
		slices.SortStableFunc(late, func(a, b *asking) int { return cmp.Compare(a.due, b.due) })
		rest := slices.DeleteFunc(slices.Clone(order), func(j *asking) bool { return slices.Contains(late, j) })
		order = slices.Concat(rest[:len(p.head)], late, rest[len(p.head):])
		other := p.list(order)
		late = other.late
		if other.cost < best.cost {
			best = other
		}
	}
	for _, e := range best.ends {
		e.job.planned = e.at
	}
	p.plan.nodes = best.nodes
	return best.start
}

// patient is the task that has waited longest of those that have been in the system for
// much longer than at default clocks, if there are any. By costs alone what needs many
// GPUs could wait for ever: it is cheaper to have one more small task start before.
func (p *replan) patient() []*asking {
	for _, j := range p.byAge {
		if p.v.Now-j.arrival > mostStay*(j.easy-j.arrival) {
			return []*asking{j}
		}
	}
	return nil
}

// ordered are the tasks to plan: the head, and the others by work, what waits longer
// before. Where too many wait they are those that have waited longest, those that must start first to be in time,
// and those that take least, as many of each.
func (p *replan) ordered() []*asking {
	most := max(leastListed, min(mostListed, mostPlaces/max(1, len(p.plan.nodes))))
	order := make([]*asking, 0, most)
	listed := make(map[*asking]bool, most)
	fill := func(from []*asking, upTo int) {
		for _, j := range from {
			if len(order) >= upTo {
				return
			}
			if !listed[j] {
				listed[j], order = true, append(order, j)
			}
		}
	}
	p.head = p.patient()
	fill(p.head, 1)
	if len(p.byAge) > most {
		savable, _ := slices.BinarySearchFunc(p.byLatest, p.v.Now, func(j *asking, now float64) int {
			return cmp.Compare(j.latest(), now)
		})
		fill(p.byAge, most/3)
		fill(p.byLatest[savable:], 2*most/3)
		fill(p.byWork, most)
	} else {
		fill(p.byAge, most)
	}
	usual := p.standing.time / p.standing.tasks
	waited := p.v.Problem.WaitWeight / p.standing.usual()
	key := func(j *asking) float64 { // Smith's rule: what the wait for it costs others, by what its own wait costs
		return j.work / (1 + waited*j.size) / (1 + (p.v.Now-j.arrival)/usual)
	}
	slices.SortFunc(order[len(p.head):], func(a, b *asking) int {
		return cmp.Or(cmp.Compare(key(a), key(b)), cmp.Compare(a.task, b.task))
	})
	return order
}

// nodes is how many nodes all tasks that wait could want at once.
func (p *replan) nodes() (most int) {
	for _, j := range p.byAge {
		most += j.nodes
	}
	return most
}

// survey takes the nodes as they are. It tells whether anything could start now.
func (p *replan) survey() (open bool) {
	s, v := &p.plan, p.v
	s.nodes, s.gpus, s.frees = s.nodes[:0], s.gpus[:0], s.frees[:0]
	classes := v.Problem.Cluster.Classes
	on, wanted := make([]int, len(classes)), min(p.nodes(), mostListed)
	for n := range p.rooms {
		r := &p.rooms[n]
		if !r.on {
			continue
		}
		class := v.ClassOf(n)
		on[class]++
		first, count := v.GPUs(n)
		b := berth{id: n, class: class, used: true, first: len(s.gpus), count: count, room: *r}
		b.ready = v.StartAfter(v.Since(n) + classes[class].TurnOnDelay)
		b.last = b.ready
		for g := range count {
			u := lot{idle: r.free.Has(g), until: math.Inf(1), free: b.ready}
			if !u.idle {
				if u.free = max(b.ready, v.Free(first+g)); u.free <= v.Now {
					u.free = v.Now + overrun*p.standing.time/p.standing.tasks
				}
			}
			open = open || u.idle || !v.Untight()
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
			b := berth{id: -1, class: class, first: len(s.gpus), count: k.GPUs}
			b.ready = v.StartAfter(v.Now + k.TurnOnDelay)
			b.last = b.ready
			b.room = roomLeft{free: planner.FirstGPUs(k.GPUs), cpus: orInf(k.CPUs), mem: orInf(k.MemGiB)}
			for range k.GPUs {
				s.gpus = append(s.gpus, lot{idle: true, until: math.Inf(1), free: b.ready})
				s.frees = append(s.frees, b.ready)
			}
			s.nodes = append(s.nodes, b)
			open = true
		}
	}
	return open
}

// sort brings a node's frees up to date.
func (s *schedule) sort(b *berth) {
	frees := s.frees[b.first : b.first+b.count]
	for g := range frees {
		frees[g] = s.gpus[b.first+g].free
	}
	slices.Sort(frees)
}
