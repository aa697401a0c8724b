package planner

import (
	"errors"
	"fmt"
	"math"

	"github.com/epplan/epplan/dvfsmodel"
)

// StepPower is what the parts of a node draw by what is allocated on them, in
// steps: a GPU or a CPU package is in use or it isn't.
type StepPower struct {
	GPUIdle, GPUBusy dvfsmodel.Watt // a GPU with nothing, and with anything at all, allocated on it
	CPUIdle, CPUBusy dvfsmodel.Watt // a CPU package, likewise
	Cores            int            // physical cores of a package; 0: CPUs draw nothing
	Threads          int            // vCPUs of a core; 0: 1
	Sleep            dvfsmodel.Watt // the whole node when it sleeps
	// Literal charges CPU packages as equation 1 is printed, which loses the
	// idle power of partly filled ones. The paper's simulator doesn't.
	Literal bool
	// Weight is what a watt counts when places are compared, by price or carbon
	// for example; 0: 1. Power itself stays in watts.
	Weight float64
}

// Cost returns a power as it counts.
func (p *StepPower) Cost(w dvfsmodel.Watt) float64 {
	if p.Weight == 0 {
		return float64(w)
	}
	return p.Weight * float64(w)
}

// CPU returns the power of a node's CPU packages when left of its capacity, both in
// milli-vCPU, is free. A package draws its busy power when one of its cores is
// in use; cores in use are counted up from whole free cores (PWR+FGD paper,
// equation 1, as its simulator computes it).
func (p *StepPower) CPU(capacity, left int64) dvfsmodel.Watt {
	if p.Cores == 0 {
		return 0
	}
	core := milli * int64(max(p.Threads, 1)) // milli-vCPU of a core
	if p.Literal {
		pack := core * int64(p.Cores)
		return p.CPUBusy*dvfsmodel.Watt(ceilDiv(capacity-left, pack)) + p.CPUIdle*dvfsmodel.Watt(left/pack)
	}
	// The packages of the paper's cluster: dividing by constants is faster, and
	// placement by score does this for every node that it looks at.
	const usualCore, usualCores = 2 * milli, 16
	var busy, packages int64
	if core == usualCore && p.Cores == usualCores {
		busy, packages = busyPackages(capacity, left, usualCore, usualCores)
	} else {
		busy, packages = busyPackages(capacity, left, core, int64(p.Cores))
	}
	return p.CPUBusy*dvfsmodel.Watt(busy) + p.CPUIdle*dvfsmodel.Watt(packages-busy)
}

// milli is how many milli-vCPU a vCPU has.
const milli = 1000

// busyPackages counts a node's CPU packages, and those of them that are busy. A
// core has so many milli-vCPU, a package so many cores.
func busyPackages(capacity, left, core, cores int64) (busy, packages int64) {
	all := ceilDiv(capacity, core)
	return ceilDiv(all-left/core, cores), ceilDiv(all, cores)
}

// GPU returns the power of count GPUs of which busy ones have something allocated
// (PWR+FGD paper, equation 2).
func (p *StepPower) GPU(count, busy int) dvfsmodel.Watt {
	return p.GPUBusy*dvfsmodel.Watt(busy) + p.GPUIdle*dvfsmodel.Watt(count-busy)
}

// Validate reports the first number that makes no sense.
func (p *StepPower) Validate() error {
	for _, w := range [...]dvfsmodel.Watt{p.GPUIdle, p.GPUBusy, p.CPUIdle, p.CPUBusy, p.Sleep} {
		if !(w >= 0) || math.IsInf(float64(w), 0) {
			return fmt.Errorf("power %v W, want a finite number of 0 or more", float64(w))
		}
	}
	if !(p.Weight >= 0) || math.IsInf(p.Weight, 0) {
		return fmt.Errorf("a watt counts %v, want a finite number above 0, or 0 for 1", p.Weight)
	}
	if p.Cores < 0 || p.Threads < 0 {
		return errors.New("a CPU package has a negative number of cores or threads")
	}
	return nil
}

// ceilDiv is a/b rounded up, for a ≥ 0 and b > 0.
func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// PowerAboveSleep returns what a node of the class takes that is on and runs nothing, above what it takes
// asleep.
func (k *NodeClass) PowerAboveSleep() dvfsmodel.Watt {
	return (k.IdleW+k.HostW)*dvfsmodel.Watt(k.GPUs) - k.SleepW
}

// PowerAboveIdle returns what a task takes while it runs on nodes of the plan, above what its GPUs take idle.
func (plan *Plan) PowerAboveIdle(p *Problem, t *Task, a *Assignment) dvfsmodel.Watt {
	watts := a.Power(t)
	for part := range a.Parts {
		gpus := float64(part.GPUs.Len())
		if t.Share < 1 {
			gpus = t.Share
		}
		watts -= p.Cluster.Classes[plan.Nodes[part.Node].Class].IdleW * dvfsmodel.Watt(gpus)
	}
	return watts
}
