package trace

import (
	"cmp"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/fleet"
)

// Survey is what the tasks of a trace ask for, beside what its nodes have.
type Survey struct {
	Nodes    ResourceSum
	Kinds    []KindCount // most GPUs first
	CPUPower dvfsmodel.Watt
	GPUPower dvfsmodel.Watt // both of the empty cluster
	Tasks    ResourceSum
	Shapes   []ShapeCount // without GPUs, sharing one, then by whole GPUs
	// Misfits are the tasks that no empty node has room for.
	Misfits []Misfit
}

// ResourceSum is a number of nodes or tasks, and the sum of what they have or ask
// for.
type ResourceSum struct {
	Count    int
	CPU, Mem int64 // milli-vCPU, MiB
	GPUMilli int64
}

func (a *ResourceSum) add(cpu, mem, milli int64) {
	a.Count++
	a.CPU += cpu
	a.Mem += mem
	a.GPUMilli += milli
}

// KindCount is how many nodes of a kind there are.
type KindCount struct {
	Kind  *fleet.Kind
	Count int
}

// ShapeCount is the tasks with the same number of GPUs, those that share one
// apart.
type ShapeCount struct {
	GPUs   int
	Shared bool
	ResourceSum
}

// Misfit is the tasks that can't be placed for one reason.
type Misfit struct {
	Why   MisfitReason
	Count int
	First []int // rows of the first few
}

// MisfitReason is why a task can never be placed.
type MisfitReason uint8

// The reasons: no node has a GPU model that the task accepts; or those that do
// lack the GPUs, CPU, memory, or not one thing but all of them together.
const (
	NoModel MisfitReason = iota
	NoGPUs
	NoCPU
	NoMemory
	NoRoom
)

// String says what no node has.
func (r MisfitReason) String() string {
	return [...]string{
		"no node has a GPU model that they accept",
		"more GPUs than any node has that they accept",
		"more CPU than any node has that they accept",
		"more memory than any node has that they accept",
		"more of all together than any node has that they accept",
	}[r]
}

// firstExamples is how many tasks a [Misfit] names.
const firstExamples = 3

// NewSurvey adds up tasks and nodes.
func NewSurvey(pods []Pod, kinds []*fleet.Kind) *Survey {
	s := &Survey{}
	counts := make(map[*fleet.Kind]int)
	for _, k := range kinds {
		s.Nodes.add(k.CPU, k.Mem, int64(k.GPUs)*fleet.WholeGPU)
		counts[k]++
		empty := fleet.NewNode(k)
		cpu, gpu := empty.Power()
		s.CPUPower += cpu
		s.GPUPower += gpu
	}
	for k, count := range counts {
		s.Kinds = append(s.Kinds, KindCount{Kind: k, Count: count})
	}
	slices.SortFunc(s.Kinds, compareKinds)
	s.countShapes(pods)
	s.findMisfits(pods)
	return s
}

// compareKinds puts kinds with most GPUs in all first.
func compareKinds(a, b KindCount) int {
	return cmp.Or(
		cmp.Compare(b.Count*b.Kind.GPUs, a.Count*a.Kind.GPUs), cmp.Compare(b.Count, a.Count),
		cmp.Compare(a.Kind.Model, b.Kind.Model), cmp.Compare(b.Kind.GPUs, a.Kind.GPUs),
		cmp.Compare(b.Kind.CPU, a.Kind.CPU), cmp.Compare(b.Kind.Mem, a.Kind.Mem))
}

func (s *Survey) countShapes(pods []Pod) {
	var byShape [fleet.MaxGPUs + 2]ShapeCount
	for i := range pods {
		d := &pods[i].Demand
		shape := &byShape[0]
		switch {
		case d.IsShared():
			shape = &byShape[1]
			shape.Shared = true
		case d.GPUs > 0:
			shape = &byShape[d.GPUs+1]
		}
		shape.GPUs = d.GPUs
		shape.add(d.CPU, d.Mem, int64(d.GPUMilli()))
		s.Tasks.add(d.CPU, d.Mem, int64(d.GPUMilli()))
	}
	for i := range byShape {
		if byShape[i].Count > 0 {
			s.Shapes = append(s.Shapes, byShape[i])
		}
	}
}

func (s *Survey) findMisfits(pods []Pod) {
	type answer struct {
		fits bool
		why  MisfitReason
	}
	known := make(map[fleet.Demand]answer)
	var byReason [NoRoom + 1]Misfit
	for i := range pods {
		d := pods[i].Demand
		a, ok := known[d]
		if !ok {
			a.why, a.fits = s.fitsEmptyNode(&d)
			known[d] = a
		}
		if a.fits {
			continue
		}
		m := &byReason[a.why]
		m.Why = a.why
		m.Count++
		if len(m.First) < firstExamples {
			m.First = append(m.First, i)
		}
	}
	for i := range byReason {
		if byReason[i].Count > 0 {
			s.Misfits = append(s.Misfits, byReason[i])
		}
	}
}

// fitsEmptyNode reports whether an empty node has room for a task, or why none has.
func (s *Survey) fitsEmptyNode(d *fleet.Demand) (why MisfitReason, fits bool) {
	var accepted, gpus, cpu, mem bool
	for _, k := range s.Kinds {
		empty := fleet.NewNode(k.Kind)
		if empty.Fits(d) {
			return 0, true
		}
		if !d.Accepts(k.Kind.Model) {
			continue
		}
		accepted = true
		gpus = gpus || d.GPUs <= k.Kind.GPUs
		cpu = cpu || d.CPU <= k.Kind.CPU
		mem = mem || d.Mem <= k.Kind.Mem
	}
	switch {
	case !accepted:
		return NoModel, false
	case !gpus:
		return NoGPUs, false
	case !cpu:
		return NoCPU, false
	case !mem:
		return NoMemory, false
	}
	return NoRoom, false
}

// Demands lists what the tasks ask for.
func Demands(pods []Pod) []fleet.Demand {
	demands := make([]fleet.Demand, len(pods))
	for i := range pods {
		demands[i] = pods[i].Demand
	}
	return demands
}
