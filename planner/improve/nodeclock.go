package improve

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
)

// nodeClock is when what a node has is free while its list is played.
type nodeClock struct {
	free  []float64 // by GPU, ascending, seconds
	last  float64   // start of the last job, where starts keep the order of the list
	held  []holding // of jobs that may still run then
	parts []gpuPart // likewise
	// Where jobs arrive over time: when the last of those so far ends, below 0 before the first; and what
	// sleeping in the gaps between them, and before the first, costs less than being on.
	until, slept float64
}

// holding is what a job has of a node until it ends.
type holding struct {
	hostNeed
	end float64
}

// gpuPart is what a job has of a GPU that others may be on until it ends.
type gpuPart struct {
	gpu        int32 // tells such GPUs of a node apart
	share, end float64
}

// hostNeed is cores and memory of a node, in GiB.
type hostNeed struct{ cpus, mem float64 }

// capacityOf returns what a node of a class has; +Inf where it doesn't run out.
func capacityOf(k *planner.NodeClass) hostNeed {
	has := hostNeed{k.CPUs, k.MemGiB}
	if has.cpus == 0 {
		has.cpus = math.Inf(1)
	}
	if has.mem == 0 {
		has.mem = math.Inf(1)
	}
	return has
}

// needsOf returns what tasks need of each of their nodes, by task and class.
func needsOf(p *planner.Problem) []hostNeed {
	needs := make([]hostNeed, 0, len(p.Tasks)*len(p.Cluster.Classes))
	for i := range p.Tasks {
		for class := range p.Cluster.Classes {
			var n hostNeed
			if o := p.Tasks[i].Option(p.Cluster.Classes[class].Model); o >= 0 {
				n.cpus, n.mem = p.Tasks[i].PerNode(o)
			}
			needs = append(needs, n)
		}
	}
	return needs
}

// need returns what a job needs of a node of a class.
func (l *listSchedule) need(i int32, class int) *hostNeed {
	return &l.needs[int(i)*len(l.classes)+class]
}

// restart makes the clock that of a node before its list.
func (t *nodeClock) restart(c *listClass, n *nodeList) {
	t.last, t.held, t.parts, t.until, t.slept = 0, t.held[:0], t.parts[:0], -1, 0
	if n.begin != nil {
		t.held, t.parts = append(t.held, n.runs.held...), append(t.parts, n.runs.parts...)
		copy(t.free, n.begin)
		return
	}
	for g := range t.free {
		t.free[g] = c.delay
	}
}

// earliest returns when a node of a class could start a job next, on so many GPUs. It and
// occupy are short so that the compiler puts them in line: a search plays lists millions of times.
func (l *listSchedule) earliest(t *nodeClock, class int, i, gpus int32) float64 {
	if !l.inOrder {
		return t.free[gpus-1]
	}
	return l.earliestInOrder(t, class, i, gpus)
}

// earliestInOrder is earliest where cores, memory, shares or arrivals count, too. Jobs start in the order of
// the list, so that what is free then stays free.
func (l *listSchedule) earliestInOrder(t *nodeClock, class int, i, gpus int32) float64 {
	task := &l.p.Tasks[i]
	from := max(t.last, task.Arrival)
	if task.Share < 1 {
		from = t.earliestPart(task.Share, from)
	} else {
		from = max(from, t.free[gpus-1])
	}
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
		return c.onCostRate() * gap
	}
	if gain := c.onCostRate()*gap - c.used; gain > c.onCostRate()*c.delay {
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

// start has a job take its GPUs, cores and memory from its start until its end.
func (l *listSchedule) start(t *nodeClock, class int, i, gpus int32, start, end float64) {
	if l.inOrder {
		l.holdInOrder(t, class, i, start, end)
		if share := l.p.Tasks[i].Share; share < 1 {
			t.occupyPart(share, start, end)
			return
		}
	}
	t.occupy(gpus, end)
}

// earliestPart returns when a share of a GPU is free, from a time on: of one that others are on, or else of
// the one that is free first.
func (t *nodeClock) earliestPart(share, from float64) float64 {
	best := max(from, t.free[0])
	for k := range t.parts {
		p := &t.parts[k]
		if p.end <= from { // who came after it may have all of the GPU
			continue
		}
		for _, at := range [...]float64{from, p.end} {
			if at < best && t.gpuUse(p.gpu, at)+share <= 1+planner.ShareSlack {
				best = at
			}
		}
	}
	return best
}

// gpuUse returns how much of a GPU is taken by those that are on it after a time.
func (t *nodeClock) gpuUse(gpu int32, after float64) (share float64) {
	for k := range t.parts {
		if p := &t.parts[k]; p.gpu == gpu && p.end > after {
			share += p.share
		}
	}
	return share
}

// fullest returns the GPU with others on it that has room for a share from a time on, of several the one with
// the least room; -1: none has. Nothing that ended by then is in parts.
func (t *nodeClock) fullest(share, from float64) (gpu int32) {
	gpu, most := -1, 0.0
	for k := range t.parts {
		p := &t.parts[k]
		if used := t.gpuUse(p.gpu, from); used > most && used+share <= 1+planner.ShareSlack {
			gpu, most = p.gpu, used
		}
	}
	return gpu
}

// occupyPart takes a share of a GPU that others are on, of the fullest with room, or else of the one that is
// free first.
func (t *nodeClock) occupyPart(share, start, end float64) {
	t.parts = slices.DeleteFunc(t.parts, func(p gpuPart) bool { return p.end <= start })
	gpu := t.fullest(share, start)
	if gpu < 0 {
		t.occupy(1, end)
		for _, p := range t.parts {
			gpu = max(gpu, p.gpu)
		}
		t.parts = append(t.parts, gpuPart{gpu + 1, share, end})
		return
	}
	until := 0.0
	for _, p := range t.parts {
		if p.gpu == gpu {
			until = max(until, p.end)
		}
	}
	t.parts = append(t.parts, gpuPart{gpu, share, end})
	if end > until {
		at := slices.Index(t.free, until)
		for ; at+1 < len(t.free) && t.free[at+1] < end; at++ {
			t.free[at] = t.free[at+1]
		}
		t.free[at] = end
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
