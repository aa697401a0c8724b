package score

import (
	"slices"

	"github.com/epplan/epplan/planner/fleet"
)

// maxPotentials is how many states are remembered.
const maxPotentials = 1 << 14

// potential are the two parts of a state's.
type potential struct{ steady, scarce float64 }

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
func residualOf(s *fleet.CachedState[potential]) residual {
	k := s.Kind
	r := residual{kind: k, cpu: s.CPU, gpu: s.GPU[:k.GPUs]}
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
	if s.Asleep {
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

type targetClass struct {
	p           float64
	cpu         int64
	milli, gpus int
}

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
