package place

import (
	"cmp"
	"maps"
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
	missCost    = 1e3    // what a missed deadline costs, in costs of being past due
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
	node   int // index in the schedule's
	gpus   planner.GPUSet
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
	for range rounds {
		late := best.late
		if len(late) == 0 {
			break
		}
		slices.SortStableFunc(late, func(a, b *asking) int { return cmp.Compare(a.due, b.due) })
		rest := slices.DeleteFunc(slices.Clone(order), func(j *asking) bool { return slices.Contains(late, j) })
		order = append(slices.Clone(late), rest...)
		other := p.list(order)
		if other.cost >= best.cost {
			break
		}
		best = other
	}
	for _, e := range best.ends {
		e.job.planned = e.at
	}
	p.plan.nodes = best.nodes
	return best.start
}

// ordered are the tasks to plan, by work, what waits longer before. Where too many wait
// they are those that have waited longest, those that must start first to be in time,
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
	if len(p.byAge) > most {
		savable, _ := slices.BinarySearchFunc(p.byLatest, p.v.Now, func(j *asking, now float64) int {
			return cmp.Compare(j.latest(), now)
		})
		fill(p.byAge, most/3)
		fill(p.byLatest[savable:], 2*most/3)
		fill(p.byWork, most)
	} else {
		order = append(order, p.byAge...)
	}
	usual := p.standing.time / p.standing.tasks
	key := func(j *asking) float64 { return j.work / (1 + (p.v.Now-j.arrival)/usual) }
	slices.SortFunc(order, func(a, b *asking) int {
		return cmp.Or(cmp.Compare(key(a), key(b)), cmp.Compare(a.task, b.task))
	})
	return order
}

// survey takes the nodes as they are. It tells whether anything could start now.
func (p *replan) survey() (open bool) {
	s, v := &p.plan, p.v
	s.nodes, s.gpus, s.frees = s.nodes[:0], s.gpus[:0], s.frees[:0]
	classes := v.Problem.Cluster.Classes
	on := make([]int, len(classes))
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
		spare := min(len(p.byAge), mostListed)
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

// seat is a place for a task in a schedule.
type seat struct {
	cost       float64
	node       int
	start, end float64
	how        manner
	gpus       planner.GPUSet // only beside others
	choice     *choice
	quote      int
}

// manner is how a task takes its GPUs.
type manner uint8

const (
	inTurn     manner = iota // behind what is planned there
	inFront                  // of what is planned there, on GPUs that are idle
	withOthers               // that have parts of the GPU now
)

// lister makes one list schedule.
type lister struct {
	p      *replan
	to     schedule
	price  float64 // of a second of a task's time
	behind []float64
	total  []float64 // GPUs by class
}

// list plans tasks in an order.
func (p *replan) list(order []*asking) *schedule {
	classes := p.v.Problem.Cluster.Classes
	l := lister{
		p: p, price: p.standing.price(p.v.Now, p.byAge),
		behind: make([]float64, len(classes)), total: make([]float64, len(classes)),
	}
	l.to.nodes, l.to.gpus = slices.Clone(p.plan.nodes), slices.Clone(p.plan.gpus)
	l.to.frees = slices.Clone(p.plan.frees)
	for class := range classes {
		if l.total[class] = float64(classes[class].Count * classes[class].GPUs); classes[class].Count == 0 {
			l.total[class] = math.Inf(1)
		}
	}
	for _, j := range order {
		for c := range j.choices {
			l.behind[j.choices[c].class]++
		}
	}
	for _, j := range order {
		for c := range j.choices {
			l.behind[j.choices[c].class]--
		}
		if best := l.cheapest(j); best.choice != nil {
			l.to.cost += best.cost
			l.take(j, &best)
		}
	}
	return &l.to
}

// cheapest is the place where a task costs least.
func (l *lister) cheapest(j *asking) (best seat) {
	best.cost = math.Inf(1)
	for c := range j.choices {
		choice := &j.choices[c]
		k := &l.p.v.Problem.Cluster.Classes[choice.class]
		idle := idlePart * l.p.v.Problem.Price(choice.class).EnergyWeight * float64(k.IdleW+k.HostW)
		// What every second of the run costs, wherever it is.
		second := l.price*(1+choice.size*l.behind[choice.class]/l.total[choice.class]) - idle*choice.size
		least := math.Inf(1)
		for q := range choice.quotes {
			least = min(least, choice.costs[q]+second*choice.quotes[q].Point.Time)
		}
		fresh := true
		for n := range l.to.nodes {
			b := &l.to.nodes[n]
			if b.class != choice.class || b.count < choice.gpus || (!b.used && !fresh) {
				continue
			}
			fresh = fresh && b.used
			l.p.v.Evaluated(1)
			if l.price*(b.ready-l.p.v.Now)+least >= best.cost {
				continue
			}
			l.try(j, choice, n, second, idle, least, &best)
		}
	}
	return best
}

// try looks at a node: behind what is planned there, in front of it, and for a part of a
// GPU beside others.
func (l *lister) try(j *asking, choice *choice, n int, second, idle, least float64, best *seat) {
	b, t := &l.to.nodes[n], &l.p.v.Problem.Tasks[j.task]
	lots := l.to.gpus[b.first : b.first+b.count]
	price := l.p.v.Problem.Price(b.class).EnergyWeight
	at := func(start, until float64, how manner, gpus planner.GPUSet) {
		wait := l.price * (start - l.p.v.Now)
		if wait+least+l.lateness(j, start+choice.quotes[0].Point.Time) >= best.cost {
			return // nothing is faster
		}
		for q := range choice.quotes {
			run := choice.quotes[q].Point.Time
			end := start + run
			if end > until {
				continue
			}
			cost := choice.costs[q] + second*run + wait + idle*float64(b.count)*max(0, end-b.last) + l.lateness(j, end)
			if !b.used {
				cost += price * float64(l.p.v.Problem.Cluster.Classes[b.class].TurnOn) * float64(b.count)
			}
			if cost < best.cost {
				*best = seat{cost: cost, node: n, start: start, end: end, how: how, gpus: gpus, choice: choice, quote: q}
			}
		}
	}
	free := b.ready
	if choice.gpus > 0 {
		free = l.p.v.StartAfter(l.to.frees[b.first+choice.gpus-1])
	}
	if !b.room.holds(t, 1) {
		at(max(free, b.last), math.Inf(1), inTurn, 0)
		return
	}
	at(free, math.Inf(1), inTurn, 0)
	if b.gaps {
		if until, ok := idleUntil(lots, choice.gpus); ok {
			at(b.ready, until, inFront, 0)
		}
	}
	if t.Share < 1 {
		if gpus, ok := b.room.gpus(t, choice.option); ok {
			at(b.ready, lots[gpus.First()].until, withOthers, gpus)
		}
	}
}

// lateness is what it costs that a task ends then: later than at default clocks, after
// it is due, after its deadline.
func (l *lister) lateness(j *asking, end float64) float64 {
	s := &l.p.standing
	cost := easyPrice * s.usual() * max(0, end-j.arrival-easySlack*(j.easy-j.arrival))
	charge := j.cost + s.cost/s.tasks
	if end > j.due {
		cost += charge
	}
	if end > j.deadline {
		cost += missCost * charge
	}
	return cost
}

// idleUntil is until when so many GPUs are idle; ok is false where there aren't as many.
func idleUntil(lots []lot, count int) (until float64, ok bool) {
	var few [planner.MaxGPUs]float64
	all := few[:0]
	for g := range lots {
		if lots[g].idle {
			all = append(all, lots[g].until)
		}
	}
	if count == 0 || len(all) < count {
		return 0, false
	}
	slices.Sort(all)
	return all[len(all)-count], true
}

// take books a place.
func (l *lister) take(j *asking, at *seat) {
	b, t := &l.to.nodes[at.node], &l.p.v.Problem.Tasks[j.task]
	lots := l.to.gpus[b.first : b.first+b.count]
	gpus := at.gpus
	if at.how != withOthers {
		gpus = suitable(lots, at)
	}
	now := at.how == withOthers || b.room.holds(t, 1)
	for s := gpus; s != 0 && at.how != withOthers; s &= s - 1 {
		u := &lots[s.First()]
		now = now && u.idle && (at.how == inFront || math.IsInf(u.until, 1))
	}
	for s := gpus; s != 0; s &= s - 1 {
		u := &lots[s.First()]
		if now {
			u.idle = false
		} else if u.idle {
			u.until, b.gaps = min(u.until, at.start), true
		}
		if at.how != inFront {
			u.free = max(u.free, at.end)
		}
	}
	l.to.sort(b)
	b.used, b.last = true, max(b.last, at.end)
	l.to.ends = append(l.to.ends, ending{j, at.end})
	if due := min(j.due, j.deadline); at.end > due && l.p.v.Now <= j.latest() {
		l.to.late = append(l.to.late, j)
	}
	if now {
		b.room.free &^= gpus
		b.room.cpus, b.room.mem = b.room.cpus-t.CPUs, b.room.mem-t.MemGiB
		if at.how == withOthers {
			b.room.shares = maps.Clone(b.room.shares)
			b.room.hold(gpus.First(), t.Share)
		}
		l.to.start = append(l.to.start, decision{
			job: j, choice: at.choice, quote: &at.choice.quotes[at.quote], node: at.node, gpus: gpus,
		})
	}
}

// suitable are the GPUs for a place: of those that will do, the ones that are of least
// use to others.
func suitable(lots []lot, at *seat) (gpus planner.GPUSet) {
	for range at.choice.gpus {
		best := -1
		for g := range lots {
			u := &lots[g]
			switch {
			case gpus.Has(g):
			case at.how == inFront && u.idle && u.until >= at.end && (best < 0 || u.until < lots[best].until):
				best = g
			case at.how == inTurn && u.free <= at.start && (best < 0 || u.free > lots[best].free):
				best = g
			}
		}
		gpus |= 1 << uint(best)
	}
	return gpus
}
