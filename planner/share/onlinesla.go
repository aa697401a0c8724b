package share

import (
	"cmp"
	"math"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/planner/sharing"
)

// OnlineSLA places a task on the running GPU whose frequency has to rise least
// to keep everybody's SLA, contention counted; of equals on the fuller one.
// Where none does it wakes the largest GPU of a server that is on, else the
// largest of the server that takes least by GPU.
type OnlineSLA struct{}

// Choose returns the GPU whose frequency rises least.
func (OnlineSLA) Choose(s *sharing.State, task int, taken []int) (int, bool) {
	t, physics := &s.Instance().Tasks[task], &s.Instance().Physics
	var overload float64
	var sum []float64 // buffer
	rise := func(gpu int) (dvfsmodel.MHz, bool) {
		overload, sum = s.OverloadWith(task, gpu, sum)
		after, ok := physics.LowestLevel(overload, min(s.Kappa(gpu), t.Kappa))
		before, _ := physics.LowestLevel(s.Overload(gpu), s.Kappa(gpu))
		return after - before, ok
	}
	best, least, ok := 0, dvfsmodel.MHz(math.Inf(1)), false
	for gpu := range s.GPUs() {
		if !s.IsBusy(gpu) || !s.Fits(task, gpu) || slices.Contains(taken, gpu) {
			continue
		}
		if x, keeps := rise(gpu); keeps &&
			(x < least || x == least && s.MeanPct(gpu) > s.MeanPct(best)+roundingPct) {
			best, least, ok = gpu, x, true
		}
	}
	if ok {
		return best, true
	}
	if gpu, ok := bestToWake(s, task, taken); ok {
		return gpu, true
	}
	return anyGPU.Choose(s, task, taken)
}

// bestToWake returns the sleeping GPU to wake for a task: the largest of a server that is
// on, else the largest of the server that takes least by GPU.
func bestToWake(s *sharing.State, task int, taken []int) (best int, ok bool) {
	hostW := func(gpu int) float64 {
		host := &s.Instance().Servers[s.GPU(gpu).Server]
		if s.IsServerOn(s.GPU(gpu).Server) {
			return -1 // before all that would take something
		}
		return host.HostW() / float64(len(host.GPUMemGB))
	}
	order := func(a, b int) int {
		return cmp.Or(cmp.Compare(hostW(a), hostW(b)), cmp.Compare(s.GPU(b).MemGB, s.GPU(a).MemGB))
	}
	for gpu := range s.GPUs() {
		if s.IsBusy(gpu) || !s.Fits(task, gpu) || slices.Contains(taken, gpu) {
			continue
		}
		if !ok || order(gpu, best) < 0 {
			best, ok = gpu, true
		}
	}
	return best, ok
}
