package fleet

import (
	"fmt"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner"
)

// State is the nodes of a cluster, in the order in which equally good ones are
// taken, and what is allocated on all of them together. Its methods cost the
// same for any number of nodes, but for [NewState].
type State struct {
	nodes     []Node
	capacity  int64 // milli-GPU
	allocated int64 // milli-GPU
	cpus      int64 // milli-vCPU
	usedCPUs  int64 // milli-vCPU
	cpu, gpu  dvfsmodel.Watt
	cost      float64
	asleep    int
}

// NewState returns a cluster of empty nodes of the kinds given, one for each entry.
func NewState(kinds []*Kind) *State {
	s := &State{nodes: make([]Node, 0, len(kinds))}
	for _, k := range kinds {
		s.Add(k)
	}
	return s
}

// Add appends an empty node of a kind. Choosers made before don't know it.
func (s *State) Add(k *Kind) {
	s.nodes = append(s.nodes, NewNode(k))
	s.capacity += int64(k.GPUs) * WholeGPU
	s.cpus += k.CPU
	s.addPower(&s.nodes[len(s.nodes)-1], 1)
}

// addPower adds or takes away a node's power.
func (s *State) addPower(n *Node, sign dvfsmodel.Watt) {
	cpu, gpu := n.Power()
	s.cpu += sign * cpu
	s.gpu += sign * gpu
	s.cost += n.Kind.Power.Cost(sign * (cpu + gpu))
}

// Len returns the number of nodes.
func (s *State) Len() int { return len(s.nodes) }

// Node returns a node's state. The caller must not change it.
func (s *State) Node(node int) *Node { return &s.nodes[node] }

// Capacity returns the milli-GPU of all nodes.
func (s *State) Capacity() int64 { return s.capacity }

// Allocated returns the milli-GPU that running tasks hold.
func (s *State) Allocated() int64 { return s.allocated }

// CPUs returns the milli-vCPU of all nodes, and how much of them running tasks hold.
func (s *State) CPUs() (capacity, allocated int64) { return s.cpus, s.usedCPUs }

// Power returns the estimated overall power consumption (EOPC, PWR+FGD paper,
// equation 3) by CPUs and GPUs. It is exact while the kinds' powers are whole
// watts.
func (s *State) Power() (cpu, gpu dvfsmodel.Watt) { return s.cpu, s.gpu }

// Cost returns the estimated overall power as it counts: the sum of [Node.Cost].
func (s *State) Cost() float64 { return s.cost }

// Place puts a task on GPUs of a node. It is an error, and nothing is changed,
// if the task doesn't fit there.
func (s *State) Place(node int, d *Demand, gpus planner.GPUSet) error {
	n := &s.nodes[node]
	if !n.Fits(d) || gpus.Len() != d.GPUs || gpus&^n.GPUsWithRoom(d.Milli) != 0 {
		return fmt.Errorf("node %d has no room for %+v on GPUs %v", node, *d, gpus.Indexes())
	}
	s.addPower(n, -1)
	s.wake(n)
	n.Place(d, gpus)
	s.addPower(n, 1)
	s.allocated += int64(d.GPUMilli())
	s.usedCPUs += d.CPU
	return nil
}

// Release takes a task away from where it was placed.
func (s *State) Release(node int, d *Demand, gpus planner.GPUSet) {
	n := &s.nodes[node]
	s.addPower(n, -1)
	n.Release(d, gpus)
	s.addPower(n, 1)
	s.allocated -= int64(d.GPUMilli())
	s.usedCPUs -= d.CPU
}

// Sleep switches an empty node off; Place wakes it.
func (s *State) Sleep(node int) {
	n := &s.nodes[node]
	if !n.IsEmpty() {
		return
	}
	s.addPower(n, -1)
	if !n.Asleep {
		n.Asleep = true
		s.asleep++
	}
	s.addPower(n, 1)
}

// Wake switches a node on.
func (s *State) Wake(node int) {
	n := &s.nodes[node]
	s.addPower(n, -1)
	s.wake(n)
	s.addPower(n, 1)
}

// wake is Wake but for the power.
func (s *State) wake(n *Node) {
	if n.Asleep {
		n.Asleep = false
		s.asleep--
	}
}

// SleepingNodes returns the number of nodes that sleep.
func (s *State) SleepingNodes() int { return s.asleep }

// FragmentedGPUs is F of the whole cluster, in GPUs (PWR+FGD paper, equation 4):
// the sum over nodes in order. It takes time linear in the nodes.
func (s *State) FragmentedGPUs(f *Fragmentation) float64 {
	sum := 0.0
	for i := range s.nodes {
		sum += f.OfNode(&s.nodes[i])
	}
	return sum / WholeGPU
}
