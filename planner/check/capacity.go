package check

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// checkNodes checks the intervals of each node and the number of nodes of each
// class. Intervals of one node don't overlap, so that a class never has more
// nodes on than are listed.
func (c *checker) checkNodes() {
	used := make([]int, len(c.p.Cluster.Classes))
	for n := range c.plan.Nodes {
		if c.validNode[n] {
			used[c.plan.Nodes[n].Class]++
		}
		last := 0.0
		for _, on := range c.plan.Nodes[n].On {
			if !(on.From >= last) || !(on.To >= on.From) || math.IsInf(on.To, 1) {
				c.report(Intervals, -1, n, "on from %v s to %v s after %v s", on.From, on.To, last)
			}
			last = on.To
		}
	}
	for class := range used {
		if k := &c.p.Cluster.Classes[class]; k.Count > 0 && used[class] > k.Count {
			c.report(Count, -1, -1, "class %q: %d nodes used, %d exist", k.Name, used[class], k.Count)
		}
	}
}

// checkCapacity plays the starts and ends of each node's tasks and checks that
// GPUs, cores and memory suffice at every moment.
func (c *checker) checkCapacity() {
	begin := make([]int, len(c.plan.Nodes)+1)
	for i, placed := range c.placed {
		if placed {
			for _, part := range c.parts(i) {
				begin[part.Node+1]++
			}
		}
	}
	for n := range c.plan.Nodes {
		begin[n+1] += begin[n]
	}
	tasks := make([]nodeUse, begin[len(c.plan.Nodes)])
	fill := slices.Clone(begin)
	for i, placed := range c.placed {
		if placed {
			nodes := float64(max(c.p.Tasks[i].Options[c.plan.Assignments[i].Option].Nodes, 1))
			for _, part := range c.parts(i) {
				tasks[fill[part.Node]] = nodeUse{
					task: i, gpus: uint64(part.GPUs), cpus: c.p.Tasks[i].CPUs / nodes,
					mem: c.p.Tasks[i].MemGiB / nodes,
				}
				fill[part.Node]++
			}
		}
	}
	u := usage{checker: c}
	for n, known := range c.validNode {
		if known {
			u.node, u.class = n, &c.p.Cluster.Classes[c.plan.Nodes[n].Class]
			u.checkEvents(tasks[begin[n]:begin[n+1]])
		}
	}
}

// nodeUse is what a task holds of one node.
type nodeUse struct {
	task      int
	gpus      uint64
	cpus, mem float64
}

// startOrEnd is a stay's start or end.
type startOrEnd struct {
	at float64
	nodeUse
	ends bool
}

// checkEvents checks one node. Each start is followed by its end, so that nothing is
// in use afterwards.
func (u *usage) checkEvents(stays []nodeUse) {
	moments := u.moments[:0]
	for _, s := range stays {
		a := &u.plan.Assignments[s.task]
		// Ends that are late by rounding don't count; a run that is all
		// rounding takes nothing.
		if end := a.End - rounding(a.End); end > a.Start {
			moments = append(moments, startOrEnd{at: a.Start, nodeUse: s},
				startOrEnd{at: end, nodeUse: s, ends: true})
		}
	}
	slices.SortFunc(moments, func(a, b startOrEnd) int {
		if order := cmp.Compare(a.at, b.at); order != 0 {
			return order
		}
		if a.ends != b.ends {
			if a.ends {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.task, b.task)
	})
	for _, m := range moments {
		if m.ends {
			u.release(&m.nodeUse)
		} else {
			u.allocate(&m.nodeUse)
		}
	}
	u.moments = moments
}

// usage is what the running tasks of a node hold.
type usage struct {
	*checker
	node      int
	class     *planner.NodeClass
	moments   []startOrEnd // buffer
	running   int
	cpus, mem float64
	gpus      [planner.MaxGPUs]gpuUsage
}

// gpuUsage is what the running tasks of a GPU hold.
type gpuUsage struct {
	running int
	whole   bool
	apart   int // those of the running that share it by profile
	shares  float64
	setting dvfsmodel.Scaling // of the one that started last
}

// allocate adds a task that starts.
func (u *usage) allocate(s *nodeUse) {
	task := s.task
	t, a := &u.p.Tasks[task], &u.plan.Assignments[task]
	for left := s.gpus; left != 0; left &= left - 1 {
		u.takeGPU(bits.TrailingZeros64(left), task, t, a)
	}
	u.running++
	u.cpus += s.cpus
	u.mem += s.mem
	if u.class.CPUs > 0 && exceeds(u.cpus, u.class.CPUs) {
		u.report(CPUs, task, u.node, "from %v s on %v cores are in use, the node has %v", a.Start,
			u.cpus, u.class.CPUs)
	}
	if u.class.MemGiB > 0 && exceeds(u.mem, u.class.MemGiB) {
		u.report(Memory, task, u.node, "from %v s on %v GiB are in use, the node has %v", a.Start,
			u.mem, u.class.MemGiB)
	}
}

// takeGPU has a task take its part of a GPU, and blames it where that is taken.
func (u *usage) takeGPU(gpu, task int, t *planner.Task, a *planner.Assignment) {
	g := &u.gpus[gpu]
	whole := t.Share == 1
	switch {
	case g.running == 0:
	case u.apart[task] && g.apart == g.running:
	case whole || g.whole:
		u.report(Overlap, task, u.node, "starts at %v s on GPU %d, which is in use", a.Start, gpu)
	case exceeds(g.shares+t.Share, 1):
		u.report(Shares, task, u.node, "from %v s on GPU %d is shared out to %v", a.Start, gpu,
			g.shares+t.Share)
	}
	if u.apart[task] {
		g.apart++
	} else if g.running > 0 && settingsDiffer(a.Point.Scaling, g.setting) {
		u.report(Settings, task, u.node, "runs at %+v on GPU %d, another at %+v", a.Point.Scaling,
			gpu, g.setting)
	}
	g.running++
	g.shares += t.Share
	g.setting = a.Point.Scaling
	g.whole = whole
}

// release takes a task back that ends. What nothing holds is exactly free
// again, so that rounding doesn't add up over many tasks.
func (u *usage) release(s *nodeUse) {
	for left := s.gpus; left != 0; left &= left - 1 {
		g := &u.gpus[bits.TrailingZeros64(left)]
		g.running--
		if u.apart[s.task] {
			g.apart--
		}
		g.shares -= u.p.Tasks[s.task].Share
		if g.running == 0 {
			g.shares, g.whole = 0, false
		}
	}
	u.running--
	u.cpus -= s.cpus
	u.mem -= s.mem
	if u.running == 0 {
		u.cpus, u.mem = 0, 0
	}
}
