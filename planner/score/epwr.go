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
	outlook outlook
	now     []float64 // watts that each prospect adds before the placement
}

// NewExpectedPWR looks ahead to a target workload.
func NewExpectedPWR(m fleet.Workload) *ExpectedPWR {
	return &ExpectedPWR{outlook: newOutlook(m)}
}

// Score is minus the watts, of the best GPU that a task can share.
func (e *ExpectedPWR) Score(d *fleet.Demand, n *fleet.Node) (float64, planner.GPUSet) {
	next := e.outlook.of(n.Kind)
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

// outlook is the target workload as kinds of nodes see it.
type outlook struct {
	workload fleet.Workload
	kinds    map[*fleet.Kind][]prospect
}

// prospect is a class of the target workload that a kind of node accepts.
type prospect struct {
	d fleet.Demand
	p float64 // probability that the next task is of it
}

func newOutlook(m fleet.Workload) outlook {
	return outlook{workload: m, kinds: make(map[*fleet.Kind][]prospect)}
}

// of is the part of the target workload that a kind of node accepts.
func (o *outlook) of(k *fleet.Kind) []prospect {
	all, known := o.kinds[k]
	if known {
		return all
	}
	for i := range o.workload {
		if c := &o.workload[i]; c.Accepts(k.Model) {
			all = append(all, prospect{c.Demand, c.P})
		}
	}
	o.kinds[k] = all
	return all
}

// occupancy is what decides the power that a task adds to a node.
type occupancy struct {
	n           *fleet.Node
	watts       float64
	idle        int // GPUs
	mostOfABusy int // milli-GPU left on the busy GPU with the most
}

// occupancyOf is the occupancy of a node as it is.
func occupancyOf(n *fleet.Node) occupancy {
	o := occupancy{n: n, watts: watts(n)}
	for _, left := range n.GPU[:n.Kind.GPUs] {
		if left == fleet.WholeGPU {
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
	if d.IsShared() && o.mostOfABusy >= d.Milli {
		waking = 0
	}
	if d.CPU > o.n.CPU || waking > o.idle {
		return 0, false
	}
	k := o.n.Kind
	return k.Power.Cost(k.Power.CPU(k.CPU, o.n.CPU-d.CPU)+k.Power.GPU(k.GPUs, k.GPUs-o.idle+waking)) - o.watts, true
}
