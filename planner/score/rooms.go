package score

import (
	"cmp"
	"slices"

	"github.com/epplan/epplan/planner/fleet"
)

// roomPrices say what room for tasks of each class is worth. A class's room on a
// node is the GPUs that its tasks could still use there, were no others to come:
// it knows of GPU models, of whole nodes that a task of eight GPUs needs, and of
// vCPU. Room is scarce when all nodes together have little more of it than is likely
// to be asked for while the load grows by a part of the cluster.
//
// Who asks for it is the class and all that have no more nodes to go to: their part
// of the GPUs that the workload asks for is Q_m, and the class's own q_m.
type roomPrices struct {
	ahead    float64 // the part of the cluster by which the load grows
	classes  []roomClass
	on       map[*fleet.Kind][]int32 // by kind: the classes that have room on an empty node
	capacity float64                 // milli-GPU of the cluster
	sums     []int64                 // by class: the room on all nodes
}

type roomClass struct {
	demand  fleet.Demand
	part    float64 // q_m
	held    float64 // milli-GPU that all who have no other nodes ask for at a load of 1, or that there are
	share   float64 // q_m/Q_m
	accepts map[*fleet.Kind]bool
	scarce  bool
}

// maxRoomClasses is for how many classes room has a price: those that ask for most.
const maxRoomClasses = 128

// adopt looks at a cluster for the first time.
func (p *roomPrices) adopt(m fleet.Workload, s *fleet.State) {
	kinds := make(map[*fleet.Kind]int)
	for i := range s.Len() {
		kinds[s.Node(i).Kind] += s.Node(i).Kind.GPUs * fleet.WholeGPU
	}
	p.classes, p.capacity = p.classes[:0], float64(s.Capacity())
	asked := 0.0
	for i := range m {
		c := roomClass{demand: m[i].Demand, part: float64(m[i].P * float64(m[i].GPUMilli()))}
		c.accepts = acceptingKinds(&c.demand, kinds)
		asked += c.part
		if c.part > 0 && len(c.accepts) > 0 {
			p.classes = append(p.classes, c)
		}
	}
	slices.SortStableFunc(p.classes, func(a, b roomClass) int { return cmp.Compare(b.part, a.part) })
	p.classes = p.classes[:min(len(p.classes), maxRoomClasses)]
	for i := range p.classes {
		c := &p.classes[i]
		claim, there := 0.0, 0
		for j := range p.classes {
			if hasNoOther(p.classes[j].accepts, c.accepts) {
				claim += p.classes[j].part
			}
		}
		for k := range c.accepts {
			there += kinds[k]
		}
		c.share = c.part / claim
		c.held = min(claim/asked*p.capacity, float64(there))
	}
	p.sums, p.on = make([]int64, len(p.classes)), make(map[*fleet.Kind][]int32)
	for k := range kinds {
		for i := range p.classes {
			if p.classes[i].accepts[k] {
				p.on[k] = append(p.on[k], int32(i))
			}
		}
	}
}

// acceptingKinds is the kinds of which an empty node has room for a task.
func acceptingKinds(d *fleet.Demand, kinds map[*fleet.Kind]int) map[*fleet.Kind]bool {
	accepts := make(map[*fleet.Kind]bool)
	for k := range kinds {
		if n := fleet.NewNode(k); n.Fits(d) {
			accepts[k] = true
		}
	}
	return accepts
}

// hasNoOther reports whether all kinds are among others.
func hasNoOther(kinds, others map[*fleet.Kind]bool) bool {
	for k := range kinds {
		if !others[k] {
			return false
		}
	}
	return true
}

// scarceFrom is the part of the room that is spoken for from which it is scarce.
const scarceFrom = 0.9

// follow tells for which classes room is scarce now; roomOn is what a node has of it.
func (p *roomPrices) follow(s *fleet.State, roomOn func(*fleet.Node) []uint16) (changed bool) {
	if len(p.classes) == 0 {
		return false
	}
	clear(p.sums)
	for i := range s.Len() {
		for class, room := range roomOn(s.Node(i)) {
			p.sums[class] += int64(room)
		}
	}
	ahead := min(p.ahead, 1-float64(s.Allocated())/max(1, p.capacity))
	for i := range p.classes {
		c := &p.classes[i]
		was := c.scarce
		c.scarce = float64(c.held*ahead) >= float64(scarceFrom*float64(max(1, p.sums[i])))
		changed = changed || c.scarce != was
	}
	return changed
}

// worth is what scarce room is worth, in GPUs.
func (p *roomPrices) worth(room []uint16) float64 {
	sum := 0.0
	for i, milli := range room {
		if c := &p.classes[i]; c.scarce {
			sum += float64(c.share * float64(milli))
		}
	}
	return sum / fleet.WholeGPU
}

// fill is the room for each class on a node, in the list given if it is long enough.
func (p *roomPrices) fill(r *residual, room []uint16) []uint16 {
	if len(room) != len(p.classes) {
		room = make([]uint16, len(p.classes))
	}
	clear(room)
	for _, i := range p.on[r.kind] {
		room[i] = uint16(r.roomFor(&p.classes[i].demand))
	}
	return room
}

// roomFor is the milli-GPU that tasks like this one could use.
func (r *residual) roomFor(d *fleet.Demand) int {
	count := r.idle / d.GPUs
	if d.IsShared() {
		count = r.idle * (fleet.WholeGPU / d.Milli)
		for i := len(r.gpu) - r.idle - 1; i >= 0 && int(r.gpu[i]) >= d.Milli; i-- {
			count += int(r.gpu[i]) / d.Milli
		}
	}
	if d.CPU > 0 {
		count = min(count, int(r.cpu/d.CPU))
	}
	return count * d.GPUMilli()
}
