package improve

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// nodeClock is when what a node has is free while its list is played.
type nodeClock struct {
	free []float64 // by GPU, ascending, seconds
	last float64   // start of the last job, where cores or memory count
	held []holding // of jobs that may still run then
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
	t.last, t.held = 0, t.held[:0]
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
	if l.needs == nil {
		return t.free[gpus-1]
	}
	return l.earliestRoom(t, class, i, gpus)
}

// earliestRoom is earliest where cores and memory count, too. Jobs start in the order of the list, so
// that what is free then stays free.
func (l *listSchedule) earliestRoom(t *nodeClock, class int, i, gpus int32) float64 {
	n, has := l.need(i, class), &l.classes[class].has
	from := max(t.free[gpus-1], t.last)
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
	if l.needs != nil {
		l.holdRoom(t, class, i, start, end)
	}
}

func (l *listSchedule) holdRoom(t *nodeClock, class int, i int32, start, end float64) {
	t.last = start
	t.held = slices.DeleteFunc(t.held, func(h holding) bool { return h.end <= start })
	t.held = append(t.held, holding{*l.need(i, class), end})
}
