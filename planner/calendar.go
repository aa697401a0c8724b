package planner

import (
	"cmp"
	"math"
	"slices"
)

// nodeState is a node as the engine keeps it.
type nodeState struct {
	class int32
	first int32 // index of its first GPU
	gpus  int32
	on    bool
	since float64 // when it was switched on
	last  float64 // when its last task ends, as predicted
	off   float64 // when its last task ends, as the engine knows
}

// calendar is the nodes of a run, and until when what of them is taken.
type calendar struct {
	nodes []nodeState // every one that was ever on
	free  []float64   // by GPU: when its last task ends
	owner []int32     // by GPU: its node

	onByClass []int     // nodes that are on
	asleep    [][]int32 // by class: nodes that are off and can be woken; of limited and of shared classes

	keepsReservations bool            // a task of the problem binds ([Problem.NeedsMoreThanGPUs])
	reservations      [][]reservation // by node, the last to end first; only when they are kept
}

// reservation is the part of a node that a task holds until it ends.
type reservation struct {
	end, cpus, mem, share float64
	gpus                  GPUSet
}

// ShareSlack lets shares that add up to 1 up to rounding share a GPU.
const ShareSlack = 1e-9

func (c *calendar) grow(nodes int) {
	c.nodes, c.free = slices.Grow(c.nodes, nodes), slices.Grow(c.free, nodes)
	c.owner = slices.Grow(c.owner, nodes)
}

func (c *calendar) add(class, gpus int) {
	node := int32(len(c.nodes))
	c.nodes = append(c.nodes, nodeState{
		class: int32(class), first: int32(len(c.free)), gpus: int32(gpus),
	})
	for range gpus {
		c.free, c.owner = append(c.free, 0), append(c.owner, node)
	}
	if c.keepsReservations {
		c.reservations = append(c.reservations, nil)
	}
}

// switchOn switches a node on that nothing runs on.
func (c *calendar) switchOn(node int, since, ready float64) {
	n := &c.nodes[node]
	n.on, n.since, n.last, n.off = true, since, ready, ready
	if c.keepsReservations {
		c.reservations[node] = c.reservations[node][:0]
	}
	for g := n.first; g < n.first+n.gpus; g++ {
		c.free[g] = ready
	}
	c.onByClass[n.class]++
}

// holdGPUs has a task hold GPUs of a node until its end.
func (c *calendar) holdGPUs(node int, gpus GPUSet, end float64) {
	n := &c.nodes[node]
	for ; gpus != 0; gpus &= gpus - 1 {
		if g := n.first + int32(gpus.First()); end > c.free[g] {
			c.free[g] = end
		}
	}
	if end > n.last {
		n.last = end
	}
}

// holdResources notes the CPUs, the memory and the part of its GPUs that a task holds of a node
// until its end, and forgets what has ended by now.
func (c *calendar) holdResources(node int, t *Task, option int, gpus GPUSet, now, end float64) {
	cpus, mem := t.PerNode(option)
	held := c.reservations[node]
	for len(held) > 0 && held[len(held)-1].end <= now {
		held = held[:len(held)-1]
	}
	at, _ := slices.BinarySearchFunc(held, end, func(r reservation, end float64) int {
		return cmp.Compare(end, r.end)
	})
	c.reservations[node] = slices.Insert(held, at, reservation{
		end: end, cpus: cpus, mem: mem, share: t.Share, gpus: gpus,
	})
}

// release gives back the GPUs of a task that ran shorter or longer than predicted.
func (c *calendar) release(a *Assignment) {
	for part := range a.Parts {
		n := &c.nodes[part.Node]
		for s := part.GPUs; s != 0; s &= s - 1 {
			c.free[n.first+int32(s.First())] = a.End
		}
		n.last = slices.Max(c.free[n.first : n.first+n.gpus])
	}
}

// FirstFree returns the count GPUs of a node that are free first, the lowest ones among
// equals, and from when on all of them are.
func FirstFree(free []float64, count int) (gpus GPUSet, from float64) {
	for range count {
		best := -1
		for g := range free {
			if !gpus.Has(g) && (best < 0 || free[g] < free[best]) {
				best = g
			}
		}
		gpus |= 1 << uint(best)
		from = max(from, free[best])
	}
	return gpus, from
}

// earliestRoom returns from when on a node of the class with these reservations has room for a task that
// fits an empty one: the end of the last of them beside which it hasn't; -Inf: there is none.
func (k *NodeClass) earliestRoom(t *Task, option int, held []reservation) float64 {
	var used [MaxGPUs]float64
	count, free := t.Options[option].PerNode(), k.GPUs
	cpus, mem := t.PerNode(option)
	hasRoom := func(gpu int) bool { return used[gpu]+t.Share <= 1+ShareSlack }
	for i := range held {
		h := &held[i]
		cpus, mem = cpus+h.cpus, mem+h.mem
		for s := h.gpus; s != 0; s &= s - 1 {
			g := s.First()
			had := hasRoom(g)
			if used[g] += h.share; had && !hasRoom(g) {
				free--
			}
		}
		if free < count || (k.CPUs > 0 && cpus > k.CPUs) || (k.MemGiB > 0 && mem > k.MemGiB) {
			return h.end
		}
	}
	return math.Inf(-1)
}

// gpusFreeFrom finds GPUs for the task from start on, if a node of the class with these
// reservations has enough of all. What is reserved counts until it ends, whenever it starts.
func (k *NodeClass) gpusFreeFrom(t *Task, option int, held []reservation, start float64) (GPUSet, bool) {
	var used [MaxGPUs]float64
	count := t.Options[option].PerNode()
	cpus, mem := t.PerNode(option)
	for i := range held {
		h := &held[i]
		if h.end <= start {
			break
		}
		cpus, mem = cpus+h.cpus, mem+h.mem
		for s := h.gpus; s != 0; s &= s - 1 {
			used[s.First()] += h.share
		}
	}
	if (k.CPUs > 0 && cpus > k.CPUs) || (k.MemGiB > 0 && mem > k.MemGiB) {
		return 0, false
	}
	var gpus GPUSet
	for g := 0; g < k.GPUs && gpus.Len() < count; g++ {
		if used[g]+t.Share <= 1+ShareSlack {
			gpus |= 1 << uint(g)
		}
	}
	return gpus, gpus.Len() == count
}
