package fleet

import (
	"fmt"
	"strings"
)

// WholeGPU is a whole GPU in milli-GPU.
const WholeGPU = 1000

// Demand is what a task asks of one node. Demands can be compared with ==.
type Demand struct {
	CPU   int64  // milli-vCPU
	Mem   int64  // MiB
	GPUs  int    // k; 0: the task runs on CPUs alone
	Milli int    // milli-GPU on each of them: WholeGPU, or below it on one GPU; 0 without GPUs
	Spec  string // accepted GPU models joined by "|"; empty: any
}

// GPUMilli is D, the whole GPU demand, milli-GPU.
func (d *Demand) GPUMilli() int { return d.GPUs * d.Milli }

// IsShared reports whether the task wants a part of one GPU.
func (d *Demand) IsShared() bool { return d.GPUs == 1 && d.Milli < WholeGPU }

// Accepts reports whether the task may run on nodes of a GPU model.
func (d *Demand) Accepts(model string) bool {
	if d.Spec == "" {
		return true
	}
	for name := range strings.SplitSeq(d.Spec, "|") {
		if name == model {
			return true
		}
	}
	return false
}

// Validate reports the first thing that makes the demand meaningless: a
// quantity below 0, a part of more than one GPU, a share of no GPU.
func (d *Demand) Validate() error {
	switch {
	case d.CPU < 0 || d.Mem < 0:
		return fmt.Errorf("%d milli-vCPU and %d MiB, want 0 or more", d.CPU, d.Mem)
	case d.GPUs < 0 || d.GPUs > MaxGPUs:
		return fmt.Errorf("%d GPUs, want 0 to %d", d.GPUs, MaxGPUs)
	case d.GPUs == 0 && d.Milli != 0:
		return fmt.Errorf("%d milli-GPU on no GPU, want 0", d.Milli)
	case d.GPUs > 0 && (d.Milli < 1 || d.Milli > WholeGPU):
		return fmt.Errorf("%d milli-GPU, want 1 to %d", d.Milli, WholeGPU)
	case d.GPUs > 1 && d.Milli != WholeGPU:
		return fmt.Errorf("%d milli-GPU on each of %d GPUs: only one GPU can be shared", d.Milli, d.GPUs)
	}
	return nil
}

// Kind is a kind of node: what a node has when nothing runs on it. Nodes of
// one kind share a *Kind.
type Kind struct {
	Model string // GPU model
	CPU   int64  // milli-vCPU
	Mem   int64  // MiB
	GPUs  int    // 0..MaxGPUs
	Power Power
}

// Validate reports the first thing that makes the kind meaningless.
func (k *Kind) Validate() error {
	if k.CPU < 0 || k.Mem < 0 {
		return fmt.Errorf("%d milli-vCPU and %d MiB, want 0 or more", k.CPU, k.Mem)
	}
	if k.GPUs < 0 || k.GPUs > MaxGPUs {
		return fmt.Errorf("%d GPUs, want 0 to %d", k.GPUs, MaxGPUs)
	}
	return k.Power.Validate()
}
