package replay

import (
	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/fleet"
)

// LoadPoint is the state of a cluster under load.
type LoadPoint struct {
	Load       float64        // GPUs asked for by all arrivals, in parts of the capacity
	CPU, GPU   dvfsmodel.Watt // the parts of EOPC
	Ratio      float64        // GRAR
	Fragmented float64        // F of the cluster, GPUs
	Arrived    int
	Placed     int
}

// Power returns the estimated overall power consumption (EOPC).
func (p *LoadPoint) Power() dvfsmodel.Watt { return p.CPU + p.GPU }

// sampleSteps is how many points of a curve there are up to a load of 1.
const sampleSteps = 100

// maxPoints bounds curves of streams that ask for a multiple of the cluster.
const maxPoints = 100 * sampleSteps

// Sampler makes the paper's curves: a point for the empty cluster, one after
// each arrival that brings the arrived load to the next hundredth or past it,
// and one at the end (data/openb/SEMANTICS.md, section 7).
type Sampler struct {
	meter  *fleet.FragmentationMeter
	state  *fleet.State
	worth  []float64 // F of each node when it was last looked at, milli-GPU
	stale  []int32   // nodes to look at again
	marked []bool    // in stale
	points []LoadPoint
	last   Tally
}

// NewSampler begins a curve with the cluster as it is, nothing having arrived
// yet. Fragmentation is for a target workload.
func NewSampler(m fleet.Workload, s *fleet.State) *Sampler {
	p := &Sampler{
		meter: fleet.NewFragmentationMeter(m), state: s,
		worth: make([]float64, s.Len()), marked: make([]bool, s.Len()), stale: make([]int32, 0, s.Len()),
		points: make([]LoadPoint, 0, sampleSteps+sampleSteps/2),
	}
	known := make(map[fleet.Node]float64) // most nodes are alike
	for i := range p.worth {
		n := s.Node(i)
		f, ok := known[*n]
		if !ok {
			f = p.meter.OfNode(n)
			known[*n] = f
		}
		p.worth[i] = f
	}
	p.sample()
	return p
}

// Observe adds the points that an arrival leads to.
func (p *Sampler) Observe(e *Event) {
	p.last = e.Tally
	if e.Drop == Placed && !p.marked[e.Node] {
		p.marked[e.Node] = true
		p.stale = append(p.stale, int32(e.Node))
	}
	for len(p.points) < maxPoints &&
		sampleSteps*e.Tally.Demanded >= int64(len(p.points))*max(1, p.state.Capacity()) {
		p.sample()
	}
}

// Points returns the curve so far, up to the last arrival.
func (p *Sampler) Points() []LoadPoint {
	if p.points[len(p.points)-1].Arrived < p.last.Arrived {
		p.sample()
	}
	return p.points
}

// sample appends a point for the state as it is; only nodes that changed are measured again.
func (p *Sampler) sample() {
	for _, node := range p.stale {
		p.marked[node] = false
		p.worth[node] = p.meter.OfNode(p.state.Node(int(node)))
	}
	p.stale = p.stale[:0]
	fragmented := 0.0
	for _, f := range p.worth {
		fragmented += f
	}
	cpu, gpu := p.state.Power()
	p.points = append(p.points, LoadPoint{
		Load: fraction(float64(p.last.Demanded), float64(p.state.Capacity())), CPU: cpu, GPU: gpu,
		Ratio: p.last.AllocationRatio(), Fragmented: fragmented / fleet.WholeGPU,
		Arrived: p.last.Arrived, Placed: p.last.Placed(),
	})
}

// fraction returns a part; of nothing, 0.
func fraction(part, all float64) float64 {
	if all == 0 {
		return 0
	}
	return part / all
}

// FirstAtLoad returns the first point of a curve at a load or past it; false: the curve ends
// before.
func FirstAtLoad(points []LoadPoint, load float64) (LoadPoint, bool) {
	for _, p := range points {
		if p.Load >= load-1e-9 {
			return p, true
		}
	}
	return LoadPoint{}, false
}
