package planner

import (
	"cmp"
	"slices"

	"github.com/epplan/epplan/planner/sharing"
)

// SharedGPUs is what tasks hold of the GPUs that may be shared by profile.
type SharedGPUs struct {
	// Booked has the tasks with a place until they end, those on nodes that aren't ready
	// yet included. Its servers are the first nodes, and GPUs have the same numbers.
	Booked *sharing.State
	// IndexOf is by task its number in Booked, -1 where it wasn't offered yet; TaskAt is the
	// task by such a number.
	IndexOf, TaskAt []int
}

// CanShareGPUs reports whether tasks with profiles may share the GPUs of a class.
func (p *Problem) CanShareGPUs(class int) bool {
	return p.Cluster.Sharing != nil && p.Cluster.Classes[class].SharedGB != nil
}

// SharedNodes returns the classes of the nodes whose GPUs tasks may share, by node:
// as many of an unlimited class as there are tasks.
func (p *Problem) SharedNodes() []int {
	var classes []int
	for class := range p.Cluster.Classes {
		if p.CanShareGPUs(class) {
			classes = append(classes,
				slices.Repeat([]int{class}, cmp.Or(p.Cluster.Classes[class].Count, len(p.Tasks)))...)
		}
	}
	return classes
}

// HasSharing reports whether some class has GPUs that may be shared, and
// some task a profile.
func (p *Problem) HasSharing() bool {
	for class := range p.Cluster.Classes {
		if p.CanShareGPUs(class) {
			return slices.ContainsFunc(p.Tasks, func(t Task) bool { return t.Profile != nil })
		}
	}
	return false
}

// MaxSharedRunTime returns how long a task with a profile may take that takes alone seconds
// by itself: Kappa times that, within its limit.
func (t *Task) MaxSharedRunTime(alone float64) float64 { return min(t.Profile.Kappa*alone, t.Limit) }

// sharingInstance returns the tasks and the nodes that may be shared, as consolidation sees
// them: as many nodes of an unlimited class as there are tasks. What isn't known
// to be small is taken to fill a GPU.
func (p *Problem) sharingInstance() *sharing.Instance {
	in := &sharing.Instance{
		Name: p.Cluster.Name, Physics: p.Cluster.Sharing.Physics, Contention: p.Cluster.Sharing.Contention,
		Tasks: make([]sharing.Task, len(p.Tasks)),
	}
	most := 0.0
	for _, class := range p.SharedNodes() {
		k := &p.Cluster.Classes[class]
		most = max(most, slices.Max(k.SharedGB))
		in.Servers = append(in.Servers, sharing.Server{
			StaticW: float64(k.HostW) * float64(k.GPUs), GPUMemGB: k.SharedGB,
		})
	}
	first := p.Tasks[slices.IndexFunc(p.Tasks, func(t Task) bool { return t.Profile != nil })].Profile
	in.SlotS = first.SlotS
	full := slices.Repeat([]float64{100}, len(first.UtilPct))
	for i := range p.Tasks {
		t := &p.Tasks[i]
		c := sharing.Task{ID: t.ID, Arrival: t.Arrival, GPUs: 1, MemGB: 2 * most, Kappa: 1, UtilPct: full}
		if f := t.Profile; f != nil {
			c.MemGB, c.Kappa, c.UtilPct = f.MemGB, f.Kappa, f.UtilPct
		}
		in.Tasks[i] = c
	}
	return in
}
