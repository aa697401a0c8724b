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
	classes fleet.Workload
	outlook map[*fleet.Kind][]prospect
	now     []float64 // watts that each prospect adds before the placement
}

// prospect is a class of the target workload that a kind of node accepts.
type prospect struct {
	d fleet.Demand
	p float64
}

// NewExpectedPWR looks ahead to a target workload.
func NewExpectedPWR(m fleet.Workload) *ExpectedPWR {
	return &ExpectedPWR{classes: m, outlook: make(map[*fleet.Kind][]prospect)}
}

// Score is minus the watts, of the best GPU that a task can share.
func (e *ExpectedPWR) Score(d *fleet.Demand, n *fleet.Node) (float64, planner.GPUSet) {
	next := e.prospects(n.Kind)
	before := occupancyOf(n)
	e.now = e.now[:0]
	for i := range next {
		watts, _ := before.added(&next[i].d)
		e.now = append(e.now, watts)
	}
	return bestGPU(d, n, func(node fleet.Node) float64 {
		after := occupancyOf(&node)
		rise := after.watts - before.watts
		for i := range next {
			if watts, ok := after.added(&next[i].d); ok {
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

// prospects is the part of the target workload that a kind of node accepts.
func (e *ExpectedPWR) prospects(k *fleet.Kind) []prospect {
	all, known := e.outlook[k]
	if known {
		return all
	}
	for i := range e.classes {
		if c := &e.classes[i]; c.Accepts(k.Model) {
			all = append(all, prospect{c.Demand, c.P})
		}
	}
	e.outlook[k] = all
	return all
}

// occupancy is what decides the power that a task adds to a node.
type occupancy struct {
	n           *fleet.Node
	watts       float64
	idle        int // GPUs
	mostOfABusy int // milli-GPU left on the busy GPU with the most
}

func occupancyOf(n *fleet.Node) occupancy {
	o := occupancy{n: n, watts: watts(n)}
	for _, left := range n.GPU[:n.Kind.GPUs] {
		if left == fleet.Whole {
			o.idle++
		} else {
			o.mostOfABusy = max(o.mostOfABusy, int(left))
		}
	}
	return o
}

// added is the least power that a task adds, whose model and memory are not
// looked at, and whether there is room for it.
func (o *occupancy) added(d *fleet.Demand) (watts float64, ok bool) {
	waking := d.GPUs // idle GPUs that it makes busy
	if d.Shared() && o.mostOfABusy >= d.Milli {
		waking = 0
	}
	if d.CPU > o.n.CPU || waking > o.idle {
		return 0, false
	}
	k := o.n.Kind
	return float64(k.Power.CPU(k.CPU, o.n.CPU-d.CPU)+k.Power.GPU(k.GPUs, k.GPUs-o.idle+waking)) - o.watts, true
}
