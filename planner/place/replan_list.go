package place

import (
	"maps"
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// reservation is a place for a task in a schedule: GPUs of a node, or of several for a gang.
type reservation struct {
	cost       float64
	node       int
	more       []int // of a gang: its further nodes
	start, end float64
	kind       reservationKind
	gpus       planner.GPUSet // only beside others
	choice     *classChoice
	quote      int
}

// reservationKind is how a task takes its GPUs.
type reservationKind uint8

const (
	behindPlanned reservationKind = iota // behind what is planned there
	backfilled                           // of what is planned there, on GPUs that are idle
	sharedGPU                            // that have parts of the GPU now
)

type listScheduler struct {
	p      *replan
	to     schedule
	behind []float64 // by class: tasks that come after the one that is looked at
	wanted []float64 // and how many GPUs these want
	total  []float64 // GPUs by class

	set   []int        // of nodes that are looked at together
	parts []bookedNode // that are booked together
	turns []nodeTurn   // of the nodes that a gang could have
	apt   []nodeTurn   // of these, the ones that suit it best
}

// nodeRequest is what a task looks for on the nodes of a class.
type nodeRequest struct {
	job    *pendingTask
	choice *classChoice
	idle   float64 // cost of a GPU that idles for a second
	second float64 // of the run: what it costs wherever it is
	wait   float64 // cost of a second until the start
	least  float64 // what a run costs at least
}

func (p *replan) listSchedule(order []*pendingTask) *schedule {
	classes := p.v.Problem.Cluster.Classes
	for _, s := range p.pacings {
		s.setPrice(p.v.Now, p.byAge, p.delays.usualCost())
	}
	l := listScheduler{
		p: p, behind: make([]float64, len(classes)), wanted: make([]float64, len(classes)),
		total: make([]float64, len(classes)),
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
			l.queue(&j.choices[c], 1)
		}
	}
	for _, j := range order {
		for c := range j.choices {
			l.queue(&j.choices[c], -1)
		}
		if best := l.cheapest(j); best.choice != nil {
			l.to.cost += best.cost
			l.take(j, &best)
		}
	}
	return &l.to
}

// queue counts a task that comes after others, or no longer does.
func (l *listScheduler) queue(c *classChoice, sign float64) {
	l.behind[c.class] += sign
	l.wanted[c.class] += sign * c.size
}

func (l *listScheduler) cheapest(j *pendingTask) (best reservation) {
	best.cost = math.Inf(1)
	for c := range j.choices {
		choice := &j.choices[c]
		k := &l.p.v.Problem.Cluster.Classes[choice.class]
		b := nodeRequest{job: j, choice: choice, least: math.Inf(1)}
		b.idle = idleWeight * l.p.v.Problem.ClassObjective(choice.class).EnergyWeight *
			float64(k.IdleW+k.HostW)
		waited := l.p.v.Problem.WaitWeight
		price := j.pacing.price
		b.wait = price + waited*choice.size
		b.second = price*(1+choice.size*l.behind[choice.class]/l.total[choice.class]) - b.idle*choice.size
		discount := l.discount(j)
		b.wait, b.second = b.wait-discount, b.second-discount
		b.second += waited * choice.size * l.wanted[choice.class] / l.total[choice.class]
		for q := range choice.quotes {
			b.least = min(b.least, choice.costs[q]+b.second*choice.quotes[q].Point.Time)
		}
		if choice.nodes > 1 {
			l.tryGang(&b, &best)
			continue
		}
		fresh, whole := true, choice.gpus > 0 && l.p.v.Problem.Tasks[j.task].Share == 1
		for n := range l.to.nodes {
			node := &l.to.nodes[n]
			if node.class != choice.class || node.count < choice.gpus || (!node.used && !fresh) {
				continue
			}
			fresh = fresh && node.used
			l.p.v.Evaluations++
			from := node.ready
			if whole && !node.gaps { // there is nothing but its turn
				from = max(from, l.to.frees[node.first+choice.gpus-1])
			}
			if b.wait*(from-l.p.v.Now)+b.least < best.cost {
				l.set = append(l.set[:0], n)
				l.tryNodes(&b, l.set, &best)
			}
		}
	}
	return best
}

// tryNodes looks at a set of nodes, of which the task takes the same part each: behind what
// is planned there, in front of it, and for a part of a GPU beside others.
func (l *listScheduler) tryNodes(b *nodeRequest, set []int, best *reservation) {
	t := &l.p.v.Problem.Tasks[b.job.task]
	has := l.offers(b, set)
	at := func(start, until float64, how reservationKind, gpus planner.GPUSet) {
		wait := b.wait * (start - l.p.v.Now)
		if wait+b.least+l.lateness(b.job, start+b.choice.quotes[0].Point.Time) >= best.cost {
			return // nothing is faster
		}
		least, quote := best.cost, -1
		for q := range b.choice.quotes {
			run := b.choice.quotes[q].Point.Time
			end := start + run
			if end > until {
				continue
			}
			cost := b.choice.costs[q] + b.second*run + wait
			for _, n := range set {
				node := &l.to.nodes[n]
				cost += b.idle * float64(node.count) * max(0, end-node.last)
			}
			cost += l.lateness(b.job, end)
			if cost += has.opening; cost < least {
				least, quote = cost, q
			}
		}
		if quote >= 0 {
			*best = reservation{
				cost: least, node: set[0], more: slices.Clone(set[1:]), start: start,
				end:  start + b.choice.quotes[quote].Point.Time,
				kind: how, gpus: gpus, choice: b.choice, quote: quote,
			}
		}
	}
	at(has.free, math.Inf(1), behindPlanned, 0)
	if !has.holds {
		return
	}
	if has.gaps {
		if until, ok := l.idleUntil(b, set); ok {
			at(has.ready, until, backfilled, 0)
		}
	}
	if t.Share < 1 {
		node := &l.to.nodes[set[0]]
		if gpus, ok := node.room.gpusFor(t, b.choice.option); ok {
			at(has.ready, l.to.gpus[node.first+gpus.First()].until, sharedGPU, gpus)
		}
	}
}

// nodeOffer is what a set of nodes has for a task.
type nodeOffer struct {
	ready, free float64 // from when on all can be used, and are free behind what is planned
	holds, gaps bool    // all have the CPUs and the memory before, one has idle GPUs before
	opening     float64 // cost of switching on those that are off
}

// offers returns what the nodes of a set have.
func (l *listScheduler) offers(b *nodeRequest, set []int) (o nodeOffer) {
	o.holds = true
	for _, n := range set {
		node := &l.to.nodes[n]
		free, ok := l.freeFrom(b, n)
		o.ready, o.free = max(o.ready, node.ready), max(o.free, free)
		o.holds, o.gaps = o.holds && ok, o.gaps || node.gaps
		if !node.used {
			problem := l.p.v.Problem
			turnOn := float64(problem.Cluster.Classes[node.class].TurnOn)
			o.opening += problem.ClassObjective(node.class).EnergyWeight * turnOn * float64(node.count)
		}
	}
	return o
}

// freeFrom is from when on a node has what the task takes of it, behind what is planned
// there. now reports whether it has the CPUs and the memory before, too.
func (l *listScheduler) freeFrom(b *nodeRequest, n int) (free float64, now bool) {
	node := &l.to.nodes[n]
	free = node.ready
	if b.choice.gpus > 0 {
		free = l.p.v.StartAfter(l.to.frees[node.first+b.choice.gpus-1])
	}
	if !node.room.hasCPUsAndMemory(&l.p.v.Problem.Tasks[b.job.task], float64(b.choice.nodes)) {
		return max(free, node.last), false
	}
	return free, true
}

// discount returns the part of the price of time that a task doesn't pay, as its owner waits for its deadline
// alone: nothing while that is near, or behind the jobs to come it would be missed.
func (l *listScheduler) discount(j *pendingTask) float64 {
	if !j.unpaced {
		return 0
	}
	left := (j.deadline-l.p.v.Now)/j.shortest - nearDeadline
	return j.pacing.price * unpacedDiscount * min(max(left/nearDeadline, 0), 1)
}

// lateness returns what it costs that a task ends then: later than at default clocks, after
// it is due, after its deadline.
func (l *listScheduler) lateness(j *pendingTask, end float64) float64 {
	s := &l.p.delays
	cost := 0.0
	if !j.unpaced {
		cost = patientPrice * s.usualCost() * max(0, end-j.arrival-j.pacing.slack*(j.defaultEnd-j.arrival))
	}
	mean := s.cost / s.tasks
	if end > j.due {
		cost += j.pacing.late * (j.cost + mean)
	}
	if end > j.deadline {
		cost += missCost * mean // no matter how large the task is
	}
	return cost
}

// idleUntil is until when all nodes of a set have idle GPUs for a task; ok is false where
// they don't.
func (l *listScheduler) idleUntil(b *nodeRequest, set []int) (until float64, ok bool) {
	until = math.Inf(1)
	for _, n := range set {
		node := &l.to.nodes[n]
		here, ok := idleUntil(l.to.gpus[node.first:node.first+node.count], b.choice.gpus)
		if !ok {
			return 0, false
		}
		until = min(until, here)
	}
	return until, true
}

// idleUntil is until when so many GPUs are idle; ok is false where there aren't as many.
func idleUntil(lots []plannedGPU, count int) (until float64, ok bool) {
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

// take books a place: for now, where all that it takes is idle and nothing else is
// planned there before.
func (l *listScheduler) take(j *pendingTask, at *reservation) {
	t, nodes := &l.p.v.Problem.Tasks[j.task], float64(1+len(at.more))
	now := true
	l.parts = l.parts[:0]
	for i := range 1 + len(at.more) {
		part := bookedNode{node: at.node, gpus: at.gpus}
		if i > 0 {
			part.node = at.more[i-1]
		}
		b := &l.to.nodes[part.node]
		lots := l.to.gpus[b.first : b.first+b.count]
		if at.kind != sharedGPU {
			part.gpus = suitableGPUs(lots, at)
			now = now && b.room.hasCPUsAndMemory(t, nodes)
			for s := part.gpus; s != 0; s &= s - 1 {
				u := &lots[s.First()]
				now = now && u.idle && (at.kind == backfilled || math.IsInf(u.until, 1))
			}
		}
		l.parts = append(l.parts, part)
	}
	for i := range l.parts {
		l.book(t, at, &l.parts[i], now)
	}
	l.to.ends = append(l.to.ends, taskEnd{j, at.end})
	if due := min(j.due, j.deadline); at.end > due && l.p.v.Now <= j.latestStart() &&
		!slices.Contains(l.p.overdueFirst, j) {
		l.to.late = append(l.to.late, j)
	}
	if now {
		l.to.start = append(l.to.start, startDecision{
			job: j, choice: at.choice, quote: &at.choice.quotes[at.quote], parts: slices.Clone(l.parts),
		})
	}
}

func (l *listScheduler) book(t *planner.Task, at *reservation, part *bookedNode, now bool) {
	b := &l.to.nodes[part.node]
	lots := l.to.gpus[b.first : b.first+b.count]
	for s := part.gpus; s != 0; s &= s - 1 {
		u := &lots[s.First()]
		if now {
			u.idle = false
		} else if u.idle {
			u.until, b.gaps = min(u.until, at.start), true
		}
		if at.kind != backfilled || math.IsInf(u.until, 1) {
			u.free = max(u.free, at.end)
		}
	}
	l.to.sort(b)
	b.used, b.last = true, max(b.last, at.end)
	if !now {
		return
	}
	nodes := float64(1 + len(at.more))
	b.room.free &^= part.gpus
	b.room.cpus, b.room.mem = b.room.cpus-t.CPUs/nodes, b.room.mem-t.MemGiB/nodes
	if at.kind == sharedGPU {
		b.room.shares = maps.Clone(b.room.shares)
		b.room.addShare(part.gpus.First(), t.Share)
	}
}

// suitableGPUs returns the GPUs for a place: of those that will do, the ones that are of least
// use to others.
func suitableGPUs(lots []plannedGPU, at *reservation) (gpus planner.GPUSet) {
	for range at.choice.gpus {
		best := -1
		for g := range lots {
			u := &lots[g]
			switch {
			case gpus.Has(g):
			case at.kind == backfilled && u.idle && u.until >= at.end &&
				(best < 0 || u.until < lots[best].until):
				best = g
			case at.kind == behindPlanned && u.free <= at.start && (best < 0 || u.free > lots[best].free):
				best = g
			}
		}
		gpus |= 1 << uint(best)
	}
	return gpus
}
