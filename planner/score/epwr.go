package score

import (
	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
)

// ExpectedPWR looks one task ahead: beside the watts that a placement adds, it
// counts by how much the placement raises the watts that the next task of the
// target workload is expected to add on this node. A kind of task that has no
// room on the node afterwards counts nothing: that is a matter of
// fragmentation.
type ExpectedPWR struct {
	workload workloadView
	now      []float64 // watts that each prospect adds before the placement
}

// NewExpectedPWR looks ahead to a target workload.
func NewExpectedPWR(m fleet.Workload) *ExpectedPWR {
	return &ExpectedPWR{workload: newWorkloadView(m)}
}

// Score is minus the watts, of the best GPU that a task can share.
func (e *ExpectedPWR) Score(d *fleet.Demand, n *fleet.Node) (float64, planner.GPUSet) {
	next := e.workload.acceptedBy(n.Kind)
	before := powerStateOf(n)
	e.now = e.now[:0]
	for i := range next {
		watts, _ := before.addedPower(&next[i].d)
		e.now = append(e.now, watts)
	}
	return bestGPU(d, n, func(node fleet.Node) float64 {
		after := powerStateOf(&node)
		rise := after.watts - before.watts
		for i := range next {
			if watts, ok := after.addedPower(&next[i].d); ok {
				rise += float64(next[i].p * (watts - e.now[i]))
			}
		}
		return -rise
	})
}

// Stretch is linear.
func (*ExpectedPWR) Stretch(score, lowest, highest float64) float64 {
	if lowest == highest {
		return 100
	}
	return (score - lowest) / (highest - lowest) * 100
}

// workloadView is the target workload as kinds of nodes see it.
type workloadView struct {
	workload fleet.Workload
	kinds    map[*fleet.Kind][]likelyClass
}

// likelyClass is a class of the target workload that a kind of node accepts.
type likelyClass struct {
	d fleet.Demand
	p float64 // probability that the next task is of it
}

func newWorkloadView(m fleet.Workload) workloadView {
	return workloadView{workload: m, kinds: make(map[*fleet.Kind][]likelyClass)}
}

// acceptedBy returns the part of the target workload that a kind of node accepts.
func (o *workloadView) acceptedBy(k *fleet.Kind) []likelyClass {
	all, known := o.kinds[k]
	if known {
		return all
	}
	for i := range o.workload {
		if c := &o.workload[i]; c.Accepts(k.Model) {
			all = append(all, likelyClass{c.Demand, c.P})
		}
	}
	o.kinds[k] = all
	return all
}

// powerState is what decides the power that a task adds to a node.
type powerState struct {
	n           *fleet.Node
	watts       float64
	idle        int // GPUs
	mostOfABusy int // milli-GPU left on the busy GPU with the most
}

// powerStateOf returns the occupancy of a node as it is.
func powerStateOf(n *fleet.Node) powerState {
	o := powerState{n: n, watts: n.Cost()}
	for _, left := range n.GPU[:n.Kind.GPUs] {
		if left == fleet.WholeGPU {
			o.idle++
		} else {
			o.mostOfABusy = max(o.mostOfABusy, int(left))
		}
	}
	return o
}

// addedPower returns the least power that a task adds, whose model and memory are not
// looked at, and whether there is room for it.
func (o *powerState) addedPower(d *fleet.Demand) (watts float64, ok bool) {
	waking := d.GPUs // idle GPUs that it makes busy
	if d.IsShared() && o.mostOfABusy >= d.Milli {
		waking = 0
	}
	if d.CPU > o.n.CPU || waking > o.idle {
		return 0, false
	}
	k := o.n.Kind
	return k.Power.Cost(k.Power.CPU(k.CPU, o.n.CPU-d.CPU)+k.Power.GPU(k.GPUs, k.GPUs-o.idle+waking)) -
		o.watts, true
}
