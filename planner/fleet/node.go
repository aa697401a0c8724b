package fleet

import (
	"math/bits"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// MaxGPUs is the most GPUs of a node here: a node's state is a small value.
const MaxGPUs = 16

// Node is what is left of one node. A Node is a value: a copy is a
// hypothetical node that can be tried out.
type Node struct {
	Kind   *Kind
	CPU    int64           // milli-vCPU left
	Mem    int64           // MiB left
	GPU    [MaxGPUs]uint16 // milli-GPU left, by GPU
	Asleep bool            // empty and switched off
	tasks  [MaxGPUs + 1]uint16
}

// NewNode returns an empty node of a kind, awake.
func NewNode(k *Kind) Node {
	n := Node{Kind: k, CPU: k.CPU, Mem: k.Mem}
	for g := range k.GPUs {
		n.GPU[g] = WholeGPU
	}
	return n
}

// FreeMilli returns the milli-GPU left on all its GPUs.
func (n *Node) FreeMilli() int {
	left := 0
	for _, g := range n.GPU[:n.Kind.GPUs] {
		left += int(g)
	}
	return left
}

// BusyGPUs returns the number of GPUs with anything allocated on them.
func (n *Node) BusyGPUs() int {
	busy := 0
	for _, g := range n.GPU[:n.Kind.GPUs] {
		if g < WholeGPU {
			busy++
		}
	}
	return busy
}

// IsEmpty reports whether no task runs on the node. One that asks for nothing at
// all leaves no trace.
func (n *Node) IsEmpty() bool {
	return n.CPU == n.Kind.CPU && n.Mem == n.Kind.Mem && n.BusyGPUs() == 0
}

// GPUsWithRoom returns the set of GPUs that have milli left.
func (n *Node) GPUsWithRoom(milli int) planner.GPUSet {
	var set planner.GPUSet
	for g, left := range n.GPU[:n.Kind.GPUs] {
		if int(left) >= milli {
			set |= 1 << uint(g)
		}
	}
	return set
}

// Fits reports whether the node has enough of everything for the task (PWR+FGD
// paper, equation 6, conditions 1 to 5).
func (n *Node) Fits(d *Demand) bool {
	if d.CPU > n.CPU || d.Mem > n.Mem || !d.Accepts(n.Kind.Model) {
		return false
	}
	return d.GPUs == 0 || n.GPUsWithRoom(d.Milli).Len() >= d.GPUs
}

// WholeGPUs returns the set of the count lowest idle GPUs: those that a task of
// whole GPUs gets.
func (n *Node) WholeGPUs(count int) planner.GPUSet {
	idle := n.GPUsWithRoom(WholeGPU)
	set := idle
	for range idle.Len() - count {
		set &^= 1 << uint(bits.Len64(uint64(set))-1)
	}
	return set
}

// TightestGPU returns the GPU with the least left that has milli, the lowest one among
// equals; the empty set when none has.
func (n *Node) TightestGPU(milli int) planner.GPUSet {
	best := -1
	for g, left := range n.GPU[:n.Kind.GPUs] {
		if int(left) >= milli && (best < 0 || left < n.GPU[best]) {
			best = g
		}
	}
	if best < 0 {
		return 0
	}
	return 1 << uint(best)
}

// Place takes what the task asks for from the node and the GPUs, and wakes the
// node. The caller has made sure that it fits there.
func (n *Node) Place(d *Demand, gpus planner.GPUSet) {
	n.CPU -= d.CPU
	n.Mem -= d.Mem
	n.Asleep = false
	for s := gpus; s != 0; s &= s - 1 {
		n.GPU[s.First()] -= uint16(d.Milli)
	}
	if d.GPUs > 0 {
		n.tasks[taskKind(d)]++
	}
}

// Release gives back what Place took.
func (n *Node) Release(d *Demand, gpus planner.GPUSet) {
	n.CPU += d.CPU
	n.Mem += d.Mem
	for s := gpus; s != 0; s &= s - 1 {
		n.GPU[s.First()] += uint16(d.Milli)
	}
	if d.GPUs > 0 {
		n.tasks[taskKind(d)]--
	}
}

// taskKind sorts GPU tasks: 0 for those that share a GPU, else how many whole
// GPUs they take.
func taskKind(d *Demand) int {
	if d.IsShared() {
		return 0
	}
	return d.GPUs
}

// TaskMix is how the GPU tasks of a node compare with another task: shared
// ones, or those of as many whole GPUs, are of the same kind.
type TaskMix uint8

// The node runs no GPU task, only tasks of the same kind, some of them, or
// only others.
const (
	Alone TaskMix = iota
	OnlySame
	SomeSame
	OnlyOthers
)

// TaskMix tells what kinds of GPU tasks run on the node beside the task.
func (n *Node) TaskMix(d *Demand) TaskMix {
	same := n.tasks[taskKind(d)] > 0
	others := false
	for kind, count := range n.tasks[:n.Kind.GPUs+1] {
		others = others || (kind != taskKind(d) && count > 0)
	}
	switch {
	case same && others:
		return SomeSame
	case same:
		return OnlySame
	case others:
		return OnlyOthers
	}
	return Alone
}

// TaskKinds returns the kinds of GPU tasks that run on the node, all that
// [Node.TaskMix] depends on: bit 0 for tasks that share a GPU, bit k for those
// of k whole ones.
func (n *Node) TaskKinds() uint32 {
	kinds := uint32(0)
	for kind, count := range n.tasks[:n.Kind.GPUs+1] {
		if count > 0 {
			kinds |= 1 << uint(kind)
		}
	}
	return kinds
}

// Power returns the node's power by CPUs and GPUs. A sleeping node's is counted
// with the CPUs.
func (n *Node) Power() (cpu, gpu dvfsmodel.Watt) {
	p := &n.Kind.Power
	if n.Asleep {
		return p.Sleep, 0
	}
	return p.CPU(n.Kind.CPU, n.CPU), p.GPU(n.Kind.GPUs, n.BusyGPUs())
}

// Cost returns the node's power as it counts when nodes are compared: in watts, by
// the weight of its kind.
func (n *Node) Cost() float64 {
	cpu, gpu := n.Power()
	return n.Kind.Power.Cost(cpu + gpu)
}
