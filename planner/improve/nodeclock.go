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

// capacityOf is what a node of a class has; +Inf where it doesn't run out.
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

// needsOf is what tasks need of each of their nodes, by task and class.
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

// need is what a job needs of a node of a class.
func (l *listSchedule) need(i int32, class int) *need { return &l.needs[int(i)*len(l.classes)+class] }

// restart makes the clock that of a node before its list.
func (t *nodeClock) restart(c *listClass, n *nodeList) {
	t.last, t.held = 0, t.held[:0]
	if n.begin != nil {
		copy(t.free, n.begin)
		return
	}
	for g := range t.free {
		t.free[g] = c.delay
	}
}

// earliestRoom is the first moment, not before from, at which a node has the cores and the
// memory that a job needs. Jobs that need some start in the order of the list, so that
// what is free then stays free.
func (t *nodeClock) earliestRoom(from float64, n, has *need) float64 {
	from = max(from, t.last)
	for {
		used, next := *n, math.Inf(1)
		for i := range t.held {
			if h := &t.held[i]; h.end > from {
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

// runWhenRoom runs a job that needs cores or memory as soon as there is room, and says when
// that is.
func (t *nodeClock) runWhenRoom(from float64, n, has *need, time float64) (start float64) {
	from = t.earliestRoom(from, n, has)
	t.allocate(from, n, from+time)
	return from
}

// allocate takes what a job needs from its start until its end.
func (t *nodeClock) allocate(start float64, n *need, end float64) {
	t.last = start
	t.held = slices.DeleteFunc(t.held, func(h holding) bool { return h.end <= start })
	t.held = append(t.held, holding{*n, end})
}
