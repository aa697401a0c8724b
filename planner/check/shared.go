package check

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// checkShared checks what the plan says of GPUs that tasks share: who may be
// there, that clocks cover exactly the times when something runs, that each task
// ends when its work is done, and that the tasks' energies add up to their
// GPUs'.
func (c *checker) checkShared() {
	c.apart = make([]bool, len(c.p.Tasks))
	if c.plan.Shared == nil {
		return
	}
	last := -1
	for _, i := range c.plan.Shared.Tasks {
		if i <= last || i >= len(c.placed) || !c.placed[i] {
			c.report(Sharing, -1, -1, "job %d shares a GPU: not placed, out of order or twice", i)
			continue
		}
		last = i
		node := int(c.plan.Assignments[i].Node)
		if k := &c.p.Cluster.Classes[c.plan.Nodes[node].Class]; c.p.Cluster.Sharing == nil ||
			len(k.SharedGB) != k.GPUs || c.p.Tasks[i].Profile == nil {
			c.report(Sharing, i, node, "has no profile, or the node's GPUs may not be shared")
			continue
		}
		c.apart[i] = true
	}
	spells, done := c.clockIntervalsByNode(), make([]float64, len(c.p.Tasks))
	for n, known := range c.validNode {
		if known {
			c.checkShares(n, spells[n], done)
		}
	}
	c.checkSlowed()
}

// clockIntervalsByNode sorts out spells that make no sense.
func (c *checker) clockIntervalsByNode() [][]planner.ClockInterval {
	byNode := make([][]planner.ClockInterval, len(c.plan.Nodes))
	last := planner.ClockInterval{Node: -1}
	for _, s := range c.plan.Shared.ClockIntervals {
		if s.Node < 0 || s.Node >= len(c.validNode) || !c.validNode[s.Node] || c.p.Cluster.Sharing == nil {
			c.report(Shape, -1, -1, "a clock of node %d, which doesn't exist or isn't shared", s.Node)
			continue
		}
		switch k := &c.p.Cluster.Classes[c.plan.Nodes[s.Node].Class]; {
		case s.GPU < 0 || s.GPU >= len(k.SharedGB):
			c.report(Sharing, -1, s.Node, "a clock of GPU %d of %d", s.GPU, len(k.SharedGB))
			continue
		case !(s.To > s.From) || math.IsInf(s.To, 0):
			c.report(Sharing, -1, s.Node, "GPU %d has a clock from %v s to %v s", s.GPU, s.From, s.To)
			continue
		case !slices.Contains(c.p.Cluster.Sharing.Physics.LevelsMHz, s.MHz):
			c.report(Clocks, -1, s.Node, "GPU %d runs at %v MHz, which can't be set", s.GPU, s.MHz)
			continue
		}
		if order := cmp.Or(cmp.Compare(last.Node, s.Node), cmp.Compare(last.GPU, s.GPU)); order > 0 ||
			(order == 0 && s.From < last.To) {
			c.report(Sharing, -1, s.Node, "clocks of GPU %d out of order or overlapping at %v s",
				s.GPU, s.From)
		}
		last = s
		byNode[s.Node] = append(byNode[s.Node], s)
	}
	return byNode
}

// sharedGPUReplay plays what happens on the shared GPUs of a node.
type sharedGPUReplay struct {
	*checker
	node  int
	gpus  []replayedGPU
	onGPU []int     // tasks that run
	done  []float64 // by task: its work, seconds alone at the highest frequency
	parts float64   // energy of the tasks, joules
	total float64   // energy of the GPUs
	used  float64   // seconds of GPUs with tasks
	clock float64   // seconds of GPUs with clocks
}

// replayedGPU is a GPU at a moment.
type replayedGPU struct {
	mhz   dvfsmodel.MHz
	gb    float64
	load  []float64
	tasks int
	of    float64 // GB that it has
}

// event is a change on a node: of a clock, if task is -1.
type event struct {
	at   float64
	ends bool
	task int
	gpu  int
	mhz  dvfsmodel.MHz
}

// checkShares plays one node.
func (c *checker) checkShares(n int, spells []planner.ClockInterval, done []float64) {
	var events []event
	h := sharedGPUReplay{checker: c, node: n, done: done}
	for _, s := range spells {
		events = append(events, event{at: s.From, task: -1, gpu: s.GPU, mhz: s.MHz},
			event{at: s.To, ends: true, task: -1, gpu: s.GPU})
		h.total += (c.p.Cluster.Sharing.Physics.BaseW + c.p.Cluster.Sharing.Physics.WPerMHz*float64(s.MHz)) *
			(s.To - s.From)
	}
	var tasks []int
	for i, apart := range c.apart {
		if a := &c.plan.Assignments[i]; apart && int(a.Node) == n {
			tasks = append(tasks, i)
			events = append(events, event{at: a.Start, task: i}, event{at: a.End, task: i, ends: true})
			h.parts += float64(a.Point.Energy) * float64(bits.OnesCount64(uint64(a.GPUs)))
		}
	}
	if len(events) == 0 {
		return
	}
	slices.SortStableFunc(events, func(a, b event) int {
		ends := map[bool]int{true: 0, false: 1}
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(ends[a.ends], ends[b.ends]))
	})
	h.play(events)
	for _, i := range tasks {
		t, a := &c.p.Tasks[i], &c.plan.Assignments[i]
		if alone := t.Options[a.Option].Response.Default().Time; math.Abs(h.done[i]-alone) > 1e-8*
			max(1, alone, math.Abs(a.End)/1000) {
			c.report(Rate, i, n, "has done %v s of work when it ends, of %v s", h.done[i], alone)
		}
	}
	if differs(h.parts, h.total, max(1, h.total)) {
		c.report(Model, -1, n, "jobs that share take %v J, their GPUs %v J", h.parts, h.total)
	}
	if differs(h.used, h.clock, max(1, h.used, events[len(events)-1].at)) {
		c.report(Sharing, -1, n, "GPUs have clocks for %v s and jobs for %v s", h.clock, h.used)
	}
}

// play goes from event to event.
func (h *sharedGPUReplay) play(events []event) {
	k := &h.p.Cluster.Classes[h.plan.Nodes[h.node].Class]
	h.gpus = make([]replayedGPU, k.GPUs)
	for gpu, gb := range k.SharedGB[:min(len(k.SharedGB), k.GPUs)] {
		h.gpus[gpu].of = gb
	}
	for i, e := range events {
		if i > 0 && e.at > events[i-1].at {
			h.advance(e.at - events[i-1].at)
		}
		switch {
		case e.task < 0:
			h.gpus[e.gpu].mhz = e.mhz
		case e.ends:
			h.onGPU = slices.DeleteFunc(h.onGPU, func(task int) bool { return task == e.task })
			h.addOrRemove(e.task, -1, k)
		default:
			h.onGPU = append(h.onGPU, e.task)
			h.addOrRemove(e.task, 1, k)
		}
	}
}

// addOrRemove adds a task to its GPUs or takes it off.
func (h *sharedGPUReplay) addOrRemove(task int, sign float64, k *planner.NodeClass) {
	f := h.p.Tasks[task].Profile
	for s := uint64(h.plan.Assignments[task].GPUs); s != 0; s &= s - 1 {
		gpu := bits.TrailingZeros64(s)
		if gpu >= len(h.gpus) {
			continue // blamed elsewhere
		}
		g := &h.gpus[gpu]
		if g.load == nil {
			g.load = make([]float64, len(f.UtilPct))
		}
		g.gb += sign * f.MemGB
		g.tasks += int(sign)
		for slot := range g.load {
			g.load[slot] += sign * f.UtilPct[slot]
		}
		if sign > 0 && exceeds(g.gb, k.SharedGB[gpu]) {
			h.report(Memory, task, h.node, "%v GB are in use on GPU %d, which has %v", g.gb, gpu,
				k.SharedGB[gpu])
		}
	}
}

// advance lets time go by.
func (h *sharedGPUReplay) advance(seconds float64) {
	ph := &h.p.Cluster.Sharing.Physics
	slowdown := make([]float64, len(h.gpus))
	for i := range h.gpus {
		g := &h.gpus[i]
		if g.mhz > 0 {
			h.clock += seconds
		}
		if g.tasks > 0 {
			h.used += seconds
			slowdown[i] = h.contention(g) * math.Pow(float64(slices.Max(ph.LevelsMHz)/g.mhz), ph.Beta)
		}
	}
	for _, task := range h.onGPU {
		slowest := 0.0
		for s := uint64(h.plan.Assignments[task].GPUs); s != 0; s &= s - 1 {
			if gpu := bits.TrailingZeros64(s); gpu < len(slowdown) {
				slowest = max(slowest, slowdown[gpu])
			}
		}
		h.done[task] += seconds / slowest
	}
}

// contention returns how many times as long as alone the tasks of a GPU take
// together: what exceeds each slot, and what the problem's curve says beside.
func (h *sharedGPUReplay) contention(g *replayedGPU) float64 {
	curve, sum := h.p.Cluster.Sharing.Contention, 0.0
	for _, u := range g.load {
		exceeds := max(100, u) / 100
		if curve != nil {
			exceeds = math.Pow(exceeds, curve.Exponent)
		}
		sum += exceeds
	}
	slower := sum / float64(len(g.load))
	if curve != nil && g.tasks > 1 {
		slower *= 1 + curve.ByTask*float64(g.tasks-1) + curve.ByMemory*min(1, g.gb/g.of)
	}
	return slower
}

// checkSlowed checks that exactly those tasks are listed as slowed that take
// longer than they tolerate.
func (c *checker) checkSlowed() {
	listed := make([]bool, len(c.p.Tasks))
	last := -1
	for _, i := range c.plan.Shared.Slowed {
		if i <= last || i >= len(c.apart) || !c.apart[i] {
			c.report(Slowed, -1, -1, "slowed job %d: doesn't share, out of order or twice", i)
			continue
		}
		last, listed[i] = i, true
	}
	for i, apart := range c.apart {
		if !apart {
			continue
		}
		t, a := &c.p.Tasks[i], &c.plan.Assignments[i]
		takes := a.End - a.Start
		most := min(t.Profile.Kappa*t.Options[a.Option].Response.Default().Time, t.Limit)
		const slack = 2e-7 // what rules of consolidation allow for
		switch {
		case listed[i] && takes < most:
			c.report(Slowed, i, int(a.Node), "listed as slowed, but takes %v s of %v s", takes, most)
		case !listed[i] && takes > most*(1+slack)*(1+tolerance):
			c.report(Slowed, i, int(a.Node), "takes %v s, tolerates %v s, and isn't listed as slowed",
				takes, most)
		}
	}
}
