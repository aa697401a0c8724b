package sharing

import (
	"errors"
	"fmt"
	"math"
)

// Instance is servers whose GPUs tasks may share, and the tasks: where all run
// together over one window it is a problem of consolidation.
type Instance struct {
	Name    string
	Physics Physics
	SLA     float64 // how many times its time alone at f_max a task may take, where it doesn't say itself
	SlotS   float64 // length of a slot of the series, seconds
	Servers []Server
	Tasks   []Task // in the order of their arrival
	// Contention is what sharing a GPU was measured to cost in time; nil:
	// [LinearCurve].
	Contention *Curve
}

// Curve returns what sharing a GPU costs in time.
func (in *Instance) Curve() Curve {
	if in.Contention == nil {
		return LinearCurve()
	}
	return *in.Contention
}

// Server is a machine with GPUs. GPUs are numbered over all servers, in order.
type Server struct {
	StaticW, OtherW float64   // drawn while the server is on, watts (eq. 4)
	GPUMemGB        []float64 // memory of each of its GPUs, GB
}

// HostW returns what the server draws while it is on, beside its GPUs, watts.
func (s *Server) HostW() float64 { return s.StaticW + s.OtherW }

// Task is a job that runs on shared GPUs, over the whole window.
type Task struct {
	ID      string
	Arrival float64   // seconds
	MemGB   float64   // memory that it takes on each of its GPUs, GB
	GPUs    int       // number of distinct GPUs that it needs
	Kappa   float64   // how many times its time alone at f_max it may take
	UtilPct []float64 // utilisation of each of its GPUs by slot, percent
}

// GPU is one GPU of an instance.
type GPU struct {
	Server int
	MemGB  float64
}

// GPUs lists the instance's GPUs by number.
func (in *Instance) GPUs() []GPU {
	var all []GPU
	for server := range in.Servers {
		for _, mem := range in.Servers[server].GPUMemGB {
			all = append(all, GPU{Server: server, MemGB: mem})
		}
	}
	return all
}

// Slots returns how many slots the window has.
func (in *Instance) Slots() int {
	if len(in.Tasks) == 0 {
		return 0
	}
	return len(in.Tasks[0].UtilPct)
}

// Validate reports the first thing that makes no sense of an instance. What is
// done with an instance is meant for a valid one.
func (in *Instance) Validate() error {
	if err := in.Physics.Validate(); err != nil {
		return err
	}
	if s := in.Physics.StepMHz; !(s > 0) || math.IsInf(float64(s), 0) {
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
	if !isNotNegative(s.StaticW) || !isNotNegative(s.OtherW) {
		return fmt.Errorf("draws %v W and %v W, want finite numbers of 0 or more", s.StaticW, s.OtherW)
	}
	if len(s.GPUMemGB) == 0 {
		return errors.New("has no GPUs")
	}
	for gpu, gb := range s.GPUMemGB {
		if !isNotNegative(gb) {
			return fmt.Errorf("GPU %d has %v GB, want a finite number of 0 or more", gpu, gb)
		}
	}
	return nil
}

// validate reports what makes no sense of a task on so many GPUs in a window of so
// many slots.
func (t *Task) validate(gpus, slots int) error {
	if !isNotNegative(t.MemGB) || !isNotNegative(t.Arrival) {
		return fmt.Errorf("takes %v GB and arrives at %v s, want finite numbers of 0 or more",
			t.MemGB, t.Arrival)
	}
	if t.GPUs < 1 || t.GPUs > gpus {
		return fmt.Errorf("needs %d GPUs, want 1 to %d", t.GPUs, gpus)
	}
	if !(t.Kappa >= 1) || math.IsInf(t.Kappa, 0) {
		return fmt.Errorf("kappa %v, want a finite number of 1 or more", t.Kappa)
	}
	if len(t.UtilPct) != slots || slots == 0 {
		return fmt.Errorf("%d slots, want at least one and as many as the first task has, %d",
			len(t.UtilPct), slots)
	}
	for slot, u := range t.UtilPct {
		if !(u >= 0 && u <= 100) {
			return fmt.Errorf("utilisation %v %% in slot %d, want 0 to 100", u, slot)
		}
	}
	return nil
}

func isNotNegative(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }
