package place

import (
	"math"
	"slices"

	"github.com/epplan/epplan/planner"
	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

// LeastAddedEnergy places a task on the GPU where that adds the least energy: for the
// time by which the GPU is busy longer, and its node on, whoever is slowed down
// for it. A short task goes beside long ones for nothing; a long one doesn't keep
// a GPU from sleeping that would be done soon. Of equal ones it takes the
// fullest. Only GPUs count on which everybody keeps what they tolerate.
func LeastAddedEnergy(v *planner.View) share.Rule {
	return &leastAddedEnergy{v: v}
}

type leastAddedEnergy struct {
	v    *planner.View
	sum  []float64 // buffer
	ends []float64 // by node: when its last task ends, or now
}

// Choose returns the GPU where the task adds least.
func (r *leastAddedEnergy) Choose(s *sharing.State, number int, taken []int) (best int, ok bool) {
	r.noteNodeEnds(s)
	least, fullest := math.Inf(1), 0.0
	for gpu := range s.GPUs() {
		if slices.Contains(taken, gpu) || !s.Fits(number, gpu) {
			continue
		}
		cost, load, keeps := r.cost(s, number, gpu)
		if keeps && (cost < least || cost == least && load > fullest) {
			best, least, fullest, ok = gpu, cost, load, true
		}
	}
	return best, ok
}

// noteNodeEnds notes when nodes have nothing to do any more, as predicted.
func (r *leastAddedEnergy) noteNodeEnds(s *sharing.State) {
	r.ends = slices.Grow(r.ends[:0], len(s.Instance().Servers))[:len(s.Instance().Servers)]
	for node := range r.ends {
		r.ends[node] = r.v.Now
	}
	for gpu := range s.GPUs() {
		if node := s.GPU(gpu).Server; s.IsBusy(gpu) {
			r.ends[node] = max(r.ends[node], r.v.FreeFrom(gpu))
		}
	}
}

// cost returns the energy that a task adds on a GPU, the load there then, and whether
// everybody keeps what they tolerate.
func (r *leastAddedEnergy) cost(s *sharing.State, number, gpu int) (added, load float64, keeps bool) {
	t, node := &s.Instance().Tasks[number], s.GPU(gpu).Server
	slower, sum := s.OverloadWith(number, gpu, r.sum)
	r.sum = sum
	for _, u := range sum {
		load += u
	}
	if slower > min(s.Kappa(gpu), t.Kappa)+sharing.Tolerance {
		return 0, 0, false
	}
	class, task := r.v.Node(node).Class, r.v.Shared.TaskAt[number]
	k, start := &r.v.Problem.Cluster.Classes[class], r.v.Now
	if !r.v.Node(node).On {
		start += k.TurnOnDelay
		added = float64(k.TurnOn) * float64(k.GPUs)
	}
	before, after := start,
		start+slower*r.v.Problem.Tasks[task].Options[r.v.Option(task, class)].Response.Default().Time
	if s.IsBusy(gpu) {
		before = max(start, r.v.FreeFrom(gpu))
		after = max(after, start+(before-start)*slower/s.Overload(gpu))
	}
	physics := &s.Instance().Physics
	added += (physics.PowerAt(physics.Max()) - float64(k.IdleW)) * (after - before)
	added += float64(k.HostW+k.IdleW) * float64(k.GPUs) * max(0, after-r.ends[node])
	return added, load, true
}
