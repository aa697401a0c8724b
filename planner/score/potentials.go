package score

import (
	"slices"

	"github.com/epplan/epplan/planner/fleet"
)

// maxPotentials is how many states are remembered.
const maxPotentials = 1 << 14

// potential is that of a state: the parts of which it is added up, and the sum at
// the prices of an epoch.
type potential struct {
	steady, scarce float64
	room           []uint16 // by class of [roomPrices], milli-GPU
	total          float64
	epoch          uint32
}

// fill works out the parts of a state's potential.
func (p *Potential) fill(s *fleet.CachedState[potential]) {
	r := residualOf(s)
	view := p.targetFor(r.kind)
	next, fragment := view.forecast(&r)
	stranded := view.strandedGPUs(float64(r.left)/fleet.WholeGPU, float64(r.cpu)/fleet.WholeGPU)
	s.Value = potential{
		steady: r.watts + float64(nextPart*next),
		scarce: float64(p.busyGPU * (float64(fragmentPart*fragment/fleet.WholeGPU) + stranded)),
		room:   p.rooms.fill(&r, s.Value.room), epoch: p.epoch - 1,
	}
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

// residualOf returns what is left of a node in a state.
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

// addedPower returns the watts of a task more that makes some idle GPUs busy.
func (r *residual) addedPower(cpu int64, waking int) float64 {
	p := &r.kind.Power
	return p.Cost(p.CPU(r.kind.CPU, r.cpu-cpu)) + r.gpuWatts +
		float64(p.Cost(p.GPUBusy-p.GPUIdle)*float64(waking)) - r.watts
}

// kindTarget is the target workload as a kind of node sees it.
type kindTarget struct {
	classes []targetClass // that it accepts, ascending by milli
	barred  float64       // probability of the others
	needs   []cpuNeed     // of all classes with GPUs
}

type targetClass struct {
	p           float64
	cpu         int64
	milli, gpus int
}

// cpuNeed is the vCPU that a class asks for with each GPU, and its part of the GPUs
// that the workload asks for.
type cpuNeed struct{ perGPU, part float64 }

func (p *Potential) targetFor(k *fleet.Kind) *kindTarget {
	t := p.views[k]
	if t != nil {
		return t
	}
	t = &kindTarget{}
	for i := range p.workload {
		c := &p.workload[i]
		if c.GPUs > 0 && c.CPU > 0 {
			milli := float64(c.GPUMilli())
			t.needs = append(t.needs, cpuNeed{float64(c.CPU) / milli, float64(c.P*milli) / p.asked})
		}
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

// forecast returns the watts that the next task is expected to add, block where it has
// no room, and the milli-GPU that it is expected to be unable to use
// ([fleet.Fragmentation], but for rounding).
func (t *kindTarget) forecast(r *residual) (watts, fragment float64) {
	watts, fragment = float64(t.barred*block), float64(t.barred*float64(r.left))
	at, small := 0, 0 // GPUs with too little left, and how much that is
	for i := range t.classes {
		c := &t.classes[i]
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
			watts += float64(c.p * block)
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

// strandedGPUs returns the free GPUs that the free vCPU are expected not to serve.
func (t *kindTarget) strandedGPUs(gpus, cpus float64) float64 {
	sum := 0.0
	for _, need := range t.needs {
		sum += float64(need.part * max(0, gpus-cpus/need.perGPU))
	}
	return sum
}
