package consolidate

import (
	"math"

	"github.com/epplan/epplan/planner/sharing"
)

const (
	fullPct       = 100.0 // utilisation of a GPU that is always at work, percent
	largestMemGB  = 32.0  // by which DP and BF measure memory, GB
	roundingPct   = 1e-9  // by which a mean may exceed a limit
	roundingScore = 1e-12 // below which scores are equal
)

// HotCloud places a task on the first running GPU whose mean utilisation stays
// within 100 percent, else on the first that sleeps.
type HotCloud struct{}

// Choose is the first GPU whose mean allows it.
func (HotCloud) Choose(s *sharing.State, task int, taken []int) (int, bool) {
	within := func(gpu int) bool {
		return s.IsBusy(gpu) && s.Fits(task, gpu) && meanLoadWith(s, task, gpu) <= fullPct+roundingPct
	}
	if gpu, ok := firstAllowed(s, taken, within); ok {
		return gpu, true
	}
	return firstSleeping(s, task, taken)
}

// FirstSlotFit is [HotCloud] by the first slot's utilisation, which has to stay below
// 100 percent.
type FirstSlotFit struct{}

// Choose is the first GPU whose first slot allows it.
func (FirstSlotFit) Choose(s *sharing.State, task int, taken []int) (int, bool) {
	series := s.Instance().Tasks[task].UtilPct
	within := func(gpu int) bool {
		return s.IsBusy(gpu) && s.Fits(task, gpu) && s.Load(gpu)[0]+series[0] < fullPct
	}
	if gpu, ok := firstAllowed(s, taken, within); ok {
		return gpu, true
	}
	return firstSleeping(s, task, taken)
}

// hasRoomFor reports whether a GPU has the memory and, on average, the time for a
// task.
func hasRoomFor(s *sharing.State, task, gpu int) bool {
	return s.Fits(task, gpu) && meanLoadWith(s, task, gpu) <= fullPct+roundingPct
}

// orAnyGPU is what was found, or else any GPU that has the memory.
func orAnyGPU(s *sharing.State, task int, taken []int, gpu int, ok bool) (int, bool) {
	if ok {
		return gpu, true
	}
	return firstSleeping(s, task, taken)
}

// BestFit places a task where least is left of utilisation and memory
// together.
type BestFit struct{}

// Choose is the GPU with the least left.
func (BestFit) Choose(s *sharing.State, task int, taken []int) (int, bool) {
	left := func(gpu int) float64 {
		mem := s.FreeGB(gpu) - s.Instance().Tasks[task].MemGB
		return 0.5*(1-meanLoadWith(s, task, gpu)/fullPct) + 0.5*mem/largestMemGB
	}
	gpu, ok := leastScored(s, taken, func(gpu int) bool { return hasRoomFor(s, task, gpu) }, left)
	return orAnyGPU(s, task, taken, gpu, ok)
}

// DotProduct places a task where the dot product of its demand and what is
// free is least.
type DotProduct struct{}

// Choose is the GPU with the least dot product.
func (DotProduct) Choose(s *sharing.State, task int, taken []int) (int, bool) {
	t := &s.Instance().Tasks[task]
	util, mem := sharing.MeanPct(t.UtilPct)/fullPct, t.MemGB/largestMemGB
	product := func(gpu int) float64 {
		return util*(1-s.MeanPct(gpu)/fullPct) + mem*s.FreeGB(gpu)/largestMemGB
	}
	gpu, ok := leastScored(s, taken, func(gpu int) bool { return hasRoomFor(s, task, gpu) }, product)
	return orAnyGPU(s, task, taken, gpu, ok)
}

// FGD places a task where the fragmentation of the GPU rises least: the part
// of its free time that tasks of the instance could not use, for lack of time
// or of memory.
type FGD struct{}

// Choose is the GPU whose fragmentation rises least.
func (FGD) Choose(s *sharing.State, task int, taken []int) (int, bool) {
	own, mem := sharing.MeanPct(s.Instance().Tasks[task].UtilPct), s.Instance().Tasks[task].MemGB
	demand := make([]float64, len(s.Instance().Tasks))
	for i := range s.Instance().Tasks {
		demand[i] = sharing.MeanPct(s.Instance().Tasks[i].UtilPct)
	}
	rise := func(gpu int) float64 {
		free, freeGB := fullPct-s.MeanPct(gpu), s.FreeGB(gpu)
		return fragmentation(s, demand, free-own, freeGB-mem) - fragmentation(s, demand, free, freeGB)
	}
	gpu, ok := leastScored(s, taken, func(gpu int) bool { return hasRoomFor(s, task, gpu) }, rise)
	return orAnyGPU(s, task, taken, gpu, ok)
}

// fragmentation is the free time, as a part of the whole, that tasks of those
// demands could not use, weighted by how many they are.
func fragmentation(s *sharing.State, demand []float64, freePct, freeGB float64) float64 {
	unfit := 0
	for m, util := range demand {
		if util > freePct+roundingPct || s.Instance().Tasks[m].MemGB > freeGB+sharing.SlackGB {
			unfit++
		}
	}
	return math.Max(freePct, 0) / fullPct * float64(unfit) / float64(len(demand))
}
