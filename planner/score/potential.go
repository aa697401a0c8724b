package score

import (
	"math"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
)

// Potential sees in each node a potential, in watts: what the node draws, and
// all the ways in which what is left of it is of less use than it could be. A
// task goes where the potential grows least. Growth of one number is compared,
// so that nothing is stretched and no other node matters.
//
// With g free GPUs, c free vCPU, the target workload M of classes m, and b, the
// watts that a GPU draws more when it is busy, the mean over the cluster,
//
//	Φ = P + nextPart·Σ p_m·X_m + factor·b·(fragmentPart·F(M) + S)
//	  − b·Σ (q_m/Q_m)·room_m over the classes for which room is scarce
//	  − b_c·Σ (q_m/Q_m)·room_m over those without GPUs for which vCPU is scarce
//
// P is the node's power. X_m is the watts that the next task of class m would
// add here, block where it has no room. F(M) is FGD's expected fragmentation, in
// GPUs. S = Σ q_m·max(0, g − c/r_m) is the GPUs that the free vCPU can't serve:
// r_m is what class m asks for with each GPU, and q_m its part of the GPUs that M
// asks for. The factor is 1 until the cluster fills up, and 1 + rise in the end.
// [roomPrices] explains the last two sums: what tasks of a class could still use on
// the node, if all nodes together have little of it; b_c is the watts that a vCPU
// draws more when it is busy.
type Potential struct {
	Absolute
	workload fleet.Workload
	asked    float64 // milli-GPU that a task of the workload asks for in the mean
	views    map[*fleet.Kind]*kindTarget
	rooms    roomPrices
	known    fleet.StateCache[potential]
	cluster  *fleet.State // that the prices below are for
	busyGPU  float64      // b
	step     int          // the load, in steps
	factor   float64
	epoch    uint32 // counts changes of prices
}

const (
	nextPart     = 0.17 // of the next task's watts that counts now
	block        = 450  // W
	fragmentPart = 0.15 // of b
)

// DefaultRoom is how far ahead room is kept if nobody says so, in parts of the load.
const DefaultRoom = 0.5

// NewPotential prepares the potential for a target workload. Room is kept for the
// tasks that few nodes can take and that come while the load grows by a part of
// the cluster: 0 saves most while there is room, 1 places most in the end.
func NewPotential(m fleet.Workload, room float64) *Potential {
	p := &Potential{
		workload: m, views: make(map[*fleet.Kind]*kindTarget), rooms: roomPrices{ahead: room},
		known: fleet.NewStateCache[potential](maxPotentials), factor: 1,
	}
	for i := range m {
		p.asked += float64(m[i].P * float64(m[i].GPUMilli()))
	}
	return p
}

// Score is minus the watts by which the potential grows, with the GPU of the
// least growth for a task that shares one. It is in whole microwatts: equal
// growths that were added up in different orders are equal.
func (p *Potential) Score(d *fleet.Demand, n *fleet.Node) (float64, planner.GPUSet) {
	before := p.nodePotential(n)
	return bestGPU(d, n, func(after fleet.Node) float64 {
		return math.Round((before-p.nodePotential(&after))*1e6) / 1e6
	})
}

// nodePotential adds up what is known of the node's state at the present prices.
func (p *Potential) nodePotential(n *fleet.Node) float64 {
	v := p.valueOf(n)
	if v.epoch != p.epoch {
		v.epoch = p.epoch
		v.total = v.steady + float64(p.factor*v.scarce) - p.rooms.worth(v.room)
	}
	return v.total
}

// valueOf returns what doesn't change with prices of a node's state.
func (p *Potential) valueOf(n *fleet.Node) *potential {
	s, known := p.known.Lookup(n)
	if !known {
		p.fill(s)
	}
	return &s.Value
}

// The load is read in steps, so that scores hold for long. Where tasks come and
// go it may fall a little below a step before that counts.
const (
	loadSteps      = 50
	loadHysteresis = 100 // 1 % of the cluster
)

// The parts of the cluster in use between which prices rise, and by how much in the end.
const (
	riseFrom, riseTo = 0.75, 0.9
	rise             = 10
)

// Update follows the load.
func (p *Potential) Update(s *fleet.State) (changed bool) {
	used := usedPart(s)
	now := int(loadSteps * used)
	switch {
	case p.cluster != s:
		p.adopt(s)
	case now > p.step, int(loadSteps*(used+1./loadHysteresis)) < p.step:
	default:
		return false
	}
	p.step = now
	was := p.factor
	load := float64(now) / loadSteps
	p.factor = 1 + float64(rise*min(1, max(0, (load-riseFrom)/(riseTo-riseFrom))))
	changed = p.rooms.update(s, func(n *fleet.Node) []uint16 { return p.valueOf(n).room }) || p.factor != was
	if changed {
		p.epoch++
	}
	return changed
}

// usedPart returns the part of the GPUs that is allocated, or of the vCPU where that is more.
func usedPart(s *fleet.State) float64 {
	cpus, usedCPUs := s.CPUs()
	return max(float64(s.Allocated())/float64(max(1, s.Capacity())), float64(usedCPUs)/float64(max(1, cpus)))
}

// adopt looks at a cluster for the first time.
func (p *Potential) adopt(s *fleet.State) {
	watts, gpus, cpuWatts, vcpus := 0.0, 0, 0.0, 0.0
	for i := range s.Len() {
		k := s.Node(i).Kind
		watts += float64(k.Power.Cost(k.Power.GPUBusy-k.Power.GPUIdle) * float64(k.GPUs))
		gpus += k.GPUs
		cpuWatts += float64(k.Power.Cost(k.Power.CPU(k.CPU, 0) - k.Power.CPU(k.CPU, k.CPU)))
		vcpus += float64(k.CPU) / milliVCPU
	}
	p.cluster, p.busyGPU = s, watts/float64(max(1, gpus))
	p.rooms.perGPU, p.rooms.perVCPU = p.busyGPU, cpuWatts/max(1, vcpus)
	p.rooms.adopt(p.workload, s)
	clear(p.views)
	p.known = fleet.NewStateCache[potential](maxPotentials)
	p.epoch++
}
