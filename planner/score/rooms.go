package score

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/planner/fleet"
)

// roomPrices say what room for tasks of each class is worth. A class's room on a
// node is the GPUs that its tasks could still use there, were no others to come, or
// the vCPU if they use no GPUs: it knows of GPU models, of whole nodes that a task of
// eight GPUs needs, and of vCPU. Room is scarce when all nodes together have little
// more of it than is likely to be asked for while the load grows by a part of the
// cluster.
//
// Who asks for it is the class and all that have no more nodes to go to: their part
// of the GPUs that the workload asks for is Q_m, and the class's own q_m. Classes
// without GPUs compete among themselves, for vCPU.
type roomPrices struct {
	ahead    float64 // the part of the cluster by which the load grows
	classes  []roomClass
	on       map[*fleet.Kind][]int32 // by kind: the classes that have room on an empty node
	capacity float64                 // milli-GPU of the cluster
	sums     []int64                 // by class: the room on all nodes
	perGPU   float64                 // b, watts
	perVCPU  float64                 // b_c, watts
}

type roomClass struct {
	demand  fleet.Demand
	part    float64 // q_m
	held    float64 // room that all who have no other nodes ask for at a load of 1, or that there is
	share   float64 // q_m/Q_m
	accepts map[*fleet.Kind]bool
	scarce  bool
}

// isCPUOnly reports whether the class's room is vCPU, and not milli-GPU.
func (c *roomClass) isCPUOnly() bool { return c.demand.GPUs == 0 }

// maxRoomClasses is for how many classes with GPUs, and for how many without, room has a price: those
// that ask for most.
const maxRoomClasses = 128

// milliVCPU is the milli-vCPU of a unit of room of classes without GPUs.
const milliVCPU = 1000

// adopt looks at a cluster for the first time.
func (p *roomPrices) adopt(m fleet.Workload, s *fleet.State) {
	gpus, vcpus := make(map[*fleet.Kind]int), make(map[*fleet.Kind]int)
	for i := range s.Len() {
		k := s.Node(i).Kind
		gpus[k] += k.GPUs * fleet.WholeGPU
		vcpus[k] += int(k.CPU / milliVCPU)
	}
	p.capacity = float64(s.Capacity())
	withGPUs, asked := classesOf(m, gpus, func(c *fleet.TaskClass) float64 { return float64(c.GPUMilli()) })
	without, _ := classesOf(m, vcpus, func(c *fleet.TaskClass) float64 {
		if c.GPUs > 0 {
			return 0
		}
		return float64(c.CPU) / milliVCPU
	})
	arrivals := math.Inf(1) // tasks up to a load of 1
	if asked > 0 && p.capacity > 0 {
		arrivals = p.capacity / asked
	}
	claimRooms(withGPUs, gpus, arrivals)
	claimRooms(without, vcpus, arrivals)
	p.classes = append(withGPUs, without...)
	p.sums, p.on = make([]int64, len(p.classes)), make(map[*fleet.Kind][]int32)
	for k := range gpus {
		for i := range p.classes {
			if p.classes[i].accepts[k] {
				p.on[k] = append(p.on[k], int32(i))
			}
		}
	}
}

// classesOf returns the classes of a workload that ask for some of a resource and fit on a node, those that
// ask for most first, and how much a task of the workload asks for.
func classesOf(
	m fleet.Workload, kinds map[*fleet.Kind]int, of func(*fleet.TaskClass) float64,
) (classes []roomClass, asked float64) {
	for i := range m {
		c := roomClass{demand: m[i].Demand, part: float64(m[i].P * of(&m[i]))}
		c.accepts = acceptingKinds(&c.demand, kinds)
		asked += c.part
		if c.part > 0 && len(c.accepts) > 0 {
			classes = append(classes, c)
		}
	}
	slices.SortStableFunc(classes, func(a, b roomClass) int { return cmp.Compare(b.part, a.part) })
	return classes[:min(len(classes), maxRoomClasses)], asked
}

// claimRooms works out who asks for the rooms of classes that compete for a resource.
func claimRooms(classes []roomClass, kinds map[*fleet.Kind]int, arrivals float64) {
	for i := range classes {
		c := &classes[i]
		claim, there := 0.0, 0
		for j := range classes {
			if isSubset(classes[j].accepts, c.accepts) {
				claim += classes[j].part
			}
		}
		for k := range c.accepts {
			there += kinds[k]
		}
		c.share = c.part / claim
		c.held = min(claim*arrivals, float64(there))
	}
}

// acceptingKinds returns the kinds of which an empty node has room for a task.
func acceptingKinds(d *fleet.Demand, kinds map[*fleet.Kind]int) map[*fleet.Kind]bool {
	accepts := make(map[*fleet.Kind]bool)
	for k := range kinds {
		if n := fleet.NewNode(k); n.Fits(d) {
			accepts[k] = true
		}
	}
	return accepts
}

// isSubset reports whether all kinds are among others.
func isSubset(kinds, others map[*fleet.Kind]bool) bool {
	for k := range kinds {
		if !others[k] {
			return false
		}
	}
	return true
}

// scarceFrom is the part of the room that is spoken for from which it is scarce.
const scarceFrom = 0.9

// update tells for which classes room is scarce now; roomOn is what a node has of it.
func (p *roomPrices) update(s *fleet.State, roomOn func(*fleet.Node) []uint16) (changed bool) {
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

// worth returns what scarce room is worth, in watts.
func (p *roomPrices) worth(room []uint16) float64 {
	gpus, vcpus := 0.0, 0.0
	for i, units := range room {
		switch c := &p.classes[i]; {
		case !c.scarce:
		case c.isCPUOnly():
			vcpus += float64(c.share * float64(units))
		default:
			gpus += float64(c.share * float64(units))
		}
	}
	return float64(p.perGPU*(gpus/fleet.WholeGPU)) + float64(p.perVCPU*vcpus)
}

// fill returns the room for each class on a node, in the list given if it is long enough.
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

// roomFor returns the milli-GPU that tasks like this one could use, or the vCPU if they use no GPUs.
func (r *residual) roomFor(d *fleet.Demand) int {
	if d.GPUs == 0 {
		return int(min(math.MaxUint16, r.cpu/d.CPU*d.CPU/milliVCPU))
	}
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
