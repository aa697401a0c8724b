package consolidate

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Validate reports the first thing that makes no sense of frequencies, power or
// run time.
func (p *Physics) Validate() error {
	if len(p.LevelsMHz) == 0 || !(p.LevelsMHz[0] > 0) || !slices.IsSorted(p.LevelsMHz) || math.IsInf(p.MaxMHz(), 0) {
		return fmt.Errorf("frequencies %v MHz, want at least one, ascending and above 0", p.LevelsMHz)
	}
	for _, x := range [...]float64{p.BaseW, p.WPerMHz, p.Beta} {
		if !notNegative(x) {
			return fmt.Errorf("power %v W + %v W/MHz and exponent %v, want finite numbers of 0 or more", p.BaseW, p.WPerMHz, p.Beta)
		}
	}
	return nil
}

// Validate reports the first thing that makes no sense of an instance: those of
// [Read] are valid. What this package does with an instance is meant for a valid
// one; [Judge] alone believes nothing.
func (in *Instance) Validate() error {
	if err := in.Physics.Validate(); err != nil {
		return err
	}
	if s := in.Physics.StepMHz; !(s > 0) || math.IsInf(s, 0) {
		return fmt.Errorf("step of %v MHz, want a finite number above 0", s)
	}
	if !(in.SlotS > 0) || math.IsInf(in.SlotS, 0) {
		return fmt.Errorf("slots of %v s, want a finite number above 0", in.SlotS)
	}
	if in.Contention != nil {
		if err := in.Contention.Validate(); err != nil {
			return fmt.Errorf("contention: %w", err)
		}
	}
	if len(in.Servers) == 0 || len(in.Tasks) == 0 {
		return fmt.Errorf("%d servers and %d tasks, want some of each", len(in.Servers), len(in.Tasks))
	}
	gpus := 0
	for i := range in.Servers {
		if err := in.Servers[i].validate(); err != nil {
			return fmt.Errorf("server %d: %w", i, err)
		}
		gpus += len(in.Servers[i].GPUMemGB)
	}
	for i := range in.Tasks {
		if err := in.Tasks[i].validate(gpus, in.Slots()); err != nil {
			return fmt.Errorf("task %d, %q: %w", i, in.Tasks[i].ID, err)
		}
	}
	return nil
}

func (s *Server) validate() error {
	if !notNegative(s.StaticW) || !notNegative(s.OtherW) {
		return fmt.Errorf("draws %v W and %v W, want finite numbers of 0 or more", s.StaticW, s.OtherW)
	}
	if len(s.GPUMemGB) == 0 {
		return errors.New("has no GPUs")
	}
	for gpu, gb := range s.GPUMemGB {
		if !notNegative(gb) {
			return fmt.Errorf("GPU %d has %v GB, want a finite number of 0 or more", gpu, gb)
		}
	}
	if s.GPUIDs != nil && len(s.GPUIDs) != len(s.GPUMemGB) {
		return fmt.Errorf("%d names of %d GPUs, want one of each or none", len(s.GPUIDs), len(s.GPUMemGB))
	}
	return nil
}

// validate reports what makes no sense of a task on so many GPUs in a window of so
// many slots.
func (t *Task) validate(gpus, slots int) error {
	if !notNegative(t.MemGB) || !notNegative(t.Arrival) {
		return fmt.Errorf("takes %v GB and arrives at %v s, want finite numbers of 0 or more", t.MemGB, t.Arrival)
	}
	if t.GPUs < 1 || t.GPUs > gpus {
		return fmt.Errorf("needs %d GPUs, want 1 to %d", t.GPUs, gpus)
	}
	if !(t.Kappa >= 1) || math.IsInf(t.Kappa, 0) {
		return fmt.Errorf("kappa %v, want a finite number of 1 or more", t.Kappa)
	}
	if len(t.UtilPct) != slots || slots == 0 {
		return fmt.Errorf("%d slots, want at least one and as many as the first task has, %d", len(t.UtilPct), slots)
	}
	for slot, u := range t.UtilPct {
		if !(u >= 0 && u <= 100) {
			return fmt.Errorf("utilisation %v %% in slot %d, want 0 to 100", u, slot)
		}
	}
	if len(t.On) != 0 && len(t.On) != t.GPUs {
		return fmt.Errorf("runs on %d GPUs, want %d or none", len(t.On), t.GPUs)
	}
	for i, gpu := range t.On {
		if gpu < 0 || gpu >= gpus || slices.Contains(t.On[:i], gpu) {
			return fmt.Errorf("runs on GPU %d, want 0 to %d, each once", gpu, gpus-1)
		}
	}
	return nil
}

// notNegative tells whether a number is finite and 0 or more.
func notNegative(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }

// asleep is the answer to an instance without tasks.
func (in *Instance) asleep() Placement {
	return Placement{GPUs: [][]int{}, MHz: make([]float64, len(in.GPUs()))}
}
