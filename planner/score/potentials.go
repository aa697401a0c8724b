package score

import (
	"slices"

	"github.com/epplan/epplan/planner/fleet"
)

// potentialCache remembers the potentials of states that were met: as many as
// there is room for, the latest.
type potentialCache struct {
	kinds  map[*fleet.Kind]uint64 // a seed for the hash of each
	last   *fleet.Kind
	seed   uint64 // of the last
	states []cachedPotential
}

// cachedPotential is a state and the two parts of its potential.
type cachedPotential struct {
	kind           *fleet.Kind
	cpu            int64
	gpu            [fleet.MaxGPUs]uint16 // ascending
	asleep         bool
	steady, scarce float64
}

// maxPotentials is how many states are remembered, a power of two.
const maxPotentials = 1 << 14

func newPotentialCache() potentialCache {
	return potentialCache{kinds: make(map[*fleet.Kind]uint64), states: make([]cachedPotential, maxPotentials)}
}

// lookup is the place for the potential of a node's state, and whether it is there.
// If not, the caller fills it in.
func (p *potentialCache) lookup(n *fleet.Node) (v *cachedPotential, known bool) {
	if p.last != n.Kind {
		p.last, p.seed = n.Kind, p.seedOf(n.Kind)
	}
	sorted := n.WithSortedGPUs()
	hash := p.seed ^ uint64(n.CPU)*0xbf58476d1ce4e5b9
	for _, g := range sorted.GPU[:n.Kind.GPUs] {
		hash = (hash ^ uint64(g)) * 0x94d049bb133111eb
	}
	v = &p.states[hash>>40&(maxPotentials-1)]
	if v.kind == n.Kind && v.cpu == n.CPU && v.gpu == sorted.GPU && v.asleep == n.Asleep {
		return v, true
	}
	v.kind, v.cpu, v.gpu, v.asleep = n.Kind, n.CPU, sorted.GPU, n.Asleep
	return v, false
}

// seedOf is the seed of a kind, a new one for a new kind.
func (p *potentialCache) seedOf(k *fleet.Kind) uint64 {
	seed, known := p.kinds[k]
	if !known {
		seed = uint64(len(p.kinds)+1) * 0x9e3779b97f4a7c15
		p.kinds[k] = seed
	}
	return seed
}

// residual is what is left of a node, as the potential sees it.
type residual struct {
	kind        *fleet.Kind
	cpu         int64    // milli-vCPU
	gpu         []uint16 // milli-GPU, ascending: busy ones come first
	left        int      // milli-GPU on all of them
	idle        int      // GPUs
	mostOfABusy int      // milli-GPU
	watts       float64
	gpuWatts    float64 // if it is awake
}

// residualOf is what is left of a node in a state.
func residualOf(k *fleet.Kind, v *cachedPotential) residual {
	r := residual{kind: k, cpu: v.cpu, gpu: v.gpu[:k.GPUs]}
	for _, g := range r.gpu {
		r.left += int(g)
		if g == fleet.WholeGPU {
			r.idle++
		} else {
			r.mostOfABusy = int(g)
		}
	}
	r.gpuWatts = k.Power.Cost(k.Power.GPU(k.GPUs, k.GPUs-r.idle))
	r.watts = k.Power.Cost(k.Power.CPU(k.CPU, r.cpu)) + r.gpuWatts
	if v.asleep {
		r.watts = k.Power.Cost(k.Power.Sleep)
	}
	return r
}

// addedPower is the watts of a task more that makes some idle GPUs busy.
func (r *residual) addedPower(cpu int64, waking int) float64 {
	p := &r.kind.Power
	return p.Cost(p.CPU(r.kind.CPU, r.cpu-cpu)) + r.gpuWatts +
		float64(p.Cost(p.GPUBusy-p.GPUIdle)*float64(waking)) - r.watts
}

// kindTarget is the target workload as a kind of node sees it.
type kindTarget struct {
	classes []targetClass // that it accepts, ascending by milli
	barred  float64       // probability of the others
}

// targetClass is a class of the target workload.
type targetClass struct {
	p           float64
	cpu         int64
	milli, gpus int
}

// targetFor is the target workload for a kind of node.
func (p *Potential) targetFor(k *fleet.Kind) *kindTarget {
	t := p.views[k]
	if t != nil {
		return t
	}
	t = &kindTarget{}
	for i := range p.workload {
		c := &p.workload[i]
		if !c.Accepts(k.Model) {
			t.barred += c.P
			continue
		}
		t.classes = append(t.classes, targetClass{p: c.P, cpu: c.CPU, milli: c.Milli, gpus: c.GPUs})
	}
	slices.SortStableFunc(t.classes, func(a, b targetClass) int { return a.milli - b.milli })
	p.views[k] = t
	return t
}
