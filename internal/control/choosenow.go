package control

import (
	"maps"
	"slices"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/live"
)

// chooseNow is what would be decided for a job if it ran now, and the default clocks
// there.
func (c *Controller) chooseNow(s *Settings, asked *query.Choice) (live.Decision, dvfsmodel.Setting) {
	request := &DecideRequest{
		GPUModel: asked.GPUModel, GPUs: int(asked.Job.GPUs), Shared: asked.Shared,
		Clocks: c.clocksOf(s, asked.GPUModel, asked.Model.Model),
	}
	d := live.Decision{
		GPUModel: asked.GPUModel, Workload: asked.Job.Source.Workload(int(asked.Job.GPUs)),
		Mode: s.Live.ModeOf(asked.Job.Partition.Value()), Arm: live.ArmExcluded,
		Wish: live.Wish{Deadline: asked.Wishes.Deadline}, Created: asked.Now,
	}
	ch := chooser{
		settings: s, table: c.tables.get(s, request), model: asked.Model, request: request, job: asked.Job,
		now: asked.Now, decision: &d,
	}
	ch.choose(asked.Wishes)
	return d, ch.table.base
}

// clocksOf is the clocks of a GPU model: those that an agent named since the
// start, else those of its profile, else the default ones alone.
func (c *Controller) clocksOf(s *Settings, name string, m *learn.Model) []ClockGroup {
	seen := c.tableOf(name)
	var pairs []dvfsmodel.Setting
	if seen != nil {
		pairs = seen.pairs
	} else if p, err := s.Profiles.Lookup(name); err == nil {
		pairs = p.Pairs()
	}
	if len(pairs) == 0 && m != nil {
		pairs = []dvfsmodel.Setting{m.Base}
	}
	return groupsOf(pairs)
}

// groupsOf is pairs of clocks by memory clock.
func groupsOf(pairs []dvfsmodel.Setting) []ClockGroup {
	byMem := make(map[dvfsmodel.MHz][]dvfsmodel.MHz)
	for _, p := range pairs {
		byMem[p.Mem] = append(byMem[p.Mem], p.Core)
	}
	groups := make([]ClockGroup, 0, len(byMem))
	for _, mem := range slices.Sorted(maps.Keys(byMem)) {
		groups = append(groups, ClockGroup{Mem: mem, Core: byMem[mem]})
	}
	return groups
}

// gpuModels are the GPU models of which anything is known, in order.
func (c *Controller) gpuModels() []string {
	names := c.learner.GPUModels()
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.clocks {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}
