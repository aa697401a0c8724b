package improve

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// nodeClock is when what a node has is free while its list is played.
type nodeClock struct {
	free []float64 // by GPU, ascending, seconds
	last float64   // start of the last job, where starts keep the order of the list
	held []holding // of jobs that may still run then
	// Where jobs arrive over time: when the last of those so far ends, below 0 before the first; and what
	// sleeping in the gaps between them, and before the first, costs less than being on.
	until, slept float64
}

// holding is what a job has of a node until it ends.
type holding struct {
	need
	end float64
}

// need is cores and memory of a node, in GiB.
type need struct{ cpus, mem float64 }

// capacityOf returns what a node of a class has; +Inf where it doesn't run out.
func capacityOf(k *planner.NodeClass) need {
	has := need{k.CPUs, k.MemGiB}
	if has.cpus == 0 {
		has.cpus = math.Inf(1)
	}
	if has.mem == 0 {
		has.mem = math.Inf(1)
	}
	return has
}

// needsOf returns what tasks need of each of their nodes, by task and class.
func needsOf(p *planner.Problem) []need {
	needs := make([]need, 0, len(p.Tasks)*len(p.Cluster.Classes))
	for i := range p.Tasks {
		for class := range p.Cluster.Classes {
			var n need
			if o := p.Tasks[i].Option(p.Cluster.Classes[class].Model); o >= 0 {
				n.cpus, n.mem = p.Tasks[i].PerNode(o)
			}
			needs = append(needs, n)
		}
	}
	return needs
}

// need returns what a job needs of a node of a class.
func (l *listSchedule) need(i int32, class int) *need { return &l.needs[int(i)*len(l.classes)+class] }

// restart makes the clock that of a node before its list.
func (t *nodeClock) restart(c *listClass, n *nodeList) {
	t.last, t.held, t.until, t.slept = 0, t.held[:0], -1, 0
	if n.begin != nil {
		t.held = append(t.held, n.runs.held...)
		copy(t.free, n.begin)
		return
	}
	for g := range t.free {
		t.free[g] = c.delay
	}
}

// earliest returns when a node of a class could start a job next, on so many GPUs. It, hold and
// occupy are short so that the compiler puts them in line: a search plays lists millions of times.
func (l *listSchedule) earliest(t *nodeClock, class int, i, gpus int32) float64 {
	if !l.inOrder {
		return t.free[gpus-1]
	}
	return l.earliestInOrder(t, class, i, gpus)
}

// earliestInOrder is earliest where cores, memory or arrivals count, too. Jobs start in the order of the
// list, so that what is free then stays free.
func (l *listSchedule) earliestInOrder(t *nodeClock, class int, i, gpus int32) float64 {
	from := max(t.free[gpus-1], t.last, l.p.Tasks[i].Arrival)
	if l.needs == nil {
		return from
	}
	n, has := l.need(i, class), &l.classes[class].has
	for {
		used, next := *n, math.Inf(1)
		for k := range t.held {
			if h := &t.held[k]; h.end > from {
				used.cpus, used.mem = used.cpus+h.cpus, used.mem+h.mem
				next = min(next, h.end)
			}
		}
		if used.cpus <= has.cpus && used.mem <= has.mem || math.IsInf(next, 1) {
			return from
		}
		from = next
	}
}

// sleepGain returns what sleeping until a start costs less than being on, where it does: since the node ran
// something last, or since 0.
func (c *listClass) sleepGain(start, until float64) float64 {
	gap := start - c.delay - max(0, until)
	if until < 0 {
		return c.onCost() * gap
	}
	if gain := c.onCost()*gap - c.used; gain > c.onCost()*c.delay {
		return gain
	}
	return 0
}

// occupy takes the GPUs that are free first until a time. Their times stay in order.
func (t *nodeClock) occupy(gpus int32, end float64) {
	free, at := t.free, int(gpus)
	for ; at < len(free) && free[at] < end; at++ {
		free[at-int(gpus)] = free[at]
	}
	for g := at - int(gpus); g < at; g++ {
		free[g] = end
	}
}

// hold takes the cores and the memory that a job needs from its start until its end.
func (l *listSchedule) hold(t *nodeClock, class int, i int32, start, end float64) {
	if l.inOrder {
		l.holdInOrder(t, class, i, start, end)
	}
}

func (l *listSchedule) holdInOrder(t *nodeClock, class int, i int32, start, end float64) {
	t.last = start
	if l.arrive {
		t.slept += l.classes[class].sleepGain(start, t.until)
		t.until = max(t.until, end)
	}
	if l.needs == nil {
		return
	}
	t.held = slices.DeleteFunc(t.held, func(h holding) bool { return h.end <= start })
	t.held = append(t.held, holding{*l.need(i, class), end})
}
