package score

import (
	"math"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/fleet"
)

// Potential sees in each node a potential, in watts: what the node draws, and
// at their prices all the ways in which what is left of it is of less use than
// it could be. A task goes where the potential grows least. Growth of one
// number is compared, so that nothing is stretched and no other node matters.
//
// With g free GPUs, c free vCPU and the target workload M,
//
//	Φ = steady + factor·scarce
//	steady = P + Next·Σ p_m·X_m + Spare·max(0, c − SpareCPUs·g)
//	scarce = Fragment·F(M) + Hole·Σ hole(r)
//	       + Starve·max(0, g − c/StarveCPUs) + Strand·max(0, g − c/StrandCPUs)
//
// P is the node's power. X_m is the watts that the next task of class m would
// add here, Block where it has no room. F(M) is FGD's expected fragmentation,
// in GPUs. hole(r) is what remains, at the least, of a busy GPU with r left
// however many shared tasks of M are packed into it. The factor is 1 until the
// cluster fills up; then room gets scarce and what spoils it dearer, 1 + Rise in
// the end.
type Potential struct {
	Absolute
	prices   PotentialPrices
	workload fleet.Workload
	views    map[*fleet.Kind]*kindTarget
	holes    [fleet.WholeGPU]uint16 // by what is left of a busy GPU
	known    fleet.StateCache[potential]
	factor   float64
	step     int // the load, in steps
}

// PotentialPrices turn what is left of a node into watts.
type PotentialPrices struct {
	Next  float64 // part of the watts of the next task that counts now
	Block float64 // W that a next task counts for which there is no room
	// W for each free vCPU beyond SpareCPUs for each free GPU: only tasks without GPU can
	// use it.
	Spare      float64
	SpareCPUs  float64 // vCPU for a GPU
	Fragment   float64 // W for each GPU of expected fragmentation
	Hole       float64 // W for each GPU that busy GPUs have left and no shared task can fill
	Starve     float64 // W for each free GPU beyond what the free vCPU can serve at StarveCPUs
	StarveCPUs float64 // vCPU for a GPU: few, that of light tasks
	Strand     float64 // likewise at StrandCPUs
	StrandCPUs float64 // vCPU for a GPU: that of most tasks
	Rise       float64 // how much more, in parts, Fragment, Hole, Starve and Strand cost in the end
	From, To   float64 // parts of the cluster's GPUs allocated between which they rise
}

// DefaultPotentialPrices are the same for all traces.
func DefaultPotentialPrices() PotentialPrices {
	return PotentialPrices{
		Next: 0.07, Block: 450, Spare: 0.6, SpareCPUs: 40,
		Fragment: 20, Hole: 50, Starve: 20, StarveCPUs: 8, Strand: 75, StrandCPUs: 13,
		Rise: 5, From: 0.7, To: 0.9,
	}
}

// NewPotential prepares the potential for a target workload.
func NewPotential(m fleet.Workload, prices PotentialPrices) *Potential {
	return &Potential{
		prices: prices, workload: m, views: make(map[*fleet.Kind]*kindTarget), holes: holesOf(m),
		known: fleet.NewStateCache[potential](maxPotentials), factor: 1,
	}
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

func (p *Potential) nodePotential(n *fleet.Node) float64 {
	s, known := p.known.Lookup(n)
	if !known {
		s.Value = p.value(s)
	}
	return s.Value.steady + float64(p.factor*s.Value.scarce)
}

// value is the two parts of the potential of a state.
func (p *Potential) value(s *fleet.CachedState[potential]) (v potential) {
	r := residualOf(s)
	next, fragment := p.forecast(&r)
	unfilled := 0
	for _, left := range r.gpu[:r.kind.GPUs-r.idle] {
		unfilled += int(p.holes[left])
	}
	gpus, cpus := float64(r.left)/fleet.WholeGPU, float64(r.cpu)/1000
	v.steady = r.watts + float64(p.prices.Next*next) +
		float64(p.prices.Spare*max(0, cpus-float64(p.prices.SpareCPUs*gpus)))
	v.scarce = float64(p.prices.Fragment*fragment/fleet.WholeGPU) +
		float64(p.prices.Hole*float64(unfilled)/fleet.WholeGPU) +
		float64(p.prices.Starve*max(0, gpus-cpus/p.prices.StarveCPUs)) +
		float64(p.prices.Strand*max(0, gpus-cpus/p.prices.StrandCPUs))
	return v
}

// forecast is the watts that the next task is expected to add, and the
// milli-GPU that it is expected to be unable to use ([fleet.Fragmentation], but
// for rounding).
func (p *Potential) forecast(r *residual) (watts, fragment float64) {
	view := p.targetFor(r.kind)
	watts, fragment = float64(view.barred*p.prices.Block), float64(view.barred*float64(r.left))
	at, small := 0, 0 // GPUs with too little left, and how much that is
	for i := range view.classes {
		c := &view.classes[i]
		for at < r.kind.GPUs && int(r.gpu[at]) < c.milli {
			small += int(r.gpu[at])
			at++
		}
		waking := c.gpus
		if c.milli <= r.mostOfABusy {
			waking = 0
		}
		switch {
		case c.cpu > r.cpu || waking > r.idle:
			watts += float64(c.p * p.prices.Block)
			fragment += float64(c.p * float64(r.left))
			continue
		case c.gpus == 0:
			fragment += float64(c.p * float64(r.left))
		default:
			fragment += float64(c.p * float64(small))
		}
		watts += float64(c.p * r.addedPower(c.cpu, waking))
	}
	return watts, fragment
}

// holesOf is, for what is left of a busy GPU, what remains of it at the least
// when shared tasks of the workload are packed into it, each as often as one
// likes.
func holesOf(m fleet.Workload) (holes [fleet.WholeGPU]uint16) {
	for left := range holes {
		holes[left] = uint16(left)
		for i := range m {
			if m[i].IsShared() && m[i].Milli <= left {
				holes[left] = min(holes[left], holes[left-m[i].Milli])
			}
		}
	}
	return holes
}

// The load is read in steps, so that scores hold for long. Where tasks come and
// go it may fall a little below a step before that counts.
const (
	loadSteps      = 20
	loadHysteresis = 100 // 1 % of the cluster's GPUs
)

// Update follows the load.
func (p *Potential) Update(s *fleet.State) (changed bool) {
	capacity := max(1, s.Capacity())
	stepAt := func(allocated int64) int { return int(loadSteps * allocated / capacity) }
	now := stepAt(s.Allocated())
	if now > p.step || stepAt(s.Allocated()+capacity/loadHysteresis) < p.step {
		p.step = now
	}
	was := p.factor
	p.factor = p.prices.factor(float64(p.step) / loadSteps)
	return p.factor != was
}

func (p *PotentialPrices) factor(load float64) float64 {
	switch {
	case load <= p.From:
		return 1
	case load >= p.To:
		return 1 + p.Rise
	}
	return 1 + float64(p.Rise*(load-p.From)/(p.To-p.From))
}
